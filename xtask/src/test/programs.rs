//! Which test program is whose: cargo's output names files, and `tests/conformance.rs` is in every backend.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use crate::report::note;
use crate::run::{cargo, output, shown};

/// The built test programs: from the file's name to `package/target`.
#[derive(Debug, Default)]
pub(crate) struct Programs(HashMap<String, String>);

impl Programs {
    /// Builds the tests of a `cargo test` command, and learns their names.
    ///
    /// # Errors
    ///
    /// They do not compile.
    pub(crate) fn build(tests: &[&str]) -> anyhow::Result<Self> {
        let only_build = ["--no-run", "--message-format=json-render-diagnostics"];
        let mut command = cargo(tests.iter().chain(&only_build));
        note(format_args!("$ {}", shown(&command)));
        let messages = output(&mut command)?;
        Ok(Self::read(&String::from_utf8_lossy(&messages)))
    }

    fn read(messages: &str) -> Self {
        let messages = messages
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let program = |message: Value| {
            let file = file_name(message["executable"].as_str()?)?;
            let package = file_name(Path::new(message["manifest_path"].as_str()?).parent()?.to_str()?)?;
            let target = message["target"]["name"].as_str()?;
            Some((file, format!("{package}/{target}")))
        };
        Self(messages.filter_map(program).collect())
    }

    /// `package/target` of the program in `path`.
    pub(crate) fn name(&self, path: &str) -> Option<&str> {
        self.0.get(&file_name(path)?).map(String::as_str)
    }

    /// One program, as cargo would have told of it.
    #[cfg(test)]
    pub(crate) fn sample(file: &str, name: &str) -> Self {
        Self(HashMap::from([(file.to_owned(), name.to_owned())]))
    }
}

fn file_name(path: &str) -> Option<String> {
    Some(Path::new(path).file_name()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_is_known_by_its_package() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"/x/lease-postgres/Cargo.toml","#,
            r#""target":{"name":"conformance"},"executable":"/x/target/debug/deps/conformance-0f"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/x/a/Cargo.toml","target":{"name":"a"},"executable":null}"#,
            "\nnot json\n",
        );
        let programs = Programs::read(messages);
        assert_eq!(
            programs.name("target/debug/deps/conformance-0f"),
            Some("lease-postgres/conformance")
        );
        assert_eq!(programs.name("target/debug/deps/other-0f"), None);
        assert_eq!(programs.0.len(), 1);
    }
}
