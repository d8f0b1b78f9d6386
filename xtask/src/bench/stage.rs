//! [`Stage`]: everything that a section needs to make its measurements.

use std::process::Command;

use super::built::Built;
use super::contender::{Contender, words};
use super::engine::{Engine, Kind, Place};
use super::plan::Plan;
use super::process::{self, Outcome};
use super::section::{Good, Verdict};
use super::series::Series;
use crate::report::note;

/// Programs, servers, and how much to do.
pub(super) struct Stage {
    pub(super) plan: Plan,
    pub(super) built: Built,
    pub(super) engines: Vec<Engine>,
    /// Engines that are not here, and why.
    pub(super) missing: Vec<String>,
}

impl Stage {
    pub(super) fn engine(&self, kind: Kind) -> Option<&Engine> {
        self.engines.iter().find(|engine| engine.kind == kind)
    }

    /// A new place with the contender's table.
    ///
    /// # Errors
    /// The contender could not be built or does not work here: why.
    pub(super) fn place(&self, engine: &Engine, contender: &Contender) -> anyhow::Result<Place> {
        let place = engine.place()?;
        let mut command = contender.command(&self.built, &place, &words!["prepare"])?;
        process::said::<Outcome>(&mut command, self.plan.limit(0.0))?;
        Ok(place)
    }

    /// A place for each of them; who can't have one is named in `left_out`.
    pub(super) fn places(
        &self,
        engine: &Engine,
        contenders: Vec<Contender>,
        left_out: &mut Vec<String>,
    ) -> Vec<(Contender, Place)> {
        let mut places = Vec::new();
        for contender in contenders {
            match self.place(engine, &contender) {
                Ok(place) => places.push((contender, place)),
                Err(error) => left_out.push(without(engine.kind, &contender, &error)),
            }
        }
        places
    }

    /// The command of a work.
    pub(super) fn command(&self, at: &(Contender, Place), work: &[String]) -> anyhow::Result<Command> {
        at.0.command(&self.built, &at.1, work)
    }

    /// One run from gate to gate.
    pub(super) fn work(&self, at: &(Contender, Place), seconds: f64, work: &[String]) -> anyhow::Result<Outcome> {
        let outcome = process::work(&mut self.command(at, work)?, self.plan.limit(seconds))?;
        note(format_args!(
            "{}: {}: {:.0}/s",
            at.0.label,
            work.first().map_or("", String::as_str),
            outcome.rate()
        ));
        Ok(outcome)
    }
}

/// Why one of them is not in a table.
pub(super) fn without(kind: Kind, contender: &Contender, error: &anyhow::Error) -> String {
    let line = format!("{}: {}: {error:#}", kind.name(), contender.label);
    note(format_args!("left out: {line}"));
    line
}

/// Each time the other way around, for the second may find the disk busy with what the first left.
pub(super) fn in_turn<T>(all: &[T], round: u32) -> impl Iterator<Item = (usize, &T)> {
    let backwards = round % 2 == 1;
    (0..all.len()).filter_map(move |step| {
        let at = if backwards { all.len() - 1 - step } else { step };
        Some((at, all.get(at)?))
    })
}

/// An aim of an engine.
pub(super) fn verdict(
    kind: Kind,
    what: impl Into<String>,
    against: impl Into<String>,
    is: Series,
    aim: (Good, f64),
) -> Verdict {
    Verdict {
        engine: kind.name(),
        what: what.into(),
        against: against.into(),
        is,
        good: aim.0,
        aim: aim.1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_round_goes_backwards() {
        let order = |round| in_turn(&["a", "b", "c"], round).map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!((order(0), order(1)), (vec![0, 1, 2], vec![2, 1, 0]));
    }
}
