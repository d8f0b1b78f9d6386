//! TLS: whom each `ssl-mode` trusts, that a refusal names its cause, and passwords with and without encryption.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lease_core::{Acquire, Repo, RepoErrorKind};
use lease_mysql::MysqlRepo;
use lease_testkit::servers::{Dialect, Mysql, Settings};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use crate::support::{Database, chain, claim, on_both};

on_both!(
    each_ssl_mode_trusts_whom_it_says_and_a_refusal_names_its_cause,
    a_certificate_of_another_host_is_refused_by_identity_alone,
    a_server_without_encryption_is_used_only_where_that_was_said,
    a_client_certificate_is_shown,
    a_password_works_with_and_without_encryption,
    a_unix_socket_is_a_way_to_this_machine,
);

/// Who signs certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate, for `ssl-ca`.
    file: PathBuf,
}

/// A certificate with its key, as PEM.
struct Identity {
    certificate: String,
    key: String,
}

impl Authority {
    fn new(name: &str, folder: &TempDir) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let file = folder.path().join(format!("{name}.pem"));
        fs::write(&file, params.self_signed(&key).unwrap().pem()).unwrap();
        Self {
            issuer: Issuer::new(params, key),
            file,
        }
    }

    /// A certificate for these hosts.
    fn signs(&self, hosts: &[&str]) -> Identity {
        self.signs_key(hosts, KeyPair::generate().unwrap())
    }

    fn signs_key(&self, hosts: &[&str], key: KeyPair) -> Identity {
        let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name.push(DnType::CommonName, "whoever");
        Identity {
            certificate: params.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }
}

/// A server that shows this certificate, and lets in clients whose certificate the authority signed.
fn server(dialect: Dialect, authority: &Authority, identity: &Identity) -> Mysql {
    let settings = Settings::default()
        .with_file("ssl_ca", fs::read(&authority.file).unwrap())
        .with_file("ssl_cert", identity.certificate.as_bytes())
        .with_file("ssl_key", identity.key.as_bytes());
    Mysql::private(dialect, &settings).unwrap()
}

const PASSWORD: &str = "hunter2";

/// A user of its own, of whom the server wants this of each connection; its URL by the host's name.
fn user(database: &Database, wants: &str) -> String {
    let user = database.name();
    database.run(&format!(
        "CREATE USER {user} IDENTIFIED BY '{PASSWORD}' {wants}; GRANT ALL ON `{user}`.* TO {user}"
    ));
    let (_, place) = database.url.split_once('@').unwrap();
    format!("mysql://{user}:{PASSWORD}@{}", place.replace("127.0.0.1", "localhost"))
}

fn with_root(url: &str, mode: &str, root: &Path) -> String {
    format!("{url}?ssl-mode={mode}&ssl-ca={}", root.display())
}

async fn works(url: &str) {
    let repo = MysqlRepo::connect(url)
        .await
        .unwrap_or_else(|error| panic!("{url}: {}", chain(&error)));
    repo.migrate().await.unwrap();
    let held = claim("job");
    assert!(matches!(repo.acquire(&held).await.unwrap(), Acquire::Granted(_)));
    repo.release(&held).await.unwrap();
}

/// What `connect` says against it.
async fn refusal(url: &str, kind: RepoErrorKind) -> String {
    let error = MysqlRepo::connect(url).await.expect_err("it is refused");
    assert_eq!(error.kind(), kind, "{url}: {}", chain(&error));
    assert!(!error.may_have_executed());
    let text = chain(&error);
    assert!(!text.contains(PASSWORD), "{text}");
    text
}

