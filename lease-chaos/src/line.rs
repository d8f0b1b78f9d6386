//! What pods write down: one line for each thing, in one write at the end of the file, so that a process that is killed
//! leaves whole lines. Times are nanoseconds of the machine's clock, which all pods of it share.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use lease_core::{BootClock, Clock};
use serde::{Deserialize, Serialize};

/// The time, in nanoseconds.
pub(crate) fn now() -> u64 {
    BootClock.now().as_nanos()
}

/// One thing that a pod did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// The process, which another of the same pod follows when it was killed.
    pub(crate) pid: u32,
    /// Which lease.
    pub(crate) name: String,
    /// The fencing token.
    pub(crate) token: i64,
    /// What it did.
    #[serde(flatten)]
    pub(crate) did: Did,
}

/// What a pod did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "did", rename_all = "snake_case")]
pub(crate) enum Did {
    /// Its work began: read in the first poll of f.
    Enter { at: u64 },
    /// Its work was over: read in the last poll of f.
    Leave { at: u64 },
    /// It wrote under its token.
    Write { from: u64, to: u64, answer: Answer },
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// It was committed.
    Accepted,
    /// The fence refused it.
    Refused,
    /// Not known.
    Error,
}

/// Where one pod writes its lines.
#[derive(Debug)]
pub(crate) struct Book(File);

impl Book {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        OpenOptions::new().create(true).append(true).open(path).map(Self)
    }

    /// A pod that can't write down what it does must not go on doing it.
    pub(crate) fn write(&self, name: &str, token: i64, did: Did) {
        let line = Line {
            pid: std::process::id(),
            name: name.to_owned(),
            token,
            did,
        };
        let mut text = serde_json::to_string(&line).expect("a line is JSON");
        text.push('\n');
        if let Err(error) = (&self.0).write_all(text.as_bytes()) {
            eprintln!("the book can't be written: {error}");
            std::process::exit(1);
        }
    }
}

/// Reads what a pod has written since the last look.
#[derive(Debug)]
pub(crate) struct Reader {
    path: PathBuf,
    at: u64,
    rest: Vec<u8>,
}

impl Reader {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            at: 0,
            rest: Vec::new(),
        }
    }

    pub(crate) fn read(&mut self) -> anyhow::Result<Vec<Line>> {
        let mut file = match File::open(&self.path) {
            // The pod has not begun yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        file.seek(SeekFrom::Start(self.at))?;
        self.at += file.read_to_end(&mut self.rest)? as u64;
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            return Ok(Vec::new());
        };
        let rest = self.rest.split_off(end + 1);
        let whole = std::mem::replace(&mut self.rest, rest);
        let lines = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| Ok(serde_json::from_slice(line)?)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_half_written_is_read_when_it_is_whole() {
        let path = std::env::temp_dir().join(format!("lease-chaos-line-{}", std::process::id()));
        let book = Book::open(&path).unwrap();
        let mut reader = Reader::new(path.clone());
        book.write("a", 7, Did::Enter { at: 1 });
        (&book.0).write_all(b"{\"pid\":1,\"name\":\"a\",").unwrap();
        let first = reader.read().unwrap();
        assert_eq!(
            (first.len(), first[0].token, &first[0].did),
            (1, 7, &Did::Enter { at: 1 })
        );
        assert_eq!(reader.read().unwrap(), []);
        (&book.0)
            .write_all(b"\"token\":8,\"did\":\"leave\",\"at\":2}\n")
            .unwrap();
        assert_eq!(reader.read().unwrap()[0].did, Did::Leave { at: 2 });
        std::fs::remove_file(path).unwrap();
    }
}
