use std::path::Path;
use std::process::Command;

use super::ServerError;

/// Runs a command to its end and returns what it printed.
pub(super) fn output(mut command: Command, step: &str) -> Result<String, ServerError> {
    let program = format!("{} ({step})", Path::new(command.get_program()).display());
    let output = command.output();
    let output = output.map_err(|error| ServerError::Program {
        program: program.clone(),
        output: error.to_string(),
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(ServerError::Program {
        program,
        output: format!("{}: {}", output.status, text(&output.stderr)),
    })
}
