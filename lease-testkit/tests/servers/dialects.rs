//! MySQL and MariaDB. The modules at the end say which tests each of them has.

use std::fs;
use std::io::{self, Read};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use lease_testkit::servers::{Dialect, Mysql, ServerError, Settings, Source};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use tokio::runtime::Runtime;

use crate::owner::{
    container_with, containers_of, inspect, is_owner, kill, own, owner, takes_connections, volumes, wait_until,
};

/// How long a client waits for a server, which answers in milliseconds unless the machine is very busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long one waits for a server that never answers.
const IMPATIENCE: Duration = Duration::from_secs(2);

fn private(dialect: Dialect, source: Source) -> Mysql {
    Mysql::private(dialect, &Settings::default().source(source)).unwrap()
}

/// A client as any other, on a runtime of its own, subject to the server's defaults.
pub(crate) struct Client {
    session: Conn,
    runtime: Runtime,
}

impl Client {
    pub(crate) fn connect(url: &str) -> Result<Self, mysql_async::Error> {
        Self::connect_within(PATIENCE, url)
    }

    fn connect_within(limit: Duration, url: &str) -> Result<Self, mysql_async::Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let opts = OptsBuilder::from_opts(Opts::from_url(url)?).prefer_socket(false);
        let session = runtime.block_on(async { tokio::time::timeout(limit, Conn::new(opts)).await });
        let session = session.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))?;
        Ok(Self { session, runtime })
    }

    pub(crate) fn run(&mut self, text: &str) -> Result<(), mysql_async::Error> {
        self.runtime.block_on(self.session.query_drop(text))
    }

    fn ask(&mut self, text: &str) -> String {
        let answer = self.runtime.block_on(self.session.query_first(text));
        answer.unwrap().unwrap()
    }
}

/// Whether a client that connects is not answered, not even that nobody is there.
pub(crate) fn is_silent(url: &str) -> bool {
    let kind = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
    match Client::connect_within(IMPATIENCE, url) {
        Err(mysql_async::Error::Io(mysql_async::IoError::Io(error))) => kind(&error),
        _ => false,
    }
}

fn each_database_is_empty_private_and_dropped_with_its_guard(dialect: Dialect) {
    let server = Mysql::shared(dialect).unwrap();
    assert_eq!(server.dialect(), dialect);
    let first = server.database().unwrap();
    let second = server.database().unwrap();
    first.sql("CREATE TABLE t (i int)").unwrap();
    second.sql("CREATE TABLE t (i int)").unwrap();
    assert_eq!(first.sql("SELECT DATABASE()").unwrap(), [first.name()]);
    assert!(first.url().contains(first.name()));

    // A transaction under way would hold the drop up for ever.
    let mut client = Client::connect(first.url()).unwrap();
    client.run("START TRANSACTION").unwrap();
    client.run("INSERT INTO t VALUES (1)").unwrap();
    let name = first.name().to_owned();
    drop(first);
    assert!(client.run("SELECT 1").is_err());
    let left = server.sql(&format!("SHOW DATABASES LIKE '{name}'")).unwrap();
    assert!(left.is_empty());
}

fn the_sessions_of_a_database_are_its_clients(dialect: Dialect) {
    let server = Mysql::shared(dialect).unwrap();
    let database = server.database().unwrap();
    let others = server.database().unwrap();
    let _other = Client::connect(others.url()).unwrap();
    let mut clients = [(); 2].map(|()| Client::connect(database.url()).unwrap());
    let mut ids = clients
        .each_mut()
        .map(|client| client.ask("SELECT CONNECTION_ID()").parse::<u64>().unwrap());
    ids.sort_unstable();
    for _ in 0..20 {
        database.sql("SELECT 1").unwrap();
        assert_eq!(database.connection_ids().unwrap(), ids);
    }
    server.sql(&format!("KILL {}", ids[0])).unwrap();
    wait_until("the session is gone", || database.connection_ids().unwrap() == ids[1..]);
}

fn sql_gives_the_first_column_of_all_rows_as_text(dialect: Dialect) {
    let database = Mysql::shared(dialect).unwrap().database().unwrap();
    let rows = database
        .sql("CREATE TABLE t (i int); INSERT INTO t VALUES (1), (NULL); SELECT i, 7 FROM t; SELECT 'a''b'")
        .unwrap();
    assert_eq!(rows, ["1", "", "a'b"]);
    let error = database.sql("SELECT 1; SELECT nonsense").unwrap_err();
    assert!(matches!(error, ServerError::Sql { .. }), "{error}");
}

