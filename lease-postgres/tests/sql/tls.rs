//! TLS: whom each `sslmode` trusts, and that a refusal names its cause.

use std::fs;
use std::path::Path;

use lease_core::{Acquire, Repo, RepoErrorKind};
use lease_postgres::PostgresRepo;
use lease_testkit::servers::Postgres;
use tempfile::TempDir;

use crate::support::tls::{Authority, place, present};
use crate::support::{Database, chain, claim, private_server};

/// The URL of this server's test database by a host name, with these options.
fn url(database: &Database, options: &str) -> String {
    format!("{}?{options}", database.url.replace("127.0.0.1", "localhost"))
}

fn verified(mode: &str, root: &Path) -> String {
    format!("sslmode={mode}&sslrootcert={}", root.display())
}

/// What `connect` says against it.
async fn refusal(url: &str) -> String {
    let error = PostgresRepo::connect(url).await.expect_err("it is refused");
    assert_eq!(error.kind(), RepoErrorKind::Config, "{error:?}");
    assert!(!error.may_have_executed());
    let text = chain(&error);
    let password = url.split([':', '@']).nth(2).unwrap();
    assert!(password.len() > 8 && !text.contains(password), "{text}");
    text
}

/// Works, and whether it is encrypted.
async fn is_encrypted(server: &Postgres, database: &Database, url: &str) -> bool {
    let repo = PostgresRepo::connect(url).await.unwrap();
    repo.migrate().await.unwrap();
    repo.acquire(&claim("job")).await.unwrap();
    let sessions = format!(
        "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
         WHERE application_name = 'lease' AND datname = '{}'",
        database.name
    );
    let found = server.sql(&sessions).unwrap();
    assert!(
        !found.is_empty() && found.iter().all(|ssl| *ssl == found[0]),
        "{found:?}"
    );
    found[0] == "t"
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn each_sslmode_trusts_whom_it_says_and_a_refusal_names_its_cause() {
    let folder = TempDir::new().unwrap();
    let (ours, other) = (Authority::new("ours", &folder), Authority::new("other", &folder));
    let server = private_server();
    let database = Database::on(&server);

    present(&server, &ours.signs(&["localhost", "127.0.0.1"]));
    for options in [
        verified("verify-full", &ours.file),
        verified("verify-ca", &ours.file),
        verified("require", &ours.file),
        "sslmode=require".to_owned(),
        "sslmode=prefer".to_owned(),
        "application_name=lease".to_owned(),
    ] {
        assert!(
            is_encrypted(&server, &database, &url(&database, &options)).await,
            "{options}"
        );
    }
    let by_address = format!("{}?{}", database.url, verified("verify-full", &ours.file));
    assert!(is_encrypted(&server, &database, &by_address).await);

    for mode in ["verify-full", "verify-ca", "require"] {
        let text = refusal(&url(&database, &verified(mode, &other.file))).await;
        assert!(text.contains("UnknownIssuer"), "{mode}: {text}");
    }

    present(&server, &ours.signs(&["db.example"]));
    let text = refusal(&url(&database, &verified("verify-full", &ours.file))).await;
    assert!(text.contains("localhost") && text.contains("db.example"), "{text}");
    assert!(is_encrypted(&server, &database, &url(&database, &verified("verify-ca", &ours.file))).await);

    present(&server, &ours.signed_long_ago(&["localhost"]));
    for mode in ["verify-full", "verify-ca"] {
        let text = refusal(&url(&database, &verified(mode, &ours.file))).await;
        assert!(text.contains("expired"), "{mode}: {text}");
    }
    assert!(is_encrypted(&server, &database, &url(&database, "sslmode=require")).await);

    server.set("ssl", "off").unwrap();
    for options in [verified("verify-full", &ours.file), "sslmode=require".to_owned()] {
        let text = refusal(&url(&database, &options)).await;
        assert!(text.contains("server does not support TLS"), "{options}: {text}");
    }
    for options in ["sslmode=prefer", "sslmode=disable"] {
        assert!(
            !is_encrypted(&server, &database, &url(&database, options)).await,
            "{options}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test"]
async fn a_client_certificate_is_shown_and_one_that_is_missing_is_denied() {
    let folder = TempDir::new().unwrap();
    let (ours, other) = (Authority::new("ours", &folder), Authority::new("other", &folder));
    let server = private_server();
    let database = Database::on(&server);
    present(&server, &ours.signs(&["localhost"]));
    server
        .set("ssl_ca_file", &place(&server, &fs::read_to_string(&ours.file).unwrap()))
        .unwrap();
    server.sql("CREATE ROLE pod LOGIN SUPERUSER").unwrap();
    let rules = place(&server, "hostssl all pod all cert\nhost all postgres all scram-sha-256");
    server.set("hba_file", &rules).unwrap();
    // Which file has the rules is read at a start.
    server.stop().unwrap();
    server.start().unwrap();

    let place = database
        .url
        .split('@')
        .nth(1)
        .unwrap()
        .replace("127.0.0.1", "localhost");
    let roots = verified("verify-full", &ours.file);
    let shows = |name: &str, authority: &Authority| {
        let identity = authority.signs_role("pod");
        let (certificate, key) = (
            folder.path().join(format!("{name}.crt")),
            folder.path().join(format!("{name}.key")),
        );
        fs::write(&certificate, identity.certificate).unwrap();
        fs::write(&key, identity.key).unwrap();
        format!(
            "postgres://pod@{place}?{roots}&sslcert={}&sslkey={}",
            certificate.display(),
            key.display()
        )
    };

    let repo = PostgresRepo::connect(&shows("pod", &ours)).await.unwrap();
    repo.migrate().await.unwrap();
    assert!(matches!(
        repo.acquire(&claim("job")).await.unwrap(),
        Acquire::Granted(_)
    ));

    let error = PostgresRepo::connect(&format!("postgres://pod@{place}?{roots}"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Denied, "{}", chain(&error));
    let error = PostgresRepo::connect(&shows("stranger", &other)).await.unwrap_err();
    assert_eq!(error.kind(), RepoErrorKind::Config, "{}", chain(&error));
    assert!(chain(&error).contains("alert"), "{}", chain(&error));
}
