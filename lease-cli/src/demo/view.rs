//! [`View`]: what happens as lines; and on a terminal, below them, a row per pod that grows with the time.

use std::io::{self, Write};
use std::time::Duration;

use crossterm::cursor::{Hide, MoveToColumn, MoveUp, Show};
use crossterm::execute;
use crossterm::style::Color;
use crossterm::terminal::{Clear, ClearType};
use lease_core::{BootClock, Clock, Moment};

use super::{PODS, stage};
use crate::answer::Failure;
use crate::args::Cli;
use crate::terminal::{self, paint, say};

/// The least that one column stands for.
const CELL: Duration = Duration::from_millis(250);
/// About how long all of it takes.
const WHOLE: Duration = Duration::from_secs(15);
/// How often the rows grow.
const TICK: Duration = Duration::from_millis(100);
/// Columns before a row.
const MARGIN: usize = 8;

/// What a pod is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Waits,
    Works,
    Paused,
    Dead,
    Ended,
}

impl State {
    const fn cell(self) -> (&'static str, Color) {
        match self {
            Self::Waits => ("·", Color::DarkGrey),
            Self::Works => ("█", Color::Green),
            Self::Paused => ("░", Color::Yellow),
            Self::Dead => ("✗", Color::Red),
            Self::Ended => (" ", Color::Reset),
        }
    }
}

pub(super) struct View {
    /// Without it, a program reads a value at the end.
    is_told: bool,
    is_drawn: bool,
    /// Lines of the picture that is on the terminal now.
    height: u16,
    start: Moment,
    /// Of each pod, from when on it was what.
    rows: [Vec<(Moment, State)>; PODS],
}

impl View {
    pub(super) fn new(cli: &Cli, start: Moment) -> Self {
        let is_told = !cli.json && !cli.quiet;
        let is_drawn = is_told && terminal::is_there();
        if is_drawn {
            let _ = execute!(io::stdout(), Hide);
        }
        Self {
            is_told,
            is_drawn,
            height: 0,
            start,
            rows: Default::default(),
        }
    }

    /// How long it may stay as it is.
    pub(super) fn tick(&self) -> Duration {
        if self.is_drawn { TICK } else { Duration::MAX }
    }

    /// Tells what happened, and keeps what that made of the pod.
    pub(super) fn tell(&mut self, line: &str, pod: usize, at: Moment, state: Option<State>) -> Result<(), Failure> {
        self.rows[pod].extend(state.map(|state| (at, state)));
        if !self.is_told {
            return Ok(());
        }
        self.erase();
        say(line)?;
        self.draw()
    }

    /// Draws the rows as they are now, in the place of what was drawn last.
    pub(super) fn draw(&mut self) -> Result<(), Failure> {
        if !self.is_drawn {
            return Ok(());
        }
        self.erase();
        let lines = self.lines();
        self.height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        say(&lines.join("\n")).map(drop)
    }

    /// Leaves the picture as it is, and gives the cursor back.
    pub(super) fn end(&mut self) {
        if self.is_drawn {
            let _ = self.draw();
            self.is_drawn = false;
            let _ = execute!(io::stdout(), Show);
        }
    }

    fn erase(&mut self) {
        if self.height > 0 {
            let up = (MoveUp(self.height), MoveToColumn(0), Clear(ClearType::FromCursorDown));
            let _ = write!(io::stdout(), "{}{}{}", up.0, up.1, up.2);
            self.height = 0;
        }
    }

    fn lines(&self) -> Vec<String> {
        let (columns, _) = terminal::size();
        let columns = columns.saturating_sub(MARGIN + 1).max(1);
        let columns_of_whole = u32::try_from(columns).unwrap_or(u32::MAX);
        let cell = CELL.max(WHOLE / columns_of_whole);
        let legend = [State::Works, State::Waits, State::Paused, State::Dead].map(|state| {
            let (sign, color) = state.cell();
            let word = match state {
                State::Works => "works",
                State::Waits => "waits",
                State::Paused => "paused",
                _ => "killed",
            };
            format!("{} {word}", paint(sign, color))
        });
        let mut lines = vec![String::new()];
        for (pod, states) in self.rows.iter().enumerate() {
            let cells = cells(states, self.start, BootClock.now(), cell);
            let shown = &cells[cells.len().saturating_sub(columns)..];
            // A run of one state is one coloured text.
            let runs = shown.chunk_by(|one, other| one == other);
            let row: String = runs
                .map(|run| match run[0] {
                    Some(state) => paint(&state.cell().0.repeat(run.len()), state.cell().1),
                    None => " ".repeat(run.len()),
                })
                .collect();
            lines.push(format!("{:MARGIN$}{row}", stage::name(pod)));
        }
        lines.push(format!("{:MARGIN$}{}", "", legend.join("  ")));
        lines
    }
}

/// What a pod was at the end of each cell of time. Its death is one cell.
fn cells(states: &[(Moment, State)], start: Moment, now: Moment, cell: Duration) -> Vec<Option<State>> {
    let mut cells = Vec::new();
    let mut end = start;
    while end < now {
        end = end + cell;
        let state = states.iter().rev().find(|(at, _)| *at < end).map(|(_, state)| *state);
        let was_dead = cells.contains(&Some(State::Dead));
        cells.push(state.filter(|state| *state != State::Dead || !was_dead));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_what_a_pod_was_in_each_cell() {
        let at = |ms: u64| Moment::from_nanos(ms * 1_000_000);
        let states = [(at(0), State::Waits), (at(250), State::Works), (at(420), State::Dead)];
        let cells = cells(&states, at(0), at(650), Duration::from_millis(100));
        let shown: String = cells
            .iter()
            .map(|state| state.map_or(" ", |state| state.cell().0))
            .collect();
        assert_eq!(shown, "··██✗  ");
    }
}
