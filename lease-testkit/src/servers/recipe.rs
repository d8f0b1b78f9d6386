use std::fmt::Debug;
use std::process::Command;

use nix::sys::signal::Signal;

use super::ServerError;
use super::place::Place;

/// How the programs of one engine make a server and run it.
pub(super) trait Recipe: Debug + Send {
    /// The engine, as its makers write it.
    const ENGINE: &'static str;

    /// How the names of its folders begin.
    const PREFIX: &'static str;

    /// The users to run it under, the better one first.
    const USERS: [&'static str; 2];

    /// What makes it end in order.
    const STOP: Signal;

    /// Makes the data folder and what is in it.
    fn make(&self, place: &Place) -> Result<(), ServerError>;

    /// The command that becomes the server.
    fn server(&self, place: &Place) -> Command;

    /// Makes the data folder a copy of the one of the server at `url`, which it will follow.
    fn copy(&self, _place: &Place, _url: &str) -> Result<(), ServerError> {
        Err(ServerError::Program {
            program: Self::ENGINE.into(),
            output: "only a PostgreSQL server can follow another here".into(),
        })
    }
}
