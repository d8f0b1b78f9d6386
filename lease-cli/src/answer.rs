//! What a command answers: text for people, a JSON value for programs, and an exit code.

use lease_core::RepoError;
use serde_json::Value;

/// The exit codes, as `sysexits.h` has them where it has one that fits.
pub(crate) mod code {
    /// Done.
    pub(crate) const DONE: u8 = 0;
    /// There is nothing to do it to.
    pub(crate) const NOTHING: u8 = 1;
    /// `EX_USAGE`.
    pub(crate) const USAGE: u8 = 64;
    /// `EX_UNAVAILABLE`: may be better later.
    pub(crate) const UNAVAILABLE: u8 = 69;
    /// `EX_IOERR`: the lease was lost while the command ran.
    pub(crate) const LOST: u8 = 74;
    /// `EX_TEMPFAIL`: the lease was not acquired.
    pub(crate) const BUSY: u8 = 75;
    /// `EX_CONFIG`: somebody has to change something.
    pub(crate) const CONFIG: u8 = 78;
    /// As `timeout` has it.
    pub(crate) const TIME_LIMIT: u8 = 124;
    /// As shells have them.
    pub(crate) const NOT_EXECUTABLE: u8 = 126;
    pub(crate) const NOT_FOUND: u8 = 127;
}

/// The answer of a command that could do its work.
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) json: Value,
    pub(crate) code: u8,
    /// Whether everything was written already, while the command ran.
    pub(crate) is_shown: bool,
}

impl Answer {
    pub(crate) fn done(text: impl Into<String>, json: Value) -> Self {
        Self {
            text: text.into(),
            json,
            code: code::DONE,
            is_shown: false,
        }
    }

    /// Of a command that wrote all it had to say.
    pub(crate) fn shown(code: u8) -> Self {
        Self {
            code,
            is_shown: true,
            ..Self::done("", Value::Null)
        }
    }

    pub(crate) fn nothing(text: impl Into<String>, json: Value) -> Self {
        Self {
            code: code::NOTHING,
            ..Self::done(text, json)
        }
    }
}

/// Why a command could not do its work, in one line.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) text: String,
    pub(crate) code: u8,
}

impl Failure {
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            code: code::USAGE,
        }
    }

    pub(crate) fn config(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            code: code::CONFIG,
        }
    }
}

impl From<RepoError> for Failure {
    fn from(error: RepoError) -> Self {
        let code = if error.kind().is_transient() {
            code::UNAVAILABLE
        } else {
            code::CONFIG
        };
        Self {
            text: error.line(),
            code,
        }
    }
}
