//! [`SpanLog`], [`Span`], [`check`]: the overlap checker for several processes of one machine.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process;

use lease_core::{BootClock, Clock, Moment, Token};

use crate::{Summary, Violation};

/// One stay in the section of a lease, by the machine's monotonic clock, which all its processes share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Span {
    /// Which lease.
    pub name: String,
    /// Which process.
    pub pid: u32,
    /// The fencing token.
    pub token: Token,
    /// When it was entered: read inside.
    pub enter: Moment,
    /// When it was last known to be inside: read inside. For a process that was killed, its last sign of life.
    pub leave: Moment,
}

impl Span {
    /// A span of this process.
    #[must_use]
    pub fn new(name: impl Into<String>, token: Token, enter: Moment, leave: Moment) -> Self {
        let (name, pid) = (name.into(), process::id());
        Self {
            name,
            pid,
            token,
            enter,
            leave,
        }
    }
}

/// Looks for two spans of a lease that overlap, and for tokens that do not grow from span to span.
///
/// # Errors
/// [`Violation`]: the first one by the time of entering.
pub fn check(spans: &[Span]) -> Result<Summary, Violation> {
    let mut names: BTreeMap<&str, Vec<&Span>> = BTreeMap::new();
    for span in spans {
        names.entry(&span.name).or_default().push(span);
    }
    let mut found: Option<(Moment, Violation)> = None;
    for spans in names.values_mut() {
        spans.sort_by_key(|span| (span.enter, span.token));
        if let Some((at, violation)) = first_violation(spans)
            && found.as_ref().is_none_or(|(earlier, _)| at < *earlier)
        {
            found = Some((at, violation));
        }
    }
    match found {
        Some((_, violation)) => Err(violation),
        None => Ok(Summary {
            sections: spans.len() as u64,
            names: names.len() as u64,
        }),
    }
}

/// Of one lease's spans, in the order of entering.
fn first_violation(spans: &[&Span]) -> Option<(Moment, Violation)> {
    let mut last_out: Option<&Span> = None;
    let mut greatest: Option<Token> = None;
    for span in spans {
        let name = span.name.clone();
        if let Some(inside) = last_out.filter(|inside| span.enter < inside.leave) {
            let (inside, entered) = (inside.token, span.token);
            return Some((span.enter, Violation::TwoInside { name, inside, entered }));
        }
        if let Some(before) = greatest.filter(|before| span.token <= *before) {
            let entered = span.token;
            return Some((span.enter, Violation::TokenDidNotGrow { name, before, entered }));
        }
        if last_out.is_none_or(|last| span.leave >= last.leave) {
            last_out = Some(span);
        }
        greatest = greatest.max(Some(span.token));
    }
    None
}

/// A file to which several processes write when they are inside.
///
/// Each mark is one line in one write at the end of the file, so a process that is killed leaves whole lines. Times are
/// those of [`BootClock`], which all processes of a machine share on Linux.
#[derive(Debug)]
pub struct SpanLog {
    file: File,
}

impl SpanLog {
    /// Opens the file, and makes it if needed.
    ///
    /// # Errors
    /// Those of opening the file.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file })
    }

    /// Enters the section of a lease. [`Inside::still`] marks that it goes on; dropping the guard leaves it.
    ///
    /// # Errors
    /// Those of writing to the file.
    pub fn enter(&self, name: &str, token: Token) -> io::Result<Inside<'_>> {
        // Process numbers repeat, over time and between containers.
        let number = rand::random();
        let (log, name) = (self, name.to_owned());
        let inside = Inside {
            log,
            number,
            name,
            token,
        };
        inside.still()?;
        Ok(inside)
    }

    /// Reads the spans that all processes wrote.
    ///
    /// # Errors
    /// Those of reading the file; `InvalidData` for a line that no [`SpanLog`] wrote.
    pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<Span>> {
        let text = std::fs::read_to_string(path)?;
        let mut spans: Vec<Span> = Vec::new();
        let mut index = HashMap::new();
        for line in text.lines() {
            let (key, mark) = parse(line).ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("not a line of a span log: {line:?}"),
                )
            })?;
            let at = *index.entry(key).or_insert_with(|| {
                spans.push(mark.clone());
                spans.len() - 1
            });
            spans[at].leave = spans[at].leave.max(mark.leave);
        }
        Ok(spans)
    }
}

/// Being inside: see [`SpanLog::enter`].
#[derive(Debug)]
pub struct Inside<'a> {
    log: &'a SpanLog,
    number: u64,
    name: String,
    token: Token,
}

impl Inside<'_> {
    /// Marks that the process is still inside: whoever may be killed marks each step of its work.
    ///
    /// # Errors
    /// Those of writing to the file.
    pub fn still(&self) -> io::Result<()> {
        let (pid, number, token, name) = (process::id(), self.number, self.token, &self.name);
        let line = format!("{pid} {number} {token} {} {name}\n", BootClock.now().as_nanos());
        (&self.log.file).write_all(line.as_bytes())
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // A mark that can't be written makes the span shorter; the marks before it stand.
        let _ = self.still();
    }
}

/// A line as the number of its section, and a span of that one moment. The name may have spaces.
fn parse(line: &str) -> Option<(u64, Span)> {
    let mut parts = line.splitn(5, ' ');
    let pid: u32 = parts.next()?.parse().ok()?;
    let number: u64 = parts.next()?.parse().ok()?;
    let token = Token::new(parts.next()?.parse().ok()?).ok()?;
    let at = Moment::from_nanos(parts.next()?.parse().ok()?);
    let mut span = Span::new(parts.next()?, token, at, at);
    span.pid = pid;
    Some((number, span))
}
