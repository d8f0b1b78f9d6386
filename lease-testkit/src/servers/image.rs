use std::process::Command;

use super::ServerError;
use super::command::output;

/// The images of one engine's servers.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) engine: &'static str,
    pub(super) official: &'static str,
    /// What `cargo xtask images` builds, for machines that can't pull.
    pub(super) ours: &'static str,
    /// Its tag, unless another is asked for.
    pub(super) version: &'static str,
}

/// How long pulling the official image may take, in seconds.
const PULL_LIMIT: &str = "60";

/// The name and tag of an image to run a server with: one that is there, else the official one, pulled.
pub(super) fn find(image: &Image, version: Option<String>) -> Result<(&'static str, String), ServerError> {
    let Image {
        engine, official, ours, ..
    } = *image;
    docker_answers(engine)?;
    let version = version.unwrap_or_else(|| image.version.to_owned());
    if let Some(image) = [official, ours].into_iter().find(|image| is_there((image, &version))) {
        return Ok((image, version));
    }
    let mut pull = Command::new("timeout");
    pull.args([PULL_LIMIT, "docker", "pull", "--quiet", &full((official, &version))]);
    match output(pull, "pull an image") {
        Ok(_) => Ok((official, version)),
        Err(_) => Err(missing(
            engine,
            "an image: the official one can't be pulled, `cargo xtask images` builds ours",
        )),
    }
}

/// An image that only `cargo xtask images` builds, if it is there.
pub(super) fn built(
    engine: &'static str,
    name: &'static str,
    tag: String,
) -> Result<(&'static str, String), ServerError> {
    docker_answers(engine)?;
    if is_there((name, &tag)) {
        return Ok((name, tag));
    }
    let image = full((name, &tag));
    Err(missing(
        engine,
        &format!("the image {image}: `cargo xtask images` builds it"),
    ))
}

fn docker_answers(engine: &'static str) -> Result<(), ServerError> {
    let answer = docker(&["version", "--format", "{{.Server.Version}}"]);
    answer
        .map(drop)
        .map_err(|_| missing(engine, "a Docker engine: `docker version` fails"))
}

fn is_there(image: (&str, &str)) -> bool {
    docker(&["image", "inspect", &full(image)]).is_ok()
}

fn missing(engine: &'static str, looked_for: &str) -> ServerError {
    ServerError::Missing {
        engine,
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
