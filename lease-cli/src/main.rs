//! The command `lease`.

mod answer;
mod args;
mod commands;
mod database;
#[cfg(unix)]
mod demo;
mod doctor;
mod rows;
mod terminal;
mod watch;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::answer::{Answer, Failure, code};
use crate::args::Cli;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // To standard output if it was asked for, as by `--help`.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { code::USAGE } else { code::DONE });
        }
    };
    match commands::run(&cli) {
        Ok(answer) => print(&cli, &answer),
        Err(Failure { text, code }) => {
            let _ = writeln!(io::stderr(), "lease: {text}");
            ExitCode::from(code)
        }
    }
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
        Err(error) if error.kind() != ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::from(answer.code),
    }
}
