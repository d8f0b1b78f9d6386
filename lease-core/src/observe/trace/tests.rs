use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::*;
use crate::{Incumbent, Label, LeaseName, Loss, Operation, Release, RepoError, RepoErrorKind, Token};

/// One of each kind that is written differently.
fn events() -> Vec<Event> {
    let name = LeaseName::from_static("job");
    let token = Token::new(7).unwrap();
    let error = RepoError::new(RepoErrorKind::Timeout, Operation::Renew).with_source("no answer");
    let skip = |skip| Event::Skipped {
        name: name.clone(),
        skip,
    };
    let stopped = |stop| Event::Stopped {
        name: name.clone(),
        token,
        stop,
    };
    let ended = |release| Event::Ended {
        name: name.clone(),
        token,
        release,
        overrun: Duration::ZERO,
    };
    let holder = Label::new("pod").unwrap().new_holder();
    let incumbent = Incumbent::new(holder.as_str(), Duration::from_secs(3));
    vec![
        Event::Acquired {
            name: name.clone(),
            holder,
            token,
        },
        skip(Skip::Busy(Some(incumbent))),
        skip(Skip::BusyHere),
        skip(Skip::Store(error.clone())),
        skip(Skip::ShuttingDown),
        Event::Renewed {
            name: name.clone(),
            token,
            took: Duration::from_millis(1),
        },
        Event::RenewFailed {
            name: name.clone(),
            token,
            error: error.clone(),
            remaining: Duration::from_secs(1),
        },
        stopped(Stop::ShutDown),
        stopped(Stop::Resigned),
        stopped(Stop::Lost(Loss::Gone)),
        stopped(Stop::Overdue { last_error: None }),
        stopped(Stop::TimeLimit),
        stopped(Stop::Keeper),
        Event::Overrun {
            name: name.clone(),
            token,
        },
        ended(Ok(Release::Released)),
        ended(Err(error)),
        Event::Failed {
            name,
            token,
            error: "no luck".into(),
        },
        Event::KeeperDied,
    ]
}

/// Dashboards and alerts over logs rest on these.
#[test]
fn names_levels_and_fields_are_those_that_the_docs_list() {
    let written = Arc::<Mutex<BTreeSet<String>>>::default();
    let subscriber = tracing_subscriber::registry().with(Rows(written.clone()));
    tracing::subscriber::with_default(subscriber, || events().iter().for_each(Event::trace));
    let docs = include_str!("../../../../docs/operating.md");
    let table = docs.split("| message | level | fields |").nth(1).expect("the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let listed: BTreeSet<String> = rows.map(str::to_owned).collect();
    assert_eq!(*written.lock().unwrap(), listed);
}

/// Writes each event as a row of that table.
struct Rows(Arc<Mutex<BTreeSet<String>>>);

impl<S: tracing::Subscriber> Layer<S> for Rows {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        assert_eq!(event.metadata().target(), "lease");
        let (message, level) = (fields.message, event.metadata().level());
        let row = format!("| `{message}` | {level} | {} |", fields.others.join(" ")).replace("|  |", "| |");
        self.0.lock().unwrap().insert(row);
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    others: Vec<String>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.others.push(format!("`{name}`")),
        }
    }
}
