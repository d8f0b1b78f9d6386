//! An example as a process of its own, and what it says.

#![allow(dead_code, reason = "each test target uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process, killed when it is dropped.
pub(crate) struct Program {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    /// Ends with what the process says.
    reader: JoinHandle<()>,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        // Colours would come between the words that are looked for.
        command.env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let (output, said) = (BufReader::new(child.stdout.take().unwrap()), lines.clone());
        let reader = std::thread::spawn(move || {
            output
                .lines()
                .map_while(Result::ok)
                .for_each(|line| said.lock().unwrap().push(line))
        });
        Self { child, lines, reader }
    }

    /// The lines that have this text in them.
    pub(crate) fn said(&self, text: &str) -> Vec<String> {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|line| line.contains(text)).cloned().collect()
    }

    /// Waits for the first such line, and returns what follows the text in it. A process that ends without it fails at once: why it
    /// ended stands on standard error.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) -> String {
        eventually(&format!("{text:?} in {:?}", self.lines), || {
            let over = self.reader.is_finished();
            let said = !self.said(text).is_empty();
            assert!(said || !over, "it ended and never said {text:?}: {:?}", self.lines);
            said
        });
        self.said(text)[0].split_once(text).unwrap().1.trim().to_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    pub(crate) fn exited(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    #[track_caller]
    pub(crate) fn ends(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the end of the process", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something that another process does soon. A minute is many times what it takes on a busy machine.
#[track_caller]
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("not within a minute: {what}");
}

/// The status and the text of a page.
pub(crate) fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    (status.unwrap(), body.unwrap())
}
