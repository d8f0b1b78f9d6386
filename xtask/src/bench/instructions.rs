//! Instructions of a pair without a database, counted by callgrind.

use std::process::Command;

use anyhow::{Context, ensure};

use super::section::{Section, Table};
use super::series::number;
use super::stage::Stage;
use crate::report::note;
use crate::run::which;

/// The section.
pub(super) fn measure(stage: &Stage) -> anyhow::Result<Section> {
    let pairs = stage.plan.counted_pairs;
    let mut section = Section {
        text: format!(
            "Acquire and release on `MemoryRepo`, under callgrind: what {} pairs took beyond what {pairs} took, for each of those. No clock is \
             in it: it can be compared between machines of one kind, and between commits.",
            2 * pairs
        ),
        ..Section::default()
    };
    let Some(valgrind) = which("valgrind") else {
        section.left_out.push("there is no valgrind here".into());
        return Ok(section);
    };
    let mut table = Table::new("", &["way", "instructions a pair"]);
    for (level, shown) in [
        ("lease", "a `Lease`: acquire, guard, release"),
        ("repo", "the rows of `MemoryRepo` alone"),
    ] {
        note(format_args!("callgrind counts {level}"));
        let program = stage.built.tool("bench-memory");
        let count = |pairs: u32| {
            let mut command = Command::new(&valgrind);
            command
                .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
                .arg(&program);
            command.args([level, "--pairs", &pairs.to_string()]);
            collected(&mut command)
        };
        let each = (count(2 * pairs)? - count(pairs)?) / f64::from(pairs);
        table.row([shown.into(), number(each, 0)]);
    }
    section.tables.push(table);
    Ok(section)
}

/// What callgrind says that it has counted.
fn collected(command: &mut Command) -> anyhow::Result<f64> {
    let output = command.output().context("cannot start valgrind")?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind failed:\n{text}");
    count(&text).with_context(|| format!("callgrind told no count:\n{text}"))
}

fn count(text: &str) -> Option<f64> {
    let (_, rest) = text.split_once("Collected : ")?;
    rest.lines().next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_what_callgrind_prints() {
        let text = "==1== Events    : Ir\n==1== Collected : 2345678\n==1== \n";
        assert_eq!(count(text), Some(2_345_678.0));
        assert_eq!(count("==1== nothing"), None);
    }
}
