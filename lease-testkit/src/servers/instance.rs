use super::ServerError;

/// A server of our own, started as processes of this machine or as a container.
///
/// All calls block until the system has done what was asked; none waits for the server to answer SQL.
pub(super) trait Instance: std::fmt::Debug + Send {
    /// Starts the server on its port.
    fn start(&mut self) -> Result<(), ServerError>;

    /// Makes it a copy of the server at `url`, which will follow that one from its next start on.
    fn follow(&mut self, url: &str) -> Result<(), ServerError>;

    /// Ends the server in order: sessions are ended, everything is written to disk.
    fn stop(&mut self) -> Result<(), ServerError>;

    /// Ends all processes of the server at once.
    fn kill(&mut self) -> Result<(), ServerError>;

    /// Freezes all processes of the server.
    fn pause(&mut self) -> Result<(), ServerError>;

    /// Lets all processes of the server go on.
    fn resume(&mut self) -> Result<(), ServerError>;

    /// Freezes (`true`) the backend of this process id, as the server calls it, or lets it go on (`false`).
    fn freeze_backend(&mut self, pid: i32, frozen: bool) -> Result<(), ServerError>;

    /// How the server ended, if it did.
    fn ended(&mut self) -> Option<String>;

    /// The last lines of the server's log.
    fn log(&self) -> String;
}
