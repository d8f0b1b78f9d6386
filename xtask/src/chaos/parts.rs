//! What worlds are made of: programs of this machine, the files of images, and the program that plays them.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use clap::ValueEnum;
use lease_testkit::servers::Dialect;

use super::{Engine, must_be_root, word};
use crate::images::{self, Wanted};
use crate::report::note;
use crate::run::{self, cargo};
use crate::{machine, test};

/// Where Debian has the library that moves a program's clock.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// Everything a world needs.
#[derive(Debug)]
pub(super) struct Parts {
    /// Those that can be had here, in the order in which they are played.
    pub(super) engines: Vec<Engine>,
    /// Those that can't, each with the reason.
    pub(super) left_out: Vec<String>,
    /// The program of worlds and pods.
    pub(super) program: PathBuf,
    /// Where worlds write.
    pub(super) folder: PathBuf,
}

impl Parts {
    /// Finds or makes all of it.
    pub(super) fn gather(install: bool, wanted: &[Engine]) -> anyhow::Result<Self> {
        must_be_root()?;
        let machine = test::prepared(install)?;
        let missing = missing();
        if install && !missing.is_empty() {
            machine::install(&missing)?;
        } else if !missing.is_empty() {
            bail!("missing here: {} (use --install as root)", missing.join(", "));
        }
        run::must(&mut cargo(["build", "--quiet", "--package", "lease-chaos"]))?;
        let here = std::env::current_exe().context("where are we?")?;
        let mut parts = Self::of(if wanted.is_empty() {
            Engine::value_variants()
        } else {
            wanted
        });
        parts.program = here.with_file_name("lease-chaos");
        parts.folder = run::root().join("target").join("chaos");
        fs::create_dir_all(&parts.folder)?;
        for engine in std::mem::take(&mut parts.engines) {
            match parts.needs(engine, &machine) {
                Ok(()) => parts.engines.push(engine),
                Err(error) if wanted.is_empty() => {
                    note(format_args!("{} is left out: {error:#}", word(&engine)));
                    parts.left_out.push(format!("{}: {error:#}", word(&engine)));
                }
                Err(error) => return Err(error),
            }
        }
        if parts.engines.is_empty() {
            bail!("no engine can be had here: {}", parts.left_out.join("; "));
        }
        Ok(parts)
    }

    /// Nothing but the engines.
    pub(super) fn of(engines: &[Engine]) -> Self {
        Self {
            engines: engines.to_vec(),
            left_out: Vec::new(),
            program: PathBuf::new(),
            folder: PathBuf::new(),
        }
    }

    fn needs(&self, engine: Engine, machine: &machine::Machine) -> anyhow::Result<()> {
        match engine {
            Engine::Postgres | Engine::PostgresStandby => machine.postgres.as_ref().map(drop).context("no PostgreSQL"),
            Engine::Mariadb => machine.mariadb.as_ref().map(drop).context("no MariaDB"),
            Engine::Mysql | Engine::Galera => {
                if !machine.docker {
                    bail!("no Docker engine, whose image has the programs");
                }
                let root = self.root(engine).context("an engine with an image")?;
                unpack(&image(engine)?, &root)
            }
        }
    }

    /// The files of the image that has the engine's programs, if this machine's own are not used.
    pub(super) fn root(&self, engine: Engine) -> Option<PathBuf> {
        matches!(engine, Engine::Mysql | Engine::Galera).then(|| self.folder.join(format!("root-{}", word(&engine))))
    }
}

/// Debian packages that nothing else here needs.
fn missing() -> Vec<&'static str> {
    let mut missing = Vec::new();
    if run::which("iptables").is_none() {
        missing.push("iptables");
    }
    if !Path::new(FAKETIME).exists() {
        missing.push("faketime");
    }
    missing
}

fn image(engine: Engine) -> anyhow::Result<Wanted> {
    images::mysql(if engine == Engine::Mysql {
        Dialect::Mysql
    } else {
        Dialect::MariaDb
    })
}

/// Writes the files of an image into a folder, once.
fn unpack(image: &Wanted, folder: &Path) -> anyhow::Result<()> {
    images::ensure(std::slice::from_ref(image))?;
    if folder.join("usr").exists() {
        return Ok(());
    }
    note(format_args!("the files of {} are unpacked", image.name()));
    let partial = folder.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial)?;
    }
    fs::create_dir_all(&partial)?;
    let script = "id=$(docker create \"$1\") && docker export \"$id\" | tar -x -C \"$2\"; status=$?; \
                  docker rm \"$id\" >&2; exit $status";
    let mut unpack = Command::new("sh");
    run::must(unpack.args(["-c", script, "unpack", image.name()]).arg(&partial))?;
    Ok(fs::rename(partial, folder)?)
}

/// Small enough to be typed.
pub(super) fn any_seed() -> u64 {
    RandomState::new().hash_one(()) % 1_000_000
}
