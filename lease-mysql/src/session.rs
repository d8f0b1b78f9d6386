//! Connections of our own: read from a URL, opened with a time limit, and set up for short statements.

use std::error::Error as StdError;
use std::net::IpAddr;

use diesel_async::AsyncMysqlConnection;
use lease_core::{Operation, RepoError, RepoErrorKind};
use lease_diesel::{CONNECT_LIMIT, ConnectFailure, Subject, names_a_host, text};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error, Opts, OptsBuilder, UrlError};
use tokio::time::timeout;

use crate::code::of_connecting;

mod options;
mod tls;

use tls::Encryption;

/// What each session of ours has. The limits are above every limit of the keeper, so that they only end statements whose
/// client has given up. MySQL has no limit for all statements; what is in `/*M!` is for MariaDB.
const SETUP: &str = "SET SESSION autocommit = 1, time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES', \
                     innodb_lock_wait_timeout = 5, lock_wait_timeout = 5 /*M!100200 , max_statement_time = 6 */";

/// On a Galera cluster: reads and writes wait for what the node has received before, so that a renewal finds a grant that was
/// given on another node.
const CAUSAL: &str = "SET SESSION wsrep_sync_wait = 3";

/// Where and as whom to connect. It has no `Debug`: it knows the password.
pub(crate) struct Settings {
    opts: Opts,
    /// For `ssl-mode=PREFERRED`: what is tried with a server that has no encryption.
    unencrypted: Option<Opts>,
    is_near: bool,
    verifies: bool,
    /// Its address, for a person, if that can be told.
    server: Option<String>,
}

impl Settings {
    /// Reads a URL, and the files it names.
    pub(crate) fn parse(url: &str) -> Result<Self, RepoError> {
        let refused = |reason: String| {
            RepoError::new(RepoErrorKind::Config, Operation::Connect)
                .with_source(text(reason))
                .never_executed()
        };
        let names_a_host = names_a_host(url);
        let (url, tls) = options::split(url).map_err(refused)?;
        let opts = Opts::from_url(&url).map_err(|error| refused(redacted(&error)))?;
        let is_local = opts.socket().is_some() || is_loopback(opts.ip_or_hostname());
        let address = || format!("{}:{}", opts.ip_or_hostname(), opts.tcp_port());
        let server = opts.socket().map_or_else(address, ToOwned::to_owned);
        let verifies = tls.verifies(is_local);
        let encryption = tls.encryption(is_local).map_err(refused)?;
        let builder = OptsBuilder::from_opts(opts)
            // Else a TCP connection to this machine becomes one to a socket, also behind a tunnel to another machine.
            .prefer_socket(false)
            .client_found_rows(true)
            // Diesel has its own.
            .stmt_cache_size(0)
            .init(vec![SETUP])
            // Without these two the driver asks the server for them at each connection.
            .max_allowed_packet(Some(1 << 24))
            .wait_timeout(Some(28_800));
        let unencrypted = builder.clone().ssl_opts(None);
        let (opts, unencrypted) = match encryption {
            Encryption::Never => (unencrypted, None),
            Encryption::IfPossible(ssl) => (builder.ssl_opts(ssl), Some(unencrypted.into())),
            Encryption::Always(ssl) => (builder.ssl_opts(ssl), None),
        };
        Ok(Self {
            opts: opts.into(),
            unencrypted,
            is_near: is_local,
            verifies,
            server: names_a_host.then_some(server),
        })
    }

    /// Whether a server must show a certificate that leads to a root.
    pub(crate) fn verifies(&self) -> bool {
        self.verifies
    }

    /// Whether the host is this machine.
    pub(crate) fn is_near(&self) -> bool {
        self.is_near
    }

    /// Opens a connection, driven by the runtime this is polled on.
    pub(crate) async fn open(&self) -> Result<AsyncMysqlConnection, ConnectFailure> {
        // In a box, since it is ten times as large as all the rest of an operation.
        timeout(CONNECT_LIMIT, Box::pin(self.open_in_any_time()))
            .await
            .unwrap_or_else(|_| {
                let reason = format!("the server gave no connection within {CONNECT_LIMIT:?}");
                Err(ConnectFailure::unavailable(reason))
            })
            .map_err(|failure| match &self.server {
                Some(server) => failure.at(server.clone()),
                None => failure,
            })
    }

    /// Opens one connection and closes it again.
    pub(crate) async fn probe(&self) -> Result<(), RepoError> {
        match self.open().await {
            Ok(_) => Ok(()),
            Err(failure) => Err(failure.error(&Subject::new(Operation::Connect))),
        }
    }

