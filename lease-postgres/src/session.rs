//! Connections of our own: read from a URL, opened with a time limit, and set up for short statements.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use diesel_async::AsyncPgConnection;
use lease_core::{Operation, RepoError, RepoErrorKind};
use lease_diesel::{CONNECT_LIMIT, ConnectFailure, Subject, names_a_host, text};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

mod hosts;
mod options;
mod pooler;
mod tls;

/// Where and as whom to connect. It has no `Debug`: it knows the password.
pub(crate) struct Settings {
    /// One or more: the first that answers, and is as the URL wants it, is used.
    hosts: Vec<Config>,
    /// The host to begin with: the last that worked, or the one after the last that was tried. So a statement whose limit
    /// ends while a host says nothing leaves the next statement another host.
    begin_with: AtomicUsize,
    tls: MakeRustlsConnect,
    verifies: bool,
    /// Whether errors say which host it was.
    names_hosts: bool,
}

impl Settings {
    /// Reads a URL or a list of `key=value`, and the files it names.
    pub(crate) fn parse(url: &str) -> Result<Self, RepoError> {
        let refused = |reason: String| {
            RepoError::new(RepoErrorKind::Config, Operation::Connect)
                .with_source(text(reason))
                .never_executed()
        };
        let names_hosts = names_a_host(url);
        let (url, tls) = options::split(url).map_err(refused)?;
        let mut config: Config = url.parse().map_err(|error| refused(redacted(&error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(refused("the connection URL names no host".to_owned()));
        }
        if config.get_application_name().is_none() {
            config.application_name("lease");
        }
        config.ssl_mode(tls.mode.for_driver());
        let verifies = tls.verifies();
        let tls = tls.connector().map_err(refused)?;
        Ok(Self {
            hosts: hosts::each(&config),
            begin_with: AtomicUsize::new(0),
            tls,
            verifies,
            names_hosts,
        })
    }

    /// Whether a server must show a certificate that leads to a root.
    pub(crate) fn verifies(&self) -> bool {
        self.verifies
    }

    /// Whether each host is this machine.
    pub(crate) fn is_near(&self) -> bool {
        self.hosts.iter().all(hosts::is_near)
    }

    /// Opens a connection, driven by the runtime this is polled on. Each host gets an equal share of the time.
    pub(crate) async fn open(&self) -> Result<AsyncPgConnection, ConnectFailure> {
        self.first(|host| Box::pin(self.open_at(host))).await
    }

    /// The same, to be driven by the caller.
    pub(crate) async fn open_undriven(&self) -> Result<Undriven, ConnectFailure> {
        self.first(|host| Box::pin(self.enter(host))).await
    }

    /// What the first host gives that gives anything.
    async fn first<'a, T>(
        &'a self,
        open: impl Fn(&'a Config) -> Pin<Box<dyn Future<Output = Result<T, ConnectFailure>> + Send + 'a>>,
    ) -> Result<T, ConnectFailure> {
        let share = CONNECT_LIMIT / u32::try_from(self.hosts.len()).unwrap_or(u32::MAX);
        let mut failure = None;
        let first = self.begin_with.load(Ordering::Relaxed);
        for at in (0..self.hosts.len()).map(|step| (first + step) % self.hosts.len()) {
            self.begin_with.store(at + 1, Ordering::Relaxed);
            // In a box, since it is ten times as large as all the rest of an operation.
            let host = &self.hosts[at];
            let error = match timeout(share, open(host)).await {
                Ok(Ok(opened)) => {
                    self.begin_with.store(at, Ordering::Relaxed);
                    return Ok(opened);
                }
                Ok(Err(error)) => error,
                Err(_) => ConnectFailure::unavailable(format!("the server gave no connection within {share:?}")),
            };
            let error = if self.names_hosts {
                error.at(hosts::shown(host))
            } else {
                error
            };
            // Of several, one that says what to do is worth more than one that is away.
            let better = failure
                .as_ref()
                .is_none_or(|before: &ConnectFailure| before.kind == RepoErrorKind::Unavailable);
            if better {
                failure = Some(error);
            }
        }
        Err(failure.expect("a URL without a host was refused"))
    }

    /// Opens one connection and closes it again.
    pub(crate) async fn probe(&self) -> Result<(), RepoError> {
        match self.open().await {
            Ok(_) => Ok(()),
            Err(failure) => Err(failure.error(&Subject::new(Operation::Connect))),
        }
    }

    async fn open_at(&self, host: &Config) -> Result<AsyncPgConnection, ConnectFailure> {
        let Undriven { client, connection, .. } = self.enter(host).await?;
        AsyncPgConnection::try_from_client_and_connection(client, connection)
            .await
            .map_err(ConnectFailure::unavailable)
    }

    async fn enter(&self, host: &Config) -> Result<Undriven, ConnectFailure> {
        let mark = pooler::Mark::new();
        let connected = match mark.on(host).connect(self.tls.clone()).await {
            Err(error) if pooler::refused_options(&error) => host.connect(self.tls.clone()).await,
            other => other,
        };
        let (client, mut connection) = connected.map_err(failure)?;
        let is_ours_alone = {
            let mut check = pin!(pooler::check(&client, &mark));
            // Nobody else drives the connection yet.
            let ended = tokio::select! {
                biased;
                checked = &mut check => Ok(checked?),
                ended = &mut connection => Err(ended),
            };
            match ended {
                Ok(is_ours_alone) => is_ours_alone,
                Err(ended) => {
                    // The last thing it heard may have been the answer. What it has not heard never comes, and is not waited for.
                    let heard = poll_fn(|context| Poll::Ready(check.as_mut().poll(context))).await;
                    return Err(match (heard, ended) {
                        (Poll::Ready(Err(failure)), _) => failure,
                        (_, Err(error)) => failure(error),
                        (_, Ok(())) => {
                            ConnectFailure::unavailable(std::io::Error::from(std::io::ErrorKind::UnexpectedEof))
                        }
                    });
                }
            }
        };
        Ok(Undriven {
            client,
            connection,
            is_ours_alone,
        })
    }
}

/// A connection that does nothing until somebody drives it.
pub(crate) struct Undriven {
    pub(crate) client: Client,
    pub(crate) connection: Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>,
    /// Or else a pooler hands the server's sessions round.
    pub(crate) is_ours_alone: bool,
}

/// Why a connection could not be opened, by the SQLSTATE, which is there while connecting.
fn failure(error: tokio_postgres::Error) -> ConnectFailure {
    ConnectFailure {
        kind: connect_kind(&error),
        source: error.into(),
    }
}

fn connect_kind(error: &tokio_postgres::Error) -> RepoErrorKind {
    let refused = [
        SqlState::INVALID_PASSWORD,
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        SqlState::INVALID_CATALOG_NAME,
        SqlState::INSUFFICIENT_PRIVILEGE,
    ];
    match error.code() {
        Some(code) if refused.contains(code) => RepoErrorKind::Denied,
        Some(_) => RepoErrorKind::Unavailable,
        // Without a code the driver has only its own fixed words: for a password that is missing or of the wrong
        // method, and for settings that contradict each other.
        None if error.to_string().starts_with("authentication error") => RepoErrorKind::Denied,
        None if error.to_string().starts_with("invalid configuration") => RepoErrorKind::Config,
        None if is_refused_by_tls(error) => RepoErrorKind::Config,
        None => RepoErrorKind::Unavailable,
    }
}

/// Whether either side will not have the other's certificate or version, or the server has no TLS at all. A connection
/// that merely broke in a handshake is none of these.
fn is_refused_by_tls(error: &tokio_postgres::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(this) = cause {
        let inner = this.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if this.is::<rustls::Error>() || inner.is_some_and(|inner| inner.is::<rustls::Error>()) {
            return true;
        }
        cause = this.source();
    }
    // The driver's own words, which it has for this alone.
    error
        .source()
        .is_some_and(|source| source.to_string() == "server does not support TLS")
}

/// What is wrong with a URL, without any piece of it: the driver's own text may quote a part of the password.
fn redacted(error: &tokio_postgres::Error) -> String {
    let detail = error.source().map(ToString::to_string).unwrap_or_default();
    let option = detail
        .strip_prefix("invalid value for option `")
        .and_then(|rest| rest.strip_suffix('`'));
    match option {
        Some(option) => format!("the connection URL has an invalid value for `{option}`"),
        None if detail.starts_with("unknown option") => "the connection URL has an unknown option".to_owned(),
        None => "the connection URL can't be read".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(url: &str) -> String {
        let error = Settings::parse(url).err().expect("it is refused");
        assert_eq!(error.kind(), RepoErrorKind::Config);
        assert!(!error.may_have_executed());
        error.source().unwrap().to_string()
    }

    #[test]
    fn a_url_is_refused_with_the_reason_and_without_the_password() {
        for (url, why) in [
            ("postgres://u:hunter2@h:notaport/db", "`port`"),
            ("postgres://u:hunter2@h/db?sslmode=hunter2", "verify-full"),
            ("postgres://u:hunter2@h/db?sslmode=allow", "`prefer`"),
            (
                "postgres://u:hunter2@h/db?sslmode=verify-full&sslrootcert=/no/such",
                "`sslrootcert` /no/such",
            ),
            ("postgres://u:hunter2@h/db?sslcert=/no/such", "need each other"),
            (
                "host=h password=hunter2 sslcert=/no/such sslkey=/no/such",
                "`sslcert` /no/such",
            ),
            ("postgres://u:hunter2@h/db?hunter2=1", "unknown option"),
            ("host=h password=x hunter2 =y", "unknown option"),
            ("host=h password='hunter2", "can't be read"),
            ("", "names no host"),
            ("https://u:hunter2@h/db", "can't be read"),
        ] {
            let reason = reason(url);
            assert!(reason.contains(why), "{url}: {reason}");
            assert!(!reason.contains("hunter2"), "{url}: {reason}");
        }
    }

    #[test]
    fn a_url_that_prefers_or_disables_encryption_is_fine() {
        for mode in ["prefer", "disable"] {
            assert!(Settings::parse(&format!("postgres://u@h/db?sslmode={mode}")).is_ok());
        }
    }
}
