//! `lease watch`: the table of `list`, again and again.

use std::pin::pin;
use std::time::{Duration, SystemTime};

use crossterm::style::Color;
use lease_core::{BootClock, Clock, LeaseName, LeaseRow, Moment, RepoError};

use crate::answer::{Answer, Failure, code};
use crate::args::{self, Cli};
use crate::database::{Database, Url};
use crate::rows;
use crate::terminal::{self, Ending, Screen};

mod changes;

use changes::Changes;

/// The shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(100);
/// How often a screen is drawn anew while there is no answer.
const REDRAW: Duration = Duration::from_secs(1);

/// What `watch` can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only these leases; all if none is named.
    #[arg(value_parser = args::name)]
    names: Vec<LeaseName>,
    /// How often it looks.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = every)]
    every: Duration,
}

fn every(text: &str) -> Result<Duration, String> {
    match args::duration(text)? {
        every if every < SHORTEST => Err(format!(
            "at least {SHORTEST:?}: each look is a question to the database"
        )),
        every => Ok(every),
    }
}

/// That the database has had no answer.
struct Trouble {
    since: Moment,
    /// By this machine's wall clock, for programs.
    since_then: SystemTime,
    why: String,
}

/// Watches until it is told to end. The first look must succeed.
pub(crate) async fn run(cli: &Cli, options: &Options) -> Result<Answer, Failure> {
    let database = Url::of(&cli.place)?.open().await?;
    let mut ending = Ending::expect()?;
    let mut asked = BootClock.now();
    let first = tokio::select! {
        () = ending.told() => return Ok(Answer::shown(code::DONE)),
        first = look(&database, &options.names) => first?,
    };
    let mut view = View::new(cli, options.every)?;
    let mut is_seen = view.looked(Ok(first), asked)?;
    while is_seen {
        tokio::select! {
            () = ending.told() => break,
            () = BootClock.sleep_until(asked + options.every) => {}
        }
        asked = BootClock.now();
        let mut answer = pin!(look(&database, &options.names));
        let answer = loop {
            tokio::select! {
                () = ending.told() => return Ok(Answer::shown(code::DONE)),
                answer = &mut answer => break answer,
                () = BootClock.sleep_until(BootClock.now() + REDRAW) => view.waits(asked)?,
            }
        };
        is_seen = view.looked(answer, asked)?;
    }
    Ok(Answer::shown(code::DONE))
}

async fn look(database: &Database, names: &[LeaseName]) -> Result<Vec<LeaseRow>, RepoError> {
    let mut rows = database.list().await?;
    rows.retain(|row| names.is_empty() || names.iter().any(|name| name.as_str() == row.name));
    Ok(rows)
}

/// How it is shown: as a table that stays in its place, or as lines.
enum View {
    Table {
        screen: Screen,
        every: Duration,
        rows: Vec<LeaseRow>,
        trouble: Option<Trouble>,
    },
    Lines {
        changes: Changes,
        trouble: Option<Trouble>,
    },
}

impl View {
    fn new(cli: &Cli, every: Duration) -> Result<Self, Failure> {
        let trouble = None;
        Ok(if cli.json || !terminal::is_there() {
            let changes = Changes::new(cli.json);
            Self::Lines { changes, trouble }
        } else {
            Self::Table {
                screen: Screen::enter()?,
                every,
                rows: Vec::new(),
                trouble,
            }
        })
    }

    /// Shows what a look found that was asked for at a time. False when nobody sees it any more.
    fn looked(&mut self, answer: Result<Vec<LeaseRow>, RepoError>, asked: Moment) -> Result<bool, Failure> {
        let now = BootClock.now();
        match self {
            Self::Table { rows, trouble, .. } => {
                match answer {
                    Ok(found) => (*rows, *trouble) = (found, None),
                    Err(error) => met(trouble, error, asked),
                }
                self.draw(None)
            }
            Self::Lines { changes, trouble } => {
                let over = trouble.as_ref().map(|trouble| now.since(trouble.since));
                match answer {
                    Ok(rows) => {
                        *trouble = None;
                        let is_read = over.map_or(Ok(true), |over| changes.reachable(over))?;
                        Ok(is_read && changes.found(&rows)?)
                    }
                    Err(error) => {
                        let before = trouble.as_ref().map(|trouble| trouble.why.clone());
                        met(trouble, error, asked);
                        match trouble {
                            Some(trouble) if before.as_ref() != Some(&trouble.why) => {
                                let since = (trouble.since_then, now.since(trouble.since));
                                changes.unreachable(since, &trouble.why)
                            }
                            _ => Ok(true),
                        }
                    }
                }
            }
        }
    }

    /// Shows that the answer takes its time.
    fn waits(&self, asked: Moment) -> Result<(), Failure> {
        self.draw(Some(asked)).map(drop)
    }

    fn draw(&self, waits_since: Option<Moment>) -> Result<bool, Failure> {
        let Self::Table {
            screen,
            every,
            rows,
            trouble,
        } = self
        else {
            return Ok(true);
        };
        let ago = |moment: Moment| rows::human(BootClock.now().since(moment));
        let title = match (trouble, waits_since) {
            (Some(Trouble { since, why, .. }), _) => {
                terminal::paint(&format!("unreachable for {}: {why}", ago(*since)), Color::Red)
            }
            (None, Some(since)) => terminal::paint(&format!("no answer for {}", ago(since)), Color::Yellow),
            (None, None) => format!("every {}, until Ctrl-C", rows::human(*every)),
        };
        let mut lines = vec![title, String::new()];
        let (_, height) = terminal::size();
        for (at, line) in rows::table(rows).lines().enumerate() {
            // The table's first line is its header.
            let row = at.checked_sub(1).and_then(|at| rows.get(at));
            lines.push(row.map_or_else(|| line.to_owned(), |row| terminal::paint(line, color(row))));
        }
        if lines.len() > height {
            let hidden = lines.len() - height + 1;
            lines.truncate(height.saturating_sub(1));
            lines.push(format!("and {hidden} more: name those that you want to see"));
        }
        screen.show(&lines)
    }
}

/// Keeps since when there has been no answer, and the latest reason.
#[expect(
    clippy::disallowed_methods,
    reason = "for people and programs that read it; nothing is judged by it"
)]
fn met(trouble: &mut Option<Trouble>, error: RepoError, asked: Moment) {
    let why = Failure::from(error).text;
    match trouble {
        Some(trouble) => trouble.why = why,
        None => {
            let waited = BootClock.now().since(asked);
            *trouble = Some(Trouble {
                since: asked,
                since_then: SystemTime::now() - waited,
                why,
            });
        }
    }
}

fn color(row: &LeaseRow) -> Color {
    match rows::state(row) {
        "held" => Color::Green,
        "free" => Color::DarkGrey,
        _ => Color::Yellow,
    }
}
