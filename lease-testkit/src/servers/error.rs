use std::error::Error;
use std::sync::Arc;

/// Why there is no server, or why it did not do what a test asked of it; each text says what to do.
///
/// Cheap to clone: the failed start of a shared server is reported to every test that asked for it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// No URL is set, no container could be started, and no server programs are installed.
    #[error("needs {engine}: cargo xtask test (looked for {looked_for})")]
    Missing {
        /// The engine, as its makers write it.
        engine: &'static str,
        /// Each place that was tried, with what was missing there.
        looked_for: String,
    },

    /// A server was started and was not ready in time, or ended at once.
    #[error("the {engine} server did not become ready: {reason}; its log ends with:\n{log}")]
    NotReady {
        /// The engine, as its makers write it.
        engine: &'static str,
        /// What the last attempt to connect said, or how the server ended.
        reason: String,
        /// The last lines of the server's log.
        log: String,
    },

    /// A program could not be run, or it failed.
    #[error("`{program}` failed: {output}")]
    Program {
        /// The program and the step it was run for.
        program: String,
        /// What it printed, or why it could not be run.
        output: String,
    },

    /// The Docker engine refused a step.
    #[error("Docker, while trying to {step}: {reason}")]
    Docker {
        /// The step.
        step: &'static str,
        /// The engine's answer.
        reason: String,
    },

    /// A statement that prepares or changes the server failed.
    #[error("the server refused to {step}")]
    Sql {
        /// The step.
        step: &'static str,
        /// The driver's error.
        #[source]
        source: Arc<dyn Error + Send + Sync>,
    },

    /// The server did not answer in time; is it stopped or paused?
    #[error("the server did not {step} within {seconds} s: is it stopped or paused?")]
    TimedOut {
        /// The step.
        step: &'static str,
        /// The limit, in seconds.
        seconds: u64,
    },

    /// The test wants to stop, pause or kill a server that was given by URL.
    #[error("can't {step} a server that was given by URL: use `private`")]
    NotOurs {
        /// The step.
        step: &'static str,
    },

    /// A file, folder, port or process of this machine could not be used.
    #[error("could not {step}")]
    Io {
        /// The step.
        step: &'static str,
        /// The system's error.
        #[source]
        source: Arc<std::io::Error>,
    },
}

impl ServerError {
    /// For `map_err`: names the step that a driver's error came at.
    pub(super) fn sql<E: Error + Send + Sync + 'static>(step: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::Sql {
            step,
            source: Arc::new(source),
        }
    }

    /// For `map_err`: names the step at which the system refused.
    pub(super) fn io(step: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io {
            step,
            source: Arc::new(source),
        }
    }

    /// For `map_err`: names the step at which the kernel refused a call.
    pub(super) fn errno(step: &'static str) -> impl FnOnce(nix::errno::Errno) -> Self {
        move |errno| Self::Io {
            step,
            source: Arc::new(errno.into()),
        }
    }
}