fn a_server_does_what_tests_ask_of_it(server: &Mysql) {
    let database = server.database().unwrap();
    database
        .sql("CREATE TABLE t (i int); INSERT INTO t VALUES (7)")
        .unwrap();
    assert_eq!(server.sql("SELECT @@max_connections").unwrap(), ["300"]);

    server.pause().unwrap();
    assert!(is_silent(database.url()));
    server.resume().unwrap();
    Client::connect(database.url()).unwrap();

    server.stop().unwrap();
    assert!(!takes_connections(server.url()) || Client::connect(database.url()).is_err());
    server.start().unwrap();
    assert_eq!(database.sql("SELECT i FROM t").unwrap(), ["7"]);

    database.sql("INSERT INTO t VALUES (9)").unwrap();
    server.kill().unwrap();
    assert!(Client::connect(database.url()).is_err());
    server.start().unwrap();
    assert_eq!(database.sql("SELECT i FROM t").unwrap(), ["7", "9"]);

    a_read_only_server_refuses_all_but_us(server);
    odd_defaults_are_not_ours(server);
    counters_are_read(server);
}

fn counters_are_read(server: &Mysql) {
    let created = || server.status("Com_create_table").unwrap();
    let before = created().unwrap();
    let database = server.database().unwrap();
    database
        .sql("CREATE TABLE one (i int); CREATE TABLE two (i int)")
        .unwrap();
    assert_eq!(created(), Some(before + 2));
    assert_eq!(server.status("no_such_counter").unwrap(), None);
}

fn a_read_only_server_refuses_all_but_us(server: &Mysql) {
    let database = server.database().unwrap();
    database
        .sql("CREATE TABLE t (i int); CREATE USER app IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO app")
        .unwrap();
    // With all rights that an application may have; those to write nevertheless are for administrators.
    let rights = match server.dialect() {
        Dialect::MariaDb => "READ ONLY ADMIN, SUPER",
        _ => "CONNECTION_ADMIN, SUPER",
    };
    database.sql(&format!("REVOKE {rights} ON *.* FROM app")).unwrap();
    let (_, place) = database.url().split_once('@').unwrap();
    let mut app = Client::connect(&format!("mysql://app:secret@{place}")).unwrap();
    app.run("INSERT INTO t VALUES (1)").unwrap();

    server.set("read_only", "ON").unwrap();
    assert!(app.run("INSERT INTO t VALUES (2)").is_err());
    database.sql("INSERT INTO t VALUES (3)").unwrap();
    drop(server.database().unwrap());
    server.reset("read_only").unwrap();
    app.run("INSERT INTO t VALUES (4)").unwrap();
    assert_eq!(database.sql("SELECT i FROM t").unwrap(), ["1", "3", "4"]);
}

