//! A command that goes on until it is told to end, read while it runs: by a pipe, or on a terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// What a busy machine never needs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// It is killed with this.
pub struct Running {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
    /// All that it said on standard output so far.
    pub said: String,
}

impl Running {
    /// Each line of its output by a pipe.
    pub fn piped(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (out, err) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Self::new(child, out, err)
    }

    /// On a terminal of 100 columns and 30 lines.
    pub fn on_a_terminal(command: &mut Command) -> Self {
        let size = Winsize {
            ws_col: 100,
            ws_row: 30,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let terminal = openpty(Some(&size), None).unwrap();
        let side = || Stdio::from(terminal.slave.try_clone().unwrap());
        let mut child = command
            .stdin(side())
            .stdout(side())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The terminal ends with the last who has this side of it: the command kept copies of its own.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let err = lines(child.stderr.take().unwrap());
        let (sender, out) = channel();
        let mut master = File::from(terminal.master);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = master.read(&mut bytes) {
                if sender
                    .send(String::from_utf8_lossy(&bytes[..count]).into_owned())
                    .is_err()
                {
                    break;
                }
            }
        });
        Self::new(child, out, err)
    }

    fn new(child: Child, out: Receiver<String>, err: Receiver<String>) -> Self {
        let said = String::new();
        Self { child, out, err, said }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().try_into().unwrap())
    }

    /// The next line.
    pub fn line(&mut self) -> String {
        self.more().trim_end().to_owned()
    }

    /// What comes next: a line, or on a terminal whatever was written at once.
    fn more(&mut self) -> String {
        let more = self.out.recv_timeout(PATIENCE);
        let more = more.unwrap_or_else(|_| panic!("nothing after {:?}", self.said));
        self.said += &more;
        more
    }

    /// Reads until some text was said after all that was read before.
    pub fn until(&mut self, text: &str) {
        let from = self.said.len();
        while !self.said[from..].contains(text) {
            self.more();
        }
    }

    pub fn complaint(&mut self) -> String {
        self.err.recv_timeout(PATIENCE).unwrap().trim_end().to_owned()
    }

    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    /// Nobody reads its output any more.
    pub fn shut(&mut self) {
        self.out = channel().1;
    }

    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Its exit code, once it has ended, and the rest of its output is in `said`.
    pub fn ends(&mut self) -> Option<i32> {
        let rounds = PATIENCE.as_millis() / 10;
        for _ in 0..rounds {
            if let Some(status) = self.has_ended() {
                while let Ok(more) = self.out.recv_timeout(Duration::from_secs(1)) {
                    self.said += &more;
                }
                return status.code();
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("it goes on");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(line + "\n").is_err() {
                break;
            }
        }
    });
    lines
}
