//! The terminal, if there is one: whether it has colours, a screen that is given back, and the signals by which people end a
//! command.

use std::env;
use std::io::{self, ErrorKind, IsTerminal, Write};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::execute;
use crossterm::style::{Color, Stylize};
use crossterm::terminal::{self, Clear, ClearType, DisableLineWrap, EnableLineWrap};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::answer::Failure;

/// Whether people read standard output as it comes.
pub(crate) fn is_there() -> bool {
    io::stdout().is_terminal() && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Columns and lines.
pub(crate) fn size() -> (usize, usize) {
    match terminal::size() {
        Ok((columns, lines)) if columns > 0 && lines > 0 => (columns.into(), lines.into()),
        _ => (80, 24),
    }
}

/// The text in a colour, where there is one to be had and nobody has set `NO_COLOR`.
pub(crate) fn paint(text: &str, color: Color) -> String {
    let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if unwanted || !is_there() {
        return text.to_owned();
    }
    text.with(color).to_string()
}

/// Writes a line to standard output. False when nobody reads it any more, as after `head`.
pub(crate) fn say(line: &str) -> Result<bool, Failure> {
    is_read(writeln!(io::stdout(), "{line}"))
}

fn is_read(written: io::Result<()>) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::config(format!("standard output: {error}"))),
    }
}

/// A screen of its own, without a cursor. Dropping it gives the former one back.
pub(crate) struct Screen(());

impl Screen {
    pub(crate) fn enter() -> Result<Self, Failure> {
        let entered = execute!(io::stdout(), EnterAlternateScreen, Hide, DisableLineWrap);
        is_read(entered).map(|_| Self(()))
    }

    /// Replaces what is there. False when nobody sees it any more.
    pub(crate) fn show(&self, lines: &[String]) -> Result<bool, Failure> {
        let (_, height) = size();
        let mut text = MoveTo(0, 0).to_string();
        for (at, line) in lines.iter().take(height).enumerate() {
            let begin = if at == 0 { "" } else { "\r\n" };
            text += &format!("{begin}{line}{}", Clear(ClearType::UntilNewLine));
        }
        text += &Clear(ClearType::FromCursorDown).to_string();
        let mut out = io::stdout().lock();
        is_read(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = execute!(io::stdout(), EnableLineWrap, Show, LeaveAlternateScreen);
    }
}

/// Ctrl-C, SIGTERM, and that the terminal is gone.
pub(crate) struct Ending([Signal; 3]);

impl Ending {
    /// From now on these signals do not end the process by themselves.
    pub(crate) fn expect() -> Result<Self, Failure> {
        let heard = |kind| signal(kind).map_err(|error| Failure::config(format!("signals: {error}")));
        Ok(Self([
            heard(SignalKind::interrupt())?,
            heard(SignalKind::terminate())?,
            heard(SignalKind::hangup())?,
        ]))
    }

    /// Resolves when the command is told to end. Dropping this loses no signal.
    pub(crate) async fn told(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