fn odd_defaults_are_not_ours(server: &Mysql) {
    let database = server.database().unwrap();
    let read_only = match server.dialect() {
        Dialect::MariaDb => "tx_read_only",
        _ => "transaction_read_only",
    };
    let odd = [
        ("autocommit", "OFF"),
        ("sql_mode", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES"),
        ("time_zone", "+05:00"),
        (read_only, "ON"),
        ("max_connections", "42"),
    ];
    let all = format!(
        "SELECT CONCAT_WS(';', @@autocommit + 0, @@sql_mode, @@time_zone, @@{read_only} + 0, @@max_connections)"
    );
    let usual = Client::connect(database.url()).unwrap().ask(&all);
    server.set("max_connections", "41").unwrap();
    for (variable, value) in odd {
        server.set(variable, value).unwrap();
    }
    let told = Client::connect(database.url()).unwrap().ask(&all);
    assert_eq!(told, "0;ANSI_QUOTES,NO_BACKSLASH_ESCAPES;+05:00;1;42");
    database
        .sql("CREATE TABLE t (i int); INSERT INTO t VALUES (\"1\")")
        .unwrap();
    assert_eq!(database.sql("SELECT i FROM t").unwrap(), ["1"]);
    assert_eq!(database.sql("SELECT @@time_zone").unwrap(), ["+00:00"]);
    for (variable, _) in odd {
        server.reset(variable).unwrap();
    }
    assert_eq!(Client::connect(database.url()).unwrap().ask(&all), usual);
}

fn a_server_is_set_up_as_it_was_asked(dialect: Dialect, source: Source) {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let sockets = tempfile::tempdir().unwrap();
    fs::set_permissions(&sockets, fs::Permissions::from_mode(0o777)).unwrap();
    let settings = Settings::durable()
        .source(source)
        .with("max_connections", "43")
        .with_file("ssl_cert", certificate.pem())
        .with_file("ssl_key", key.serialize_pem())
        .sockets(sockets.path());
    let server = Mysql::private(dialect, &settings).unwrap();
    // All of it is still so when it has been started again.
    server.stop().unwrap();
    server.start().unwrap();
    let durable = "SELECT CONCAT_WS(';', @@max_connections, @@innodb_flush_log_at_trx_commit, @@sync_binlog, @@innodb_doublewrite)";
    let told = server.sql(durable).unwrap().remove(0);
    assert!(["43;1;1;1", "43;1;1;ON"].contains(&&*told), "{told}");
    assert!(sockets.path().join("mysqld.sock").exists());
    let path = server.sql("SELECT @@ssl_cert").unwrap().remove(0);
    assert!(path.ends_with("/ssl_cert"), "{path}");
    // Where a server can't use its certificate, it goes on without encryption.
    assert!(offers_tls(server.url()));
    if source == Source::Container {
        nothing_stands_between_its_clients_the_server_and_the_disk(server, sockets.path());
    }
}

/// The winner beside losers on MySQL was slower by a sixth, of which the engine's two processes on the way were most.
fn nothing_stands_between_its_clients_the_server_and_the_disk(server: Mysql, sockets: &Path) {
    let container = container_with(sockets);
    let network = inspect(&container, "{{.HostConfig.NetworkMode}}");
    assert_eq!(network, "host");
    let volume = inspect(
        &container,
        "{{range .Mounts}}{{if eq .Destination \"/var/lib/mysql\"}}{{.Name}}{{end}}{{end}}",
    );
    assert!(volumes().contains(&volume), "{volume}");
    drop(server);
    assert!(!volumes().contains(&volume), "{volume}");
}

/// Whether the server's greeting says that it can encrypt.
fn offers_tls(url: &str) -> bool {
    const CLIENT_SSL: u8 = 0x08;
    let (_, place) = url.split_once('@').unwrap();
    let mut stream = TcpStream::connect(place.split('/').next().unwrap()).unwrap();
    let mut greeting = [0; 256];
    let length = stream.read(&mut greeting).unwrap();
    // A header of four bytes, the protocol's version, the server's as text, an id of four bytes, nine of a challenge.
    let version = greeting[5..length].iter().position(|byte| *byte == 0).unwrap();
    greeting[5 + version + 1 + 4 + 9 + 1] & CLIENT_SSL != 0
}

fn a_wrong_login_is_an_error_at_once(dialect: Dialect) {
    let server = Mysql::shared(dialect).unwrap();
    let wrong = server.url().replace("//root:", "//root:not");
    let error = Mysql::at(dialect, &wrong).unwrap_err();
    assert!(
        matches!(&error, ServerError::NotReady { reason, .. } if reason.contains("Access denied")),
        "{error}"
    );
    assert!(error.to_string().starts_with(&format!("the {} server", dialect.name())));
}

fn a_dropped_server_is_gone_at_once(dialect: Dialect, source: Source) {
    for paused in [false, true] {
        let server = private(dialect, source);
        let (url, folder) = (server.url().to_owned(), folder_of(&server));
        assert!(takes_connections(&url));
        if paused {
            server.pause().unwrap();
        }
        drop(server);
        assert!(!takes_connections(&url));
        assert!(source == Source::Container || !Path::new(&folder).exists());
    }
}

/// `test` is the name of the one that calls this.
fn a_server_is_gone_after_its_owner_was_killed(dialect: Dialect, source: Source, test: &str) {
    if is_owner() {
        own(private(dialect, source).url());
    }
    let (owner, url) = owner(test);
    let id = owner.id();
    let server = Mysql::at(dialect, &url).unwrap();
    let folder = folder_of(&server);
    let is_there = || match source {
        Source::Container => containers_of(id) != 0,
        _ => Path::new(&folder).exists(),
    };
    assert!(is_there());
    kill(owner);
    wait_until("it is gone", || !is_there());
    assert!(server.sql("SELECT 1").is_err());
}

fn folder_of(server: &Mysql) -> String {
    let data = server.sql("SELECT @@datadir").unwrap().remove(0);
    Path::new(&data).parent().unwrap().to_str().unwrap().to_owned()
}

mod mysql {
    use super::*;

    const DIALECT: Dialect = Dialect::Mysql;

    #[test]
    #[ignore = "needs MySQL: cargo xtask test"]
    fn each_database_is_empty_private_and_dropped_with_its_guard() {
        super::each_database_is_empty_private_and_dropped_with_its_guard(DIALECT);
    }

    #[test]
    #[ignore = "needs MySQL: cargo xtask test"]
    fn the_sessions_of_a_database_are_its_clients() {
        super::the_sessions_of_a_database_are_its_clients(DIALECT);
    }

    #[test]
    #[ignore = "needs MySQL: cargo xtask test"]
    fn sql_gives_the_first_column_of_all_rows_as_text() {
        super::sql_gives_the_first_column_of_all_rows_as_text(DIALECT);
    }

    #[test]
    #[ignore = "needs MySQL: cargo xtask test"]
    fn a_wrong_login_is_an_error_at_once() {
        super::a_wrong_login_is_an_error_at_once(DIALECT);
    }

    #[test]
    #[ignore = "needs MySQL: cargo xtask test"]
    fn a_container_does_what_tests_ask_of_it() {
        a_server_does_what_tests_ask_of_it(&private(DIALECT, Source::Container));
    }

    #[test]
    #[ignore = "needs MySQL: cargo xtask test"]
    fn a_container_is_set_up_as_it_was_asked() {
        a_server_is_set_up_as_it_was_asked(DIALECT, Source::Container);
    }

    #[test]
    #[ignore = "needs MySQL: cargo xtask test"]
    fn a_container_that_is_dropped_is_gone_at_once() {
        a_dropped_server_is_gone_at_once(DIALECT, Source::Container);
    }

    #[test]
    #[ignore = "needs MySQL: cargo xtask test"]
    fn a_container_is_gone_after_its_owner_was_killed() {
        let test = "dialects::mysql::a_container_is_gone_after_its_owner_was_killed";
        a_server_is_gone_after_its_owner_was_killed(DIALECT, Source::Container, test);
    }

    #[test]
    fn programs_of_this_machine_are_not_used() {
        let error = Mysql::private(DIALECT, &Settings::default().source(Source::Local)).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("needs MySQL: cargo xtask test (looked for a container"),
            "{text}"
        );
    }
}

