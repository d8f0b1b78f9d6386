//! The command `lease`.

mod answer;
mod args;
mod commands;
mod database;
mod demo;
mod doctor;
mod rows;
mod run;
mod terminal;
mod watch;

use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use tracing::Level;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::answer::{Answer, Failure, code};
use crate::args::{Cli, Command};

fn main() -> ExitCode {
    if let Some(done) = run::part(env::args_os().skip(1)) {
        return done.map_or_else(failed, ExitCode::from);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let text = error.to_string();
            let shown: Vec<String> = text.lines().map(rows::printable).collect();
            if text.lines().eq(&shown) {
                // To standard output if it was asked for, as by `--help`.
                let _ = error.print();
            } else {
                // It repeats what was given, of which a terminal would obey some.
                let _ = writeln!(io::stderr(), "{}", shown.join("\n"));
            }
            if error.kind() == ErrorKind::UnknownArgument && forgot_the_dashes() {
                let _ = writeln!(
                    io::stderr(),
                    "\n  tip: the command comes after `--`: lease run NAME -- COMMAND"
                );
            }
            return ExitCode::from(if error.use_stderr() { code::USAGE } else { code::DONE });
        }
    };
    narrate(cli.verbose);
    let done = match &cli.command {
        Command::Run(args) => run::run(&cli, args).map(ExitCode::from),
        _ => commands::run(&cli).map(|answer| print(&cli, &answer)),
    };
    done.unwrap_or_else(failed)
}

/// Whether it is `lease run` without the `--` that its command comes after.
fn forgot_the_dashes() -> bool {
    let mut words = env::args_os().skip(1);
    words.any(|word| word == "run") && words.all(|word| word != "--")
}

fn failed(Failure { text, code }: Failure) -> ExitCode {
    let _ = writeln!(io::stderr(), "lease: {text}");
    ExitCode::from(code)
}

/// Says on standard error what the library tells of.
fn narrate(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => Level::INFO,
        _ => Level::DEBUG,
    };
    let colour = io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let only_ours = Targets::new().with_target("lease", level);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(colour)
        .without_time();
    tracing_subscriber::registry().with(lines.with_filter(only_ours)).init();
}

fn print(cli: &Cli, answer: &Answer) -> ExitCode {
    if answer.is_shown {
        return ExitCode::from(answer.code);
    }
    let text = if cli.json {
        answer.json.to_string()
    } else if cli.quiet && answer.code == code::DONE {
        return ExitCode::SUCCESS;
    } else {
        answer.text.clone()
    };
    let written = if answer.code == code::DONE || cli.json {
        writeln!(io::stdout(), "{text}")
    } else {
        writeln!(io::stderr(), "lease: {text}")
    };
    match written {
        // Who reads no further, such as `head`, knows enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::from(answer.code),
    }
}
