//! `lease demo`: three pods as real processes on one file. One is killed, one is paused for longer than its lease lasts, one is
//! told to end; and each time another takes over.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::answer::{Answer, Failure, code};
use crate::args::{Cli, Where};
use crate::database::Url;
use crate::terminal::Ending;

mod check;
mod pod;
mod said;
mod stage;
mod view;

pub(crate) use pod::{Options as PodOptions, run as run_pod};

use check::Check;
use said::What;
use stage::Stage;

/// How long a lease lasts here: short, so that one sees the takeovers.
const TTL: Duration = Duration::from_secs(2);
/// How long one looks at something before the next thing happens.
const LOOK: Duration = Duration::from_millis(1_500);
/// The pods.
const PODS: usize = 3;

/// Shows it, and says at the end what was seen.
pub(crate) async fn run(cli: &Cli) -> Result<Answer, Failure> {
    let ending = Ending::expect()?;
    let folder = TempDir::with_prefix("lease-demo-").map_err(|error| Failure::config(format!("a folder: {error}")))?;
    let url = url(&cli.place, folder.path())?;
    let database = url.open().await?;
    database.migrate().await?;
    let mut stage = Stage::new(cli, &url, folder.path(), ending)?;
    let seen = story(&mut stage).await;
    // Also of a story that was broken off, nothing goes on.
    stage.clear().await;
    seen.map(|seen| seen.answer(&stage))
}

/// A file of the demo's own, unless the command line names a database. What the environment names is somebody's.
fn url(place: &Where, folder: &Path) -> Result<Url, Failure> {
    if place.url.is_some() || place.url_file.is_some() || place.local {
        return Url::of(place);
    }
    let file = folder.join("leases.db");
    let path = file
        .to_str()
        .ok_or_else(|| Failure::config("the folder for temporary files is no UTF-8"))?;
    Ok(Url::in_words(format!("sqlite:{path}")))
}

/// What was seen, with its figures.
struct Seen {
    /// Of each tenure, the pod and its token.
    tenures: Vec<(usize, i64)>,
    after_kill: Duration,
    after_pause: Duration,
    after_end: Duration,
}

async fn story(stage: &mut Stage) -> Result<Seen, Failure> {
    for pod in 0..PODS {
        stage.start(pod)?;
    }
    stage.takeover().await?;
    let first = stage.works(LOOK).await?;

    let killed_at = stage.signal(first.pod, Signal::SIGKILL, "is killed with SIGKILL")?;
    let taken = stage.takeover().await?;
    let after_kill = taken.at.since(killed_at);
    let second = stage.works(LOOK).await?;

    // Not in a renewal: a process that is paused in one keeps the file's lock. But in the middle of its thread's work, so that
    // a write is under way when it goes on.
    for what in [What::Renewed, What::Writes] {
        stage.until(|said| said.what == what && said.pod == second.pod).await?;
    }
    stage.watch(pod::WORK / 3).await?;
    let paused_at = stage.signal(second.pod, Signal::SIGSTOP, "is paused with SIGSTOP")?;
    let taken = stage.takeover().await?;
    let after_pause = taken.at.since(paused_at);
    stage.watch(LOOK).await?;
    stage.signal(second.pod, Signal::SIGCONT, "goes on, and believes to hold the lease")?;
    stage
        .until(|said| said.what == What::Dropped && said.pod == second.pod)
        .await?;
    if stage.check.refused() == 0 {
        stage
            .until(|said| said.what == What::Writes && said.pod == second.pod)
            .await?;
    }
    let third = stage.works(LOOK / 2).await?;

    let ended_at = stage.signal(third.pod, Signal::SIGTERM, "is told to end by SIGTERM")?;
    let taken = stage.takeover().await?;
    let after_end = taken.at.since(ended_at);
    let fourth = stage.works(LOOK / 2).await?;
    let tenures = [&first, &second, &third, &fourth].map(|said| (said.pod, said.token));
    Ok(Seen {
        tenures: tenures.to_vec(),
        after_kill,
        after_pause,
        after_end,
    })
}

impl Seen {
    fn answer(&self, stage: &Stage) -> Answer {
        let check = &stage.check;
        let overlaps = check.overlaps();
        let grow = self.tenures.windows(2).all(|pair| pair[0].1 < pair[1].1);
        let answer = Answer::done(self.text(check), self.json(check, stage.events()));
        Answer {
            code: if overlaps == 0 && grow {
                code::DONE
            } else {
                code::NOTHING
            },
            ..answer
        }
    }

    fn text(&self, check: &Check) -> String {
        let [(a, t1), (b, t2), (c, t3), (d, t4)] = self.tenures[..] else {
            return String::new();
        };
        let name = stage::name;
        let times = |count: usize| {
            if count == 1 {
                "once".to_owned()
            } else {
                format!("{count} times")
            }
        };
        let overlaps = match check.overlaps() {
            0 => "At no time did two work at once".to_owned(),
            count => format!("Two worked at once {}", times(count)),
        };
        format!(
            "{} was killed at work under token {t1}, and {} took over {} ms later under token {t2}.\n\
             {} was paused for longer than its lease lasts, {} ms, and {} took over {} ms later under token {t3}. When {} went on, \
             its work was dropped; what it had under way was written too late and refused {}, since a larger token had been seen.\n\
             {} was told to end and released the lease, and {} had it {} ms later under token {t4}.\n\
             {overlaps}: {} overlaps in {} tenures, by the pods' own clocks.",
            name(a),
            name(b),
            millis(self.after_kill),
            name(b),
            millis(TTL),
            name(c),
            millis(self.after_pause),
            name(b),
            times(check.refused()),
            name(c),
            name(d),
            millis(self.after_end),
            check.overlaps(),
            check.tenures(),
        )
    }

    fn json(&self, check: &Check, events: Vec<Value>) -> Value {
        let tokens: Vec<i64> = self.tenures.iter().map(|(_, token)| *token).collect();
        json!({
            "ttl_ms": millis(TTL),
            "takeover_after_kill_ms": millis(self.after_kill),
            "takeover_after_pause_ms": millis(self.after_pause),
            "handover_after_end_ms": millis(self.after_end),
            "tokens": tokens,
            "refused_writes": check.refused(),
            "overlaps": check.overlaps(),
            "events": events,
        })
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
