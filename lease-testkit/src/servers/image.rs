use std::process::Command;

use super::ServerError;
use super::programs::output;

/// The official image.
const OFFICIAL: (&str, &str) = ("postgres", "17");

/// The image that `cargo xtask images` builds, for machines that can't pull.
const OURS: (&str, &str) = ("lease-test-postgres", "17");

/// How long pulling the official image may take, in seconds.
const PULL_LIMIT: &str = "60";

/// The name and tag of an image to run a server with: one that is there, else the official one, pulled.
pub(super) fn find() -> Result<(&'static str, &'static str), ServerError> {
    let missing = |looked_for: &str| ServerError::Missing {
        looked_for: looked_for.into(),
    };
    if docker(&["version", "--format", "{{.Server.Version}}"]).is_err() {
        return Err(missing("a Docker engine: `docker version` fails"));
    }
    let there = [OFFICIAL, OURS]
        .into_iter()
        .find(|image| docker(&["image", "inspect", &full(*image)]).is_ok());
    if let Some(image) = there {
        return Ok(image);
    }
    let mut pull = Command::new("timeout");
    pull.args([PULL_LIMIT, "docker", "pull", "--quiet", &full(OFFICIAL)]);
    match output(pull, "pull an image") {
        Ok(_) => Ok(OFFICIAL),
        Err(_) => Err(missing(
            "an image: the official one can't be pulled, `cargo xtask images` builds ours",
        )),
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
