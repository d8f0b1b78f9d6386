//! Connection URLs with whatever in them: a typed error that says nothing of the password, never a panic.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::FutureExt;
use lease_core::{Operation, RepoErrorKind};
use lease_postgres::PostgresRepo;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseResult;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::run::{check, corpus};
use crate::support::chain;

/// A password is made of these, with what is special in a URL in between. None is part of any text of ours.
const PARTS: &[&str] = &["QX7Z", "VJ4K", "ZQ9W", "X8QJ"];
const BETWEEN: &[&str] = &[
    "",
    "@",
    ":",
    "/",
    "?",
    "#",
    "[",
    "]",
    "%",
    "%4",
    "%zz",
    "%00",
    "%C3%28",
    "&",
    "=",
    "&port=",
    "&sslmode=",
    "'",
    "\\",
    "\\'",
    " ",
    ",",
    "://",
    "@h@",
    "\0",
    "\n",
    "é",
    "🦀",
    "+",
    "%40",
    "?password=",
    " port=",
    "' port='",
];
const SCHEMES: &[&str] = &[
    "postgres://",
    "postgresql://",
    "postgres:/",
    "Postgres://",
    "http://",
    "://",
    "//",
    "",
];
const HOSTS: &[&str] = &[
    "127.0.0.1",
    "[::1]",
    "127.0.0.1,127.0.0.1",
    "%2Fno%2Fsuch%2Ffolder",
    "",
    ",",
    "[",
    "[::1",
    "%ff",
    "127.0.0.1:1:1",
];
const PORTS: &[&str] = &[
    ":1",
    ":1,2,3",
    ":0",
    ":65536",
    ":-1",
    ":port",
    ":",
    "",
    ":1:2",
    ":99999999999999999999",
];
const OPTIONS: &[&str] = &[
    "sslmode=disable",
    "sslmode=require",
    "sslmode=verify-full",
    "sslmode=maybe",
    "connect_timeout=0",
    "connect_timeout=-1",
    "connect_timeout=9223372036854775807",
    "connect_timeout=x",
    "keepalives=1",
    "keepalives_idle=9223372036854775807",
    "keepalives_interval=-5",
    "keepalives_retries=4294967295",
    "tcp_user_timeout=9223372036854775807",
    "target_session_attrs=read-write",
    "target_session_attrs=any_",
    "channel_binding=require",
    "load_balance_hosts=random",
    "hostaddr=127.0.0.1",
    "hostaddr=nonsense",
    "port=1",
    "options=-c%20x",
    "application_name=%00",
    "application_name=lease",
    "user=",
    "dbname=",
    "host=127.0.0.1",
    "host=",
    "nonsense",
    "=",
    "&&",
    "a=b",
    "replication=database",
];

fn secret() -> impl Strategy<Value = String> {
    vec((select(BETWEEN), select(PARTS)), 1..4)
        .prop_map(|parts| parts.into_iter().flat_map(|(between, part)| [between, part]).collect())
}

/// Any URL or list of settings with a password in it, sometimes with one character cut out.
fn hostile() -> impl Strategy<Value = String> {
    let url = (
        select(SCHEMES),
        secret(),
        select(HOSTS),
        select(PORTS),
        vec(select(OPTIONS), 0..3),
    )
        .prop_map(|(scheme, secret, host, port, options)| {
            format!("{scheme}u:{secret}@{host}{port}/db?{}", options.join("&"))
        });
    let asked = (select(SCHEMES), secret(), select(HOSTS), select(OPTIONS))
        .prop_map(|(scheme, secret, host, option)| format!("{scheme}{host}:1/db?user=u&password={secret}&{option}"));
    let listed = (
        secret(),
        select(HOSTS),
        select(OPTIONS),
        select(vec!["", "'", "\"", "' "]),
    )
        .prop_map(|(secret, host, option, quote)| {
            format!("user=u password={quote}{secret}{quote} port=1 {option} host={host}")
        });
    let cut = |(text, at): (String, prop::sample::Index)| {
        let cut = at.index(text.chars().count().max(1));
        let kept = text.chars().enumerate().filter(|(place, _)| *place != cut);
        kept.map(|(_, c)| c).collect()
    };
    let whole = prop_oneof![3 => url, 2 => asked, 2 => listed, 1 => secret(), 1 => any::<String>()];
    prop_oneof![whole.clone(), (whole, any::<prop::sample::Index>()).prop_map(cut)]
}

/// Where a connection would be tried, as far as the driver reads it.
enum Target {
    /// Refused without trying.
    Nowhere,
    /// On this machine, where nobody answers for long.
    Here,
    /// At a name that would have to be looked up: not in a test.
    Elsewhere,
}

fn target(url: &str) -> Target {
    // The driver knows no verification: that is ours.
    let Ok(config) = url.replace("sslmode=verify-full", "sslmode=require").parse::<Config>() else {
        return Target::Nowhere;
    };
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    if hosts.is_empty() && addresses.is_empty() {
        return Target::Nowhere;
    }
    let is_near = |host: &Host| match host {
        Host::Tcp(name) => name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
        Host::Unix(_) => true,
    };
    let near = hosts.iter().all(is_near) && addresses.iter().all(IpAddr::is_loopback);
    if near { Target::Here } else { Target::Elsewhere }
}

/// No password, no part of it, and nothing that grows with the URL.
fn is_discreet(text: &str) -> TestCaseResult {
    for part in PARTS {
        prop_assert!(!text.contains(part), "{}", text);
    }
    prop_assert!(text.len() < 2_000, "{} bytes", text.len());
    Ok(())
}

/// The bound of a connect is 5 s; a machine under load gets 5 s more.
pub(crate) async fn judged(url: &str) -> TestCaseResult {
    let answer = match target(url) {
        Target::Nowhere => {
            let answer = PostgresRepo::connect(url).now_or_never();
            let answer = answer.ok_or_else(|| TestCaseError::fail("what can't be used is refused at once"))?;
            prop_assert_eq!(
                answer.as_ref().err().map(|error| error.kind()),
                Some(RepoErrorKind::Config)
            );
            answer
        }
        Target::Here => {
            let bound = Duration::from_secs(10);
            let answer = timeout(bound, PostgresRepo::connect(url)).await;
            answer.map_err(|_| TestCaseError::fail("it exceeds its bound"))?
        }
        Target::Elsewhere => return Ok(()),
    };
    match answer {
        Ok(repo) => is_discreet(&format!("{repo:?}")),
        Err(error) => {
            prop_assert!(!error.may_have_executed());
            prop_assert_eq!(error.operation(), Operation::Connect);
            let known = [RepoErrorKind::Config, RepoErrorKind::Denied, RepoErrorKind::Unavailable];
            prop_assert!(known.contains(&error.kind()), "{:?}", error.kind());
            prop_assert!(std::error::Error::source(&error).is_some(), "no cause");
            is_discreet(&chain(&error))
        }
    }
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn no_url_panics_and_no_error_shows_a_part_of_its_password() {
    let runtime = runtime();
    for seed in corpus("tests/properties/corpus/urls") {
        let url = seed.text();
        assert!(!matches!(target(&url), Target::Elsewhere), "{} is not tried", seed.file);
        runtime
            .block_on(judged(&url))
            .unwrap_or_else(|failure| panic!("{}: {failure}", seed.file));
    }
    check(
        "tests/properties/proptest-regressions/urls.txt",
        2_000,
        &hostile(),
        |url| runtime.block_on(judged(&url)),
    );
}
