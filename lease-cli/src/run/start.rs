//! What a job's process is before it becomes the command: it waits for a byte.
//!
//! Between the birth of a process and the watchdog's knowing of it `lease` may be killed, and nobody would end it. So the
//! process that is born is this one, which becomes the command only when it is told to, and ends when there is nobody left
//! who could.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::io::{FdFlags, fcntl_setfd};

use crate::answer::{Failure, code};
use crate::run::ourselves;

/// The first word for it.
pub(super) const JOB: &str = "_job";

/// A process that waits for [`Gate::open`] to become the command.
pub(super) struct Gate(PipeWriter);

/// Starts the process, in a process group of its own, with the streams and the environment of ours and these variables.
pub(super) fn spawn(command: &[OsString], variables: &[(&str, String)]) -> io::Result<(Child, Gate)> {
    let (reader, writer): (PipeReader, PipeWriter) = io::pipe()?;
    // Nothing else is started before the reader is closed, so that nobody else inherits it.
    fcntl_setfd(&reader, FdFlags::empty())?;
    let mut process = Command::new(ourselves());
    process
        .arg0("lease")
        .arg(JOB)
        .arg(reader.as_raw_fd().to_string())
        .args(command);
    process
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .process_group(0);
    let child = process.spawn()?;
    Ok((child, Gate(writer)))
}

impl Gate {
    /// Lets it become the command.
    pub(super) fn open(mut self) -> io::Result<()> {
        self.0.write_all(b"!")
    }
}

/// Waits for the byte, then becomes the command. Returns only if that is not to be, or why it can't be.
pub(super) fn job(gate: RawFd, command: &[OsString]) -> Option<Failure> {
    let opened = File::open(format!("/dev/fd/{gate}")).and_then(|mut gate| gate.read_exact(&mut [0]));
    // Not let, it has nothing to say: it is somebody else's story.
    opened.ok()?;
    // The one that was inherited, which the command has no use for.
    let _ = nix::unistd::close(gate);
    let (program, arguments) = command.split_first()?;
    let error = Command::new(program).args(arguments).exec();
    Some(not_started(program, &error))
}

/// The command could not be started: 127 or 126, as shells have it.
pub(super) fn not_started(program: &std::ffi::OsStr, error: &io::Error) -> Failure {
    let code = if error.kind() == ErrorKind::NotFound {
        code::NOT_FOUND
    } else {
        code::NOT_EXECUTABLE
    };
    Failure {
        text: format!("{}: {error}", program.display()),
        code,
    }
}
