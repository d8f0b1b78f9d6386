//! `lease doctor`: a line for each thing that leases hang on, and what to do about it.

use crossterm::style::Color;
use lease_core::{Finding, Level};
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, code};
use crate::args::Cli;
use crate::database::Url;
use crate::terminal;

/// Looks, and says what it found. Also of a database that can't be reached: that is its first line then.
pub(crate) async fn run(cli: &Cli) -> Result<Answer, Failure> {
    let findings = Url::of(&cli.place)?.diagnose().await?;
    if cli.json {
        let values: Vec<Value> = findings.iter().map(value).collect();
        terminal::say(&Value::from(values).to_string())?;
    } else {
        let told = findings
            .iter()
            .filter(|finding| !cli.quiet || finding.level != Level::Ok);
        for line in told.flat_map(lines) {
            if !terminal::say(&line)? {
                break;
            }
        }
    }
    Ok(Answer::shown(exit_code(&findings)))
}

fn value(finding: &Finding) -> Value {
    json!({
        "check": finding.check,
        "level": finding.level.as_str(),
        "found": finding.found,
        "todo": finding.advice,
    })
}

/// What was found, and below it what to do.
fn lines(finding: &Finding) -> Vec<String> {
    let color = match finding.level {
        Level::Ok => Color::Green,
        Level::Warning => Color::Yellow,
        _ => Color::Red,
    };
    // Padded before it is coloured, since a colour takes no room.
    let level = terminal::paint(&format!("{:7}", finding.level), color);
    let one_line = |text: &str| text.replace(['\n', '\r'], " ");
    let mut lines = vec![format!("{level}  {:12}  {}", finding.check, one_line(&finding.found))];
    if let Some(advice) = &finding.advice {
        lines.push(format!("{:23}to do: {}", "", one_line(advice)));
    }
    lines
}

/// As of any command that would meet the worst of them.
fn exit_code(findings: &[Finding]) -> u8 {
    let of = |finding: &Finding| match finding.level {
        Level::Error(kind) if kind.is_transient() => code::UNAVAILABLE,
        Level::Error(_) => code::CONFIG,
        _ => code::DONE,
    };
    findings.iter().map(of).max().unwrap_or(code::DONE)
}

#[cfg(test)]
mod tests {
    use lease_core::RepoErrorKind;

    use super::*;

    #[test]
    fn the_worst_finding_is_the_exit_code() {
        let ok = Finding::ok("a", "");
        let warning = Finding::warning("a", "", "");
        let error = |kind| Finding::error("a", kind, "", "");
        for (findings, code) in [
            (vec![ok.clone()], 0),
            (vec![ok, warning.clone()], 0),
            (vec![error(RepoErrorKind::ReadOnly), warning], 69),
            (vec![error(RepoErrorKind::Denied), error(RepoErrorKind::ReadOnly)], 78),
        ] {
            assert_eq!(exit_code(&findings), code, "{findings:?}");
        }
    }

    #[test]
    fn what_to_do_stands_below_what_was_found() {
        let finding = Finding::warning("durability", "fsync = off", "set it\nto on");
        assert_eq!(
            lines(&finding),
            [
                "warning  durability    fsync = off",
                "                       to do: set it to on"
            ]
        );
    }
}
