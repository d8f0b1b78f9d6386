//! What a job's process is before it becomes the command: it waits for the lease.
//!
//! Between the birth of a process and the watchdog's knowing of it `lease` may be killed, and nobody would end it. So the
//! process that is born is this one, which becomes the command only when it is told to, and ends when there is nobody left
//! who could.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use lease_core::Held;
use rustix::io::{FdFlags, fcntl_setfd};

use crate::answer::{Failure, code};
use crate::run::ourselves;

/// What stands after all that is said. Without it whoever said it died meanwhile.
const END: char = '!';

/// A process that waits for [`Gate::open`] to become the command.
pub(super) struct Gate(io::PipeWriter);

/// Starts the process, in a process group of its own, with our streams and our environment.
pub(super) fn spawn(command: &[OsString]) -> io::Result<(Child, Gate)> {
    let (reader, writer) = io::pipe()?;
    // Nothing else is started before the reader is closed, so that nobody else inherits it.
    fcntl_setfd(&reader, FdFlags::empty())?;
    let mut process = Command::new(ourselves());
    process
        .arg0("lease")
        .arg("_job")
        .arg(reader.as_raw_fd().to_string())
        .arg("--")
        .args(command)
        .process_group(0);
    let child = process.spawn()?;
    Ok((child, Gate(writer)))
}

impl Gate {
    /// Lets it become the command, with the lease in its environment.
    pub(super) fn open(mut self, held: &Held) -> io::Result<()> {
        let (name, holder, token) = (held.name(), held.holder(), held.token());
        // Short enough to be written as a whole (pipe(7)).
        let text = format!("LEASE_NAME={name}\nLEASE_HOLDER={holder}\nLEASE_TOKEN={token}\n{END}");
        self.0.write_all(text.as_bytes())
    }
}

/// Waits to be let, then becomes the command. Returns only if that is not to be, or why it can't be.
pub(crate) fn job(gate: RawFd, command: &[OsString]) -> Option<Failure> {
    let mut text = String::new();
    let opened = File::open(format!("/dev/fd/{gate}"));
    // The one that was inherited, which the command has no use for.
    let _ = nix::unistd::close(gate);
    let said = opened.and_then(|mut gate| gate.read_to_string(&mut text));
    let lines = said.ok().and_then(|_| text.strip_suffix(END))?;
    let (program, arguments) = command.split_first()?;
    let variables = lines.lines().filter_map(|line| line.split_once('='));
    let error = Command::new(program).args(arguments).envs(variables).exec();
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
