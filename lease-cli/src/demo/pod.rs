//! One pod of the demo: it waits for the lease, works under it, and tells what it does, until it is told to end.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lease_core::{BootClock, Clock, Event, Label, Outcome, Token, Wait};

use super::TTL;
use super::said::{What, line};
use crate::answer::{Answer, Failure, code};
use crate::args;
use crate::database::Url;
use crate::terminal::Ending;

/// The variable with the database's URL: everybody can read a command line.
pub(super) const URL: &str = "LEASE_DEMO_URL";
/// How long what f spawned works for one write.
pub(super) const WORK: Duration = Duration::from_millis(120);
/// How often f is polled.
const STEP: Duration = Duration::from_millis(40);

/// What a pod is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[arg(long, value_parser = args::label)]
    label: Label,
    /// What to remove when the demo is gone.
    #[arg(long)]
    folder: PathBuf,
}

/// Runs until it is told to end, or until the demo is gone.
pub(crate) async fn run(options: &Options) -> Result<Answer, Failure> {
    end_with_the_demo(options.folder.clone())?;
    let mut ending = Ending::expect()?;
    let renewed = |event: &Event| {
        if let Event::Renewed { token, .. } = event {
            say(What::Renewed, Some(*token));
        }
    };
    let lease = Url::of_variable(URL)?.open().await?.lease();
    let lease = lease.label(options.label.clone()).observer(renewed).build();
    loop {
        say(What::Waits, None);
        let guard = tokio::select! {
            guard = lease.acquire("demo", TTL, Wait::Forever) => guard,
            () = ending.told() => break,
        };
        let guard = guard.map_err(|error| Failure::config(error.to_string()))?;
        let token = guard.held().token();
        let outcome = guard
            .run(async |held| {
                say(What::Works, Some(token));
                let writer = Writer::start(token);
                let mut is_told = false;
                while !is_told && held.stop().is_none() {
                    say(What::Steps, Some(token));
                    tokio::select! {
                        () = BootClock.sleep_until(BootClock.now() + STEP) => {}
                        () = ending.told() => is_told = true,
                    }
                }
                // Whoever ends in order waits for what it spawned.
                writer.ends().await;
                is_told
            })
            .await;
        match outcome {
            Outcome::Ran(ran) => {
                say(What::Ended, Some(token));
                if ran.value {
                    break;
                }
            }
            _ => say(What::Dropped, Some(token)),
        }
    }
    lease.shutdown(Duration::ZERO).await;
    Ok(Answer::shown(code::DONE))
}

/// What f spawned: a thread that writes and never looks at the lease. It is not dropped with f.
struct Writer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    fn start(token: Token) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                thread::sleep(WORK);
                say(What::Writes, Some(token));
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }

    async fn ends(mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            while !thread.is_finished() {
                BootClock.sleep_until(BootClock.now() + Duration::from_millis(5)).await;
            }
        }
    }
}

impl Drop for Writer {
    /// With f. What is under way is still written.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

/// Nobody hears it when the demo is gone; then this process is about to end.
fn say(what: What, token: Option<Token>) {
    let line = line(what, token.map_or(0, Token::get), BootClock.now());
    let mut out = io::stdout().lock();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}

/// The demo holds the other end of our input, which is closed when it dies, however it dies. Then its folder is removed.
fn end_with_the_demo(folder: PathBuf) -> Result<(), Failure> {
    // A pod that is paused at that time would sleep for ever.
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGCONT)
        .map_err(|error| Failure::config(format!("prctl: {error}")))?;
    let watching = thread::Builder::new().spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        remove(&folder);
        std::process::exit(code::DONE.into());
    });
    watching
        .map(drop)
        .map_err(|error| Failure::config(format!("no thread: {error}")))
}

/// The other pods may make files in it meanwhile, but no folder.
fn remove(folder: &Path) {
    for _ in 0..500 {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => thread::sleep(Duration::from_millis(10)),
            _ if folder.exists() => {}
            _ => return,
        }
    }
}