mod mariadb {
    use super::*;

    const DIALECT: Dialect = Dialect::MariaDb;

    #[test]
    #[ignore = "needs MariaDB: cargo xtask test"]
    fn each_database_is_empty_private_and_dropped_with_its_guard() {
        super::each_database_is_empty_private_and_dropped_with_its_guard(DIALECT);
    }

    #[test]
    #[ignore = "needs MariaDB: cargo xtask test"]
    fn the_sessions_of_a_database_are_its_clients() {
        super::the_sessions_of_a_database_are_its_clients(DIALECT);
    }

    #[test]
    #[ignore = "needs MariaDB: cargo xtask test"]
    fn sql_gives_the_first_column_of_all_rows_as_text() {
        super::sql_gives_the_first_column_of_all_rows_as_text(DIALECT);
    }

    #[test]
    #[ignore = "needs MariaDB: cargo xtask test"]
    fn a_wrong_login_is_an_error_at_once() {
        super::a_wrong_login_is_an_error_at_once(DIALECT);
    }

    #[test]
    #[ignore = "needs MariaDB: cargo xtask test"]
    fn a_container_does_what_tests_ask_of_it() {
        a_server_does_what_tests_ask_of_it(&private(DIALECT, Source::Container));
    }

    #[test]
    #[ignore = "needs MariaDB: cargo xtask test"]
    fn a_local_server_does_what_tests_ask_of_it() {
        a_server_does_what_tests_ask_of_it(&private(DIALECT, Source::Local));
    }

    #[test]
    #[ignore = "needs MariaDB: cargo xtask test"]
    fn a_local_server_is_set_up_as_it_was_asked() {
        a_server_is_set_up_as_it_was_asked(DIALECT, Source::Local);
    }

    #[test]
    #[ignore = "needs MariaDB: cargo xtask test"]
    fn a_local_server_that_is_dropped_is_gone_at_once() {
        a_dropped_server_is_gone_at_once(DIALECT, Source::Local);
    }

    #[test]
    #[ignore = "needs MariaDB: cargo xtask test"]
    fn a_local_server_is_gone_after_its_owner_was_killed() {
        let test = "dialects::mariadb::a_local_server_is_gone_after_its_owner_was_killed";
        a_server_is_gone_after_its_owner_was_killed(DIALECT, Source::Local, test);
    }
}
