//! Processes of a test: the same test in this very program once more, told by a variable that it plays the other part.

use std::env;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

/// Where the child finds its database. Without it a process is no child.
const URL: &str = "LEASE_CHILD_URL";
/// One more text for the child.
const TEXT: &str = "LEASE_CHILD_TEXT";

/// A process of ours, killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts the test of that name as a child. `wrapped_in` comes before its command line.
    pub(crate) fn start(wrapped_in: &[&str], test: &str, url: &str, text: &str) -> Self {
        let program = env::current_exe().unwrap();
        let mut words = wrapped_in.iter().map(Into::into).chain([program.into_os_string()]);
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .args([test, "--exact", "--include-ignored", "--nocapture"]);
        command
            .env(URL, url)
            .env(TEXT, text)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let input = child.stdin.take();
        Self { child, input, output }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it says this.
    pub(crate) fn says(&mut self, what: &str) {
        let said = self.output.any(|line| line.is_ok_and(|line| line == what));
        assert!(said, "it ended without having said {what:?}");
    }

    /// Lets it go on where it [waits for that](Part::waits), with a line of text.
    pub(crate) fn go_on(&mut self, text: &str) {
        self.input
            .as_mut()
            .unwrap()
            .write_all(format!("{text}\n").as_bytes())
            .unwrap();
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.id().to_string();
        let script = ["-c", "kill -\"$0\" \"$1\"", signal, &pid];
        assert!(Command::new("sh").args(script).status().unwrap().success());
    }

    /// Waits for its end.
    pub(crate) fn ends(mut self) {
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a child was told.
pub(crate) struct Part {
    pub(crate) url: String,
    pub(crate) text: String,
}

impl Part {
    /// `None` in a process that is no child.
    pub(crate) fn of_this_process() -> Option<Self> {
        let url = env::var(URL).ok()?;
        let text = env::var(TEXT).unwrap();
        Some(Self { url, text })
    }

    /// Says a line to the parent, in a line of its own.
    pub(crate) fn say(what: &str) {
        // Not captured by the test, which has no end before we have ours.
        std::io::stdout().write_all(format!("\n{what}\n").as_bytes()).unwrap();
    }

    /// Waits until the parent lets us go on, and answers what it says; ends this process if the parent is gone.
    pub(crate) fn waits() -> String {
        let mut line = String::new();
        if std::io::stdin().read_line(&mut line).unwrap_or(0) == 0 {
            std::process::exit(3);
        }
        line.trim().to_owned()
    }

    /// From now on this process ends with its parent.
    pub(crate) fn ends_with_its_parent() {
        thread::spawn(|| {
            loop {
                Self::waits();
            }
        });
    }
}