async fn each_ssl_mode_trusts_whom_it_says_and_a_refusal_names_its_cause(dialect: Dialect) {
    let folder = TempDir::new().unwrap();
    let (ours, other) = (Authority::new("ours", &folder), Authority::new("other", &folder));
    let server = server(dialect, &ours, &ours.signs(&["localhost", "127.0.0.1"]));
    let database = Database::on(&server);
    let encrypted = user(&database, "REQUIRE SSL");
    for mode in ["VERIFY_IDENTITY", "verify-identity"] {
        works(&with_root(&encrypted, mode, &ours.file)).await;
        works(&with_root(
            &encrypted.replace("localhost", "127.0.0.1"),
            mode,
            &ours.file,
        ))
        .await;
        let text = refusal(&with_root(&encrypted, mode, &other.file), RepoErrorKind::Config).await;
        assert!(text.contains("UnknownIssuer"), "{mode}: {text}");
    }
    // Nothing said but who may have signed it.
    works(&format!("{encrypted}?ssl-ca={}", ours.file.display())).await;
    for mode in ["REQUIRED", "PREFERRED"] {
        works(&format!("{encrypted}?ssl-mode={mode}")).await;
    }
    for mode in ["REQUIRED", "PREFERRED", "VERIFY_CA"] {
        let text = refusal(&with_root(&encrypted, mode, &ours.file), RepoErrorKind::Config).await;
        assert!(text.contains("VERIFY_IDENTITY"), "{mode}: {text}");
    }
    // To this machine itself nothing is encrypted unless it is said.
    refusal(&encrypted, RepoErrorKind::Denied).await;
    refusal(&format!("{encrypted}?ssl-mode=DISABLED"), RepoErrorKind::Denied).await;
    // Whom this machine trusts has not signed it.
    let text = refusal(&format!("{encrypted}?ssl-mode=VERIFY_IDENTITY"), RepoErrorKind::Config).await;
    assert!(
        text.contains("UnknownIssuer") || text.contains("trusts nobody"),
        "{text}"
    );
    server.set("require_secure_transport", "ON").unwrap();
    let error = MysqlRepo::connect(&database.url).await.unwrap_err();
    let kind = match dialect {
        // Told like a wrong password.
        Dialect::MariaDb => RepoErrorKind::Denied,
        _ => RepoErrorKind::Config,
    };
    assert_eq!(error.kind(), kind, "{}", chain(&error));
}

async fn a_certificate_of_another_host_is_refused_by_identity_alone(dialect: Dialect) {
    let folder = TempDir::new().unwrap();
    let ours = Authority::new("ours", &folder);
    let server = server(dialect, &ours, &ours.signs(&["db.example"]));
    let database = Database::on(&server);
    let url = user(&database, "REQUIRE SSL");
    let text = refusal(&with_root(&url, "VERIFY_IDENTITY", &ours.file), RepoErrorKind::Config).await;
    assert!(text.contains("localhost") && text.contains("db.example"), "{text}");
    works(&format!("{url}?ssl-mode=REQUIRED")).await;
}

async fn a_server_without_encryption_is_used_only_where_that_was_said(dialect: Dialect) {
    let folder = TempDir::new().unwrap();
    let ours = Authority::new("ours", &folder);
    let off = match dialect {
        Dialect::MariaDb => ("ssl", "OFF"),
        _ => ("tls_version", ""),
    };
    let server = Mysql::private(dialect, &Settings::default().with(off.0, off.1)).unwrap();
    let database = Database::on(&server);
    let url = user(&database, "");
    works(&url).await;
    works(&format!("{url}?ssl-mode=PREFERRED")).await;
    for url in [
        format!("{url}?ssl-mode=REQUIRED"),
        with_root(&url, "VERIFY_IDENTITY", &ours.file),
    ] {
        let text = refusal(&url, RepoErrorKind::Config).await;
        assert!(text.contains("does not have this capability"), "{text}");
    }
}

async fn a_client_certificate_is_shown(dialect: Dialect) {
    let folder = TempDir::new().unwrap();
    let (ours, other) = (Authority::new("ours", &folder), Authority::new("other", &folder));
    let server = server(dialect, &ours, &ours.signs(&["localhost"]));
    let database = Database::on(&server);
    let url = with_root(&user(&database, "REQUIRE X509"), "VERIFY_IDENTITY", &ours.file);
    let shows = |name: &str, authority: &Authority| {
        let identity = authority.signs_key(&["pod"], KeyPair::from_pem(RSA_KEY).unwrap());
        let paths = ["crt", "key"].map(|end| folder.path().join(format!("{name}.{end}")));
        fs::write(&paths[0], identity.certificate).unwrap();
        fs::write(&paths[1], identity.key).unwrap();
        format!("{url}&ssl-cert={}&ssl-key={}", paths[0].display(), paths[1].display())
    };
    works(&shows("pod", &ours)).await;
    refusal(&url, RepoErrorKind::Denied).await;
    let error = MysqlRepo::connect(&shows("stranger", &other)).await.unwrap_err();
    assert!(!error.may_have_executed(), "{}", chain(&error));
    assert_ne!(error.kind(), RepoErrorKind::Other, "{}", chain(&error));
}

/// MySQL's own way, `caching_sha2_password`: the first login of a user sends the password itself, through TLS or encrypted with the
/// server's key, and later ones a hash.
async fn a_password_works_with_and_without_encryption(dialect: Dialect) {
    // A MariaDB server before 11.4 has no certificate unless it is given one.
    let encrypted = if dialect == Dialect::MariaDb {
        "PREFERRED"
    } else {
        "REQUIRED"
    };
    for mode in [encrypted, "DISABLED"] {
        let database = Database::empty(dialect);
        let url = format!("{}?ssl-mode={mode}", user(&database, ""));
        works(&url).await;
        works(&url).await;
        refusal(&url.replace(PASSWORD, "another"), RepoErrorKind::Denied).await;
        database.run(&format!("DROP USER {}", database.name()));
    }
}