    async fn open_in_any_time(&self) -> Result<AsyncMysqlConnection, ConnectFailure> {
        let connected = match (Conn::new(self.opts.clone()).await, &self.unencrypted) {
            (Err(Error::Driver(DriverError::NoClientSslFlagFromServer)), Some(opts)) => Conn::new(opts.clone()).await,
            (other, _) => other,
        };
        let mut connection = connected.map_err(failure)?;
        let galera: Option<(String, String)> = connection
            .query_first("SHOW VARIABLES LIKE 'wsrep_on'")
            .await
            .map_err(failure)?;
        if galera.is_some_and(|(_, value)| value == "ON") {
            connection.query_drop(CAUSAL).await.map_err(failure)?;
        }
        AsyncMysqlConnection::try_from(connection)
            .await
            .map_err(ConnectFailure::unavailable)
    }
}

/// Whether what is sent to this host stays on this machine.
fn is_loopback(host: &str) -> bool {
    let address: Result<IpAddr, _> = host.trim_matches(['[', ']']).parse();
    address.map_or(host == "localhost", |address| address.is_loopback())
}

/// Why a connection could not be opened, by the server's number or the driver's kind.
fn failure(error: Error) -> ConnectFailure {
    let kind = match &error {
        Error::Server(error) => of_connecting(error.code),
        Error::Url(_) | Error::Driver(DriverError::NoClientSslFlagFromServer) => RepoErrorKind::Config,
        Error::Driver(
            DriverError::UnknownAuthPlugin { .. }
            | DriverError::CleartextPluginDisabled
            | DriverError::MysqlOldPasswordDisabled,
        ) => RepoErrorKind::Denied,
        error if is_refused_by_tls(error) => RepoErrorKind::Config,
        _ => RepoErrorKind::Unavailable,
    };
    ConnectFailure {
        kind,
        source: error.into(),
    }
}

/// Whether either side will not have the other's certificate or version. A connection that merely broke in a handshake is
/// none of these.
fn is_refused_by_tls(error: &Error) -> bool {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(this) = cause {
        let inner = this.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if this.is::<rustls::Error>() || inner.is_some_and(|inner| inner.is::<rustls::Error>()) {
            return true;
        }
        cause = this.source();
    }
    false
}

/// What is wrong with a URL, without any piece of it: the driver's own text may quote a part of the password.
fn redacted(error: &UrlError) -> String {
    match error {
        UrlError::InvalidParamValue { param, .. } => format!("the connection URL has an invalid value for `{param}`"),
        UrlError::UnknownParameter { .. } => "the connection URL has an unknown option".to_owned(),
        UrlError::UnsupportedScheme { .. } => {
            "the connection URL begins neither with `mysql://` nor with `mariadb://`".to_owned()
        }
        _ => "the connection URL can't be read".to_owned(),
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
            ("mysql://u:hunter2@h:notaport/db", "can't be read"),
            ("mysql://u:1?hunter2@h/db", "unknown option"),
            ("mysql://u:hunter2@h/db?ssl-mode=hunter2", "VERIFY_IDENTITY"),
            ("mysql://u:hunter2@h/db?ssl-ca=/no/such", "`ssl-ca` /no/such"),
            (
                "mysql://u:hunter2@h/db?ssl-mode=REQUIRED&ssl-cert=/no/such",
                "need each other",
            ),
            (
                "mysql://u:hunter2@h/db?ssl-mode=REQUIRED&ssl-cert=/no/such&ssl-key=/no/such",
                "`ssl-cert` /no/such",
            ),
            ("mysql://u:hunter2@h/db?require_ssl=true", "`ssl-mode`"),
            ("mysql://u:hunter2@h/db?tcp_keepalive=hunter2", "`tcp_keepalive_ms`"),
            ("https://u:hunter2@h/db", "mariadb://"),
            ("", "can't be read"),
        ] {
            let reason = reason(url);
            assert!(reason.contains(why), "{url}: {reason}");
            assert!(!reason.contains("hunter2"), "{url}: {reason}");
        }
    }

    #[test]
    fn both_schemes_and_a_machine_of_its_own_are_fine() {
        for url in [
            "mysql://u@localhost/db",
            "mariadb://u:p@127.0.0.1:3307/db?ssl-mode=preferred",
        ] {
            assert!(Settings::parse(url).is_ok(), "{url}");
        }
    }
}
