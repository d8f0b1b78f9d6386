use std::process::Command;

use super::ServerError;
use super::programs::output;

/// The official image.
const OFFICIAL: &str = "postgres";

/// The image that `cargo xtask images` builds, for machines that can't pull.
const OURS: &str = "lease-test-postgres";

/// The version of a server in a container unless another is asked for.
const DEFAULT_VERSION: &str = "17";

/// PgBouncer, which `cargo xtask images` builds. There is no official image.
const POOLER: (&str, &str) = ("lease-test-pgbouncer", "1");

/// How long pulling the official image may take, in seconds.
const PULL_LIMIT: &str = "60";

/// The name and tag of an image to run a server with: one that is there, else the official one, pulled.
pub(super) fn find(version: Option<&str>) -> Result<(&'static str, String), ServerError> {
    engine()?;
    let version = version.unwrap_or(DEFAULT_VERSION);
    if let Some(image) = [OFFICIAL, OURS].into_iter().find(|image| is_there((image, version))) {
        return Ok((image, version.to_owned()));
    }
    let mut pull = Command::new("timeout");
    pull.args([PULL_LIMIT, "docker", "pull", "--quiet", &full((OFFICIAL, version))]);
    match output(pull, "pull an image") {
        Ok(_) => Ok((OFFICIAL, version.to_owned())),
        Err(_) => Err(missing(
            "an image: the official one can't be pulled, `cargo xtask images` builds ours",
        )),
    }
}

/// The name and tag of the image with PgBouncer.
pub(super) fn pooler() -> Result<(&'static str, &'static str), ServerError> {
    engine()?;
    if is_there(POOLER) {
        return Ok(POOLER);
    }
    Err(missing("an image with PgBouncer: `cargo xtask images` builds it"))
}

fn engine() -> Result<(), ServerError> {
    let answer = docker(&["version", "--format", "{{.Server.Version}}"]);
    answer
        .map(drop)
        .map_err(|_| missing("a Docker engine: `docker version` fails"))
}

fn is_there(image: (&str, &str)) -> bool {
    docker(&["image", "inspect", &full(image)]).is_ok()
}

fn missing(looked_for: &str) -> ServerError {
    ServerError::Missing {
        looked_for: looked_for.into(),
    }
}

fn full((name, tag): (&str, &str)) -> String {
    format!("{name}:{tag}")
}

fn docker(arguments: &[&str]) -> Result<String, ServerError> {
    let mut command = Command::new("docker");
    command.args(arguments);
    output(command, "look for an image")
}