/// By the option that names it. What the URL has for a host is not asked then.
async fn a_unix_socket_is_a_way_to_this_machine(dialect: Dialect) {
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let server = Mysql::private(dialect, &Settings::default().sockets(folder.path())).unwrap();
    let database = Database::on(&server);
    let url = user(&database, "");
    let (head, name) = url.rsplit_once('/').unwrap();
    let (head, _) = head.rsplit_once(':').unwrap();
    let socket = folder.path().join("mysqld.sock");
    works(&format!("{head}:1/{name}?socket={}", socket.display())).await;
}

/// The driver takes RSA keys alone, and none can be made here. This one is for nothing else.
const RSA_KEY: &str = "-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCVd/htYOzNyP0q
infLYaa7qmNZUxbtAlnGlEmVv4FR6Xh56OvWGRo6y4A5353C54k7dWbHlZnjj5j9
5Ov1l3axGoEnaYdSx1SCI1V/JkNoHgu2pIh2FYRrP+mAec8bje2GXCpjYU3N9INW
/noPWslrQJCf76qNgbp8Q833hDTMoKKb3HTpMsDmfg97rp19HNhGs0oRxRwv2R1t
WTbGs+kg1O7/ADtEh41BwgKjPJv3j5/P+tw7m73fXdwJT2PoVriRuVzgmAJQTrEj
0DRTxwhpT2s2Yl2Qb+3UVEObUM472mLiKwXupizEZa/3VwDdfoajZRjsAE+9fOAq
SAxZDZCHAgMBAAECggEAAN9S4VyL9UWDiMCHI3Y98WF0s/xCqX52hKyv40JbYF2C
+P8thTHfT9GJPY07D/ym9eRhBbAvVj8rzuuLnwLTzAPSFidNBWQpb5sCMDxKb2yh
d97s9vd4LuIQHFJZrZj99mdKTgsu15FiRNs2XimS/F/DmFNfRPUpX/lLVfL9Feal
00GRUhXZj4wEMENdd96oqIBRjDdbCbkAh5WVWn5/b1+LteNaKriTBnnylgp3b0jh
xxUHstPD3vX6CF3fH8lcuxLcAIHP298wgBGDNOqdx6//6ZjCwvmEZFMq9juGUp0M
lx1vscMiYrx3AdG4qQzn+e3p+fkXw1RG2lp29bsrhQKBgQDL/C76U1OZ4JpY0WyD
hoX5UFARlhKj+2jM0rveLjvob2rSyRelOc9mo753WPx6x5hN5akz3Y5bmjd2mcwB
vxmkh5zGFab3Rfj00bVhA6gzbqP6DXl+bCKmlBWT4GKyBHZrRMR6w20HqYTaO4CW
4xiEWzCQw5oJSK+ng99QHtotZQKBgQC7lQp1IPfRbJKSq+VASioYFC+nOdZwylS0
mon6gntlgZLhW65SZT7YnLGD74cW+uGG0ALUTQKK8e0tUiEBWBjs7fEI/pnKqphq
KUUkAkSDyvarUp+uIG8qk91y5G8+l4SgKe6JBzJaZkW7xrpRXhOrYrcazlW4SUWR
6XWTmtMtewKBgQCSR20U3C5mebeVm9DaXNy0VdClW95QM9kKkNBiWvthCo0rTUOk
m9lMPH44rdqY3YstyVTWObp9nBDL/yxZ0EW+Q/W74wkR597JCZ2tTWcQQvZaOdF3
RGpw1F7I5a9BA4w8DltrwbrtNLZtnR/wlDgfqhkgpvROVg6I7Tt2BDnnNQKBgFcw
eYHj5wyCyMY/+/kb/+DdUSELcy9N/H1N76BvEegmiB0Tvj0yLjoE60YGCeaWikld
WlNP0ETBGpscN5cmWb+XAZhKrzVSgjGmKSsJmssfhfQwHWSUUteZjy8eGs8fIlhH
5UXwAGmga/1R67xyW/YnljBxg8p61El0GGCZcFsNAoGAFyNjbev1joGBD0t7g8z6
iYJFyUp+lJvI8E/+SEFbH9fgU/yv6BuU5lpcrzNQIR0IasSGvIZrQPBWLDIGGa7R
6BYIVfr0Rf38Axp46gFp42jeEDkIWd/8k1bwsRPbzGuSQ9d7nBy47O4rwGYQlLpW
nC278e9Qd7ZmhVMJyHlefP8=
-----END PRIVATE KEY-----";
