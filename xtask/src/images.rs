//! Images for test servers, built from Debian's packages where none can be pulled.
//!
//! The base is made by `debootstrap` from the mirror that this machine's own package manager uses, so nothing is asked
//! of a place that the machine does not already trust and reach.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use lease_testkit::servers::{Dialect, MARIADB_VERSION, MYSQL_VERSION, POSTGRES_VERSION};
use serde_json::{Value, json};

use crate::report::Report;
use crate::run::Stopwatch;

/// Where the files of the images are, seen from this crate.
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../lease-testkit/images");

/// An image that the testkit looks for.
#[derive(Debug)]
pub(crate) struct Wanted {
    name: String,
    /// Its folder below [`FILES`].
    folder: &'static str,
    /// The Debian release that has its packages.
    suite: &'static str,
    /// What its Dockerfile wants to be told.
    argument: Option<(&'static str, String)>,
}

impl Wanted {
    /// Its name and tag.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// PostgreSQL of the version that the environment asks for.
///
/// # Errors
/// No Debian release that can be had has that version.
pub(crate) fn postgres() -> anyhow::Result<Wanted> {
    let version = env::var(POSTGRES_VERSION).unwrap_or_else(|_| "17".to_owned());
    let suite = match version.as_str() {
        "15" => "bookworm",
        "17" => "trixie",
        "18" => "forky",
        _ => bail!("Debian has no PostgreSQL {version}: {POSTGRES_VERSION} can be 15, 17 or 18"),
    };
    Ok(Wanted {
        name: format!("lease-test-postgres:{version}"),
        folder: "postgres",
        suite,
        argument: Some(("VERSION", version)),
    })
}

/// PgBouncer, for tests of poolers.
pub(crate) fn pgbouncer() -> Wanted {
    Wanted {
        name: "lease-test-pgbouncer:1".to_owned(),
        folder: "pgbouncer",
        suite: "trixie",
        argument: None,
    }
}

/// MySQL or MariaDB of the version that the environment asks for.
///
/// # Errors
/// No Debian release that can be had has that version.
pub(crate) fn mysql(dialect: Dialect) -> anyhow::Result<Wanted> {
    match dialect {
        Dialect::MariaDb => {
            let version = env::var(MARIADB_VERSION).unwrap_or_else(|_| "11.8".to_owned());
            let suite = match version.as_str() {
                "10.11" => "bookworm",
                "11.8" => "trixie",
                _ => bail!("Debian has no MariaDB {version}: {MARIADB_VERSION} can be 10.11 or 11.8"),
            };
            // The whole of it, and not its core, for what makes a node of a cluster.
            Ok(with_package("mariadb", &version, suite, "mariadb-server"))
        }
        _ => {
            let version = env::var(MYSQL_VERSION).unwrap_or_else(|_| "9".to_owned());
            if version != "9" {
                bail!("Debian has no MySQL {version}: {MYSQL_VERSION} can be 9");
            }
            // No release has it, as yet; what will be one has it.
            Ok(with_package("mysql", &version, "sid", "mysql-server-core"))
        }
    }
}

fn with_package(name: &str, version: &str, suite: &'static str, package: &str) -> Wanted {
    Wanted {
        name: format!("lease-test-{name}:{version}"),
        folder: "mysql",
        suite,
        argument: Some(("PACKAGE", package.to_owned())),
    }
}

/// One image, as it is reported.
#[derive(Debug)]
pub(crate) struct Image {
    image: String,
    megabytes: u64,
    /// Zero for an image that was there already.
    seconds: Value,
    built: bool,
}

/// Builds the images that are missing.
///
/// # Errors
/// If no Docker engine can be reached, `debootstrap` is missing, or a step fails; the error names it and its output.
pub(crate) fn run() -> anyhow::Result<Report> {
    let mut report = Report::new(&["image", "megabytes", "built", "seconds"]);
    let wanted = [
        postgres()?,
        pgbouncer(),
        mysql(Dialect::MariaDb)?,
        mysql(Dialect::Mysql)?,
    ];
    for image in ensure(&wanted)? {
        report.row([
            json!(image.image),
            json!(image.megabytes),
            json!(image.built),
            image.seconds,
        ]);
    }
    Ok(report)
}

/// Images, built if they were missing.
pub(crate) fn ensure(wanted: &[Wanted]) -> anyhow::Result<Vec<Image>> {
    output(Command::new("docker").args(["version", "--format", "{{.Server.Version}}"]))
        .context("no Docker engine can be reached")?;
    let mut images = Vec::new();
    for wanted in wanted {
        let base = format!("lease-test-debian:{}", wanted.suite);
        // The base is of use only to build the others.
        if !exists(&wanted.name) && !exists(&base) {
            images.push(ensure_image(&base, || import_base(&base, wanted.suite))?);
        }
        images.push(ensure_image(&wanted.name, || build(wanted, &base))?);
    }
    Ok(images)
}

fn ensure_image(name: &str, make: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Image> {
    let built = !exists(name);
    let watch = Stopwatch::start();
    if built {
        make().with_context(|| format!("building {name}"))?;
    }
    let seconds = if built { watch.seconds() } else { json!(0) };
    let bytes = output(Command::new("docker").args(["image", "inspect", "--format", "{{.Size}}", name]))?;
    let bytes: u64 = bytes.trim().parse().context("the size of an image")?;
    Ok(Image {
        image: name.to_owned(),
        megabytes: bytes / 1_000_000,
        seconds,
        built,
    })
}

fn exists(name: &str) -> bool {
    output(Command::new("docker").args(["image", "inspect", name])).is_ok()
}

/// Makes a minimal Debian and imports it as an image.
fn import_base(name: &str, suite: &str) -> anyhow::Result<()> {
    ensure!(
        Command::new("debootstrap").arg("--version").output().is_ok(),
        "debootstrap is not installed: `cargo xtask test --install`, or `apt-get install debootstrap`"
    );
    let mirror = mirror(suite)?;
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("root");
    // It mounts file systems in there. In a namespace of its own these end with it, and what removes the folder after
    // a failure can't reach into them.
    output(
        Command::new("unshare")
            .args(["--mount", "debootstrap", "--variant=minbase"])
            .arg(suite)
            .arg(&root)
            .arg(&mirror)
            .args(script(suite)),
    )?;

    let mut tar = Command::new("tar")
        .arg("-C")
        .arg(&root)
        .args([
            "--exclude=./var/cache/apt/archives/*.deb",
            "--exclude=./var/lib/apt/lists/*",
            "-c",
            ".",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .context("running tar")?;
    let stream = tar.stdout.take().context("the output of tar")?;
    let imported = output(Command::new("docker").args(["import", "-", name]).stdin(stream));
    ensure!(tar.wait()?.success(), "tar failed");
    imported.map(drop)
}

/// What to give `debootstrap` for a release that is younger than itself: the way of the one before, which is the same.
fn script(suite: &str) -> Option<PathBuf> {
    let scripts = Path::new("/usr/share/debootstrap/scripts");
    (!scripts.join(suite).exists()).then(|| scripts.join("sid"))
}

fn build(wanted: &Wanted, base: &str) -> anyhow::Result<()> {
    let context = Path::new(FILES).join(wanted.folder);
    let mut command = Command::new("docker");
    // The host's network, for a mirror may be reachable from the host alone.
    command.args([
        "build",
        "--network",
        "host",
        "--build-arg",
        &format!("BASE={base}"),
        "--tag",
        &wanted.name,
    ]);
    if let Some((name, value)) = &wanted.argument {
        command.args(["--build-arg", &format!("{name}={value}")]);
    }
    for proxy in ["http_proxy", "https_proxy"]
        .into_iter()
        .filter(|proxy| std::env::var_os(proxy).is_some())
    {
        command.args(["--build-arg", proxy]);
    }
    output(command.arg(context)).map(drop)
}

/// The archive this machine installs its own Debian packages from, as `scheme://host/path`.
fn mirror(suite: &str) -> anyhow::Result<String> {
    let release = fs::read_to_string("/etc/os-release").context("which system is this?")?;
    let value = |key: &str| {
        let line = release
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(line.trim_matches('"').to_owned())
    };
    ensure!(
        value("ID").as_deref() == Some("debian"),
        "this machine is not Debian, so its package mirror has no Debian {suite}; pull the official images instead"
    );
    let codename = value("VERSION_CODENAME").context("this Debian has no codename")?;
    let format = "$(RELEASE) $(COMPONENT) $(CREATED_BY) $(REPO_URI)";
    let targets = output(Command::new("apt-get").args(["indextargets", "--format", format]))?;
    // Its main archive, not those of updates and security, which hold only a few packages.
    let wanted = format!("{codename} main Packages ");
    match targets.lines().find_map(|line| line.strip_prefix(&wanted)) {
        Some(mirror) => Ok(mirror.trim().to_owned()),
        None => bail!("apt knows no main archive for {codename}: is it listed under another name?"),
    }
}

/// Runs a command to its end. Its output is shown only when it fails: builds print hundreds of lines.
fn output(command: &mut Command) -> anyhow::Result<String> {
    let program = format!("{:?}", command.get_program());
    let output = command.output().with_context(|| format!("running {program}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    bail!(
        "{program} failed ({}):\n{}\n{}",
        output.status,
        last_lines(&text),
        last_lines(&errors)
    )
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
