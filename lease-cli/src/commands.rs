//! What each command does.

use std::env;
use std::fs;

use clap::CommandFactory;
use lease_core::{Evict, Label, Release};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::answer::{Answer, Failure};
use crate::args::{Cli, Command, Why};
use crate::database::Url;
use crate::{demo, doctor, rows, watch};

/// Does what the command line says.
pub(crate) fn run(cli: &Cli) -> Result<Answer, Failure> {
    match &cli.command {
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "lease", &mut script);
            let script = String::from_utf8_lossy(&script).into_owned();
            let json = json!({ "script": script });
            Ok(Answer::done(script, json))
        }
        Command::Man { folder } => {
            let cannot = |error| Failure::config(format!("{}: {error}", folder.display()));
            fs::create_dir_all(folder).map_err(cannot)?;
            clap_mangen::generate_to(Cli::command(), folder).map_err(cannot)?;
            let text = format!("the manual pages are in {}", folder.display());
            Ok(Answer::done(text, json!({ "folder": folder.display().to_string() })))
        }
        Command::Migrate { print: true } => {
            let schema = Url::of(&cli.place)?.schema()?.trim_end();
            Ok(Answer::done(format!("{schema};"), json!({ "sql": schema })))
        }
        Command::Watch(options) => runtime()?.block_on(watch::run(cli, options)),
        Command::Doctor => runtime()?.block_on(doctor::run(cli)),
        Command::Demo => runtime()?.block_on(demo::run(cli)),
        Command::DemoPod(options) => runtime()?.block_on(demo::run_pod(options)),
        command => runtime()?.block_on(on_the_database(command, &Url::of(&cli.place)?)),
    }
}

fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::config(format!("no runtime: {error}")))
}

async fn on_the_database(command: &Command, url: &Url) -> Result<Answer, Failure> {
    let database = url.open().await?;
    Ok(match command {
        Command::List => {
            let found = database.list().await?;
            Answer::done(rows::table(&found), found.iter().map(rows::value).collect())
        }
        Command::Show { name } => match database.get(name).await? {
            Some(row) => Answer::done(rows::details(&row), rows::value(&row)),
            None => Answer::nothing(format!("there is no lease {name}"), json!(null)),
        },
        Command::Evict { name, why, now } => match database.evict(name, &by(why)?, &why.reason, *now).await? {
            Evict::Evicted { free_in } if free_in.is_zero() => Answer::done(
                format!("{name} is free; its old holder may still run until its next renewal"),
                json!({ "evicted": true, "free_in_ms": 0 }),
            ),
            Evict::Evicted { free_in } => Answer::done(
                format!("{name} is evicted, and free in {} at the latest", rows::human(free_in)),
                json!({ "evicted": true, "free_in_ms": millis(free_in) }),
            ),
            _ => Answer::nothing(format!("nobody holds {name}"), json!({ "evicted": false })),
        },
        Command::Pause { name, time, why } => {
            database.pause(name, *time, &by(why)?, &why.reason).await?;
            let row = database.get(name).await?;
            let left = row
                .as_ref()
                .and_then(lease_core::LeaseRow::expires_in)
                .unwrap_or_default();
            Answer::done(
                format!("{name} is paused for {}", rows::human(left)),
                json!({ "paused": true, "free_in_ms": millis(left) }),
            )
        }
        Command::Resume { name } => match database.resume(name).await? {
            Release::Released => {
                let row = database.get(name).await?;
                let left = row
                    .as_ref()
                    .and_then(lease_core::LeaseRow::expires_in)
                    .unwrap_or_default();
                let text = if left.is_zero() {
                    format!("{name} is free")
                } else {
                    format!(
                        "{name} is free in {}, when its old holder's time is over",
                        rows::human(left)
                    )
                };
                Answer::done(text, json!({ "resumed": true, "free_in_ms": millis(left) }))
            }
            Release::NotHeld => Answer::nothing(format!("{name} is not paused"), json!({ "resumed": false })),
        },
        Command::Purge { older_than } => {
            let purged = database.purge(*older_than).await?;
            Answer::done(format!("{purged} deleted"), json!({ "purged": purged }))
        }
        Command::Migrate { .. } => {
            database.migrate().await?;
            Answer::done("the table is there", json!({ "migrated": true }))
        }
        _ => unreachable!("it is done elsewhere"),
    })
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Who the operator is, for the row.
fn by(why: &Why) -> Result<Label, Failure> {
    if let Some(by) = &why.by {
        return Ok(by.clone());
    }
    let user = env::var("USER").ok().filter(|user| !user.is_empty());
    let host = gethostname::gethostname();
    let name = format!("{}@{}", user.as_deref().unwrap_or("somebody"), host.to_string_lossy());
    Label::new(&name).map_err(|error| Failure::config(format!("{error}: say who you are with --by")))
}
