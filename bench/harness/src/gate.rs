//! [`Gate`]: where the server's counters are read, before and after what counts.

use std::io::{BufRead, Write};

/// A line on standard output says that it is reached, a line on standard input lets pass. At the end of the input every gate is
/// open, for those who start the program by hand.
#[derive(Debug, Default)]
pub struct Gate(());

impl Gate {
    /// What counts begins after it.
    ///
    /// # Errors
    /// Standard input or output is broken.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        pass("begin")
    }

    /// What counts has ended, and what was held still is.
    ///
    /// # Errors
    /// Standard input or output is broken.
    pub fn end(&mut self) -> anyhow::Result<()> {
        pass("end")
    }
}

fn pass(what: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{what}")?;
    output.flush()?;
    drop(output);
    std::io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}
