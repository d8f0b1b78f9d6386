//! A server that encrypts, with certificates made for the test.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use lease_testkit::servers::Postgres;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use tempfile::TempDir;

use super::{Database, private_server};

/// Who signs certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate, for `sslrootcert`.
    pub(crate) file: PathBuf,
}

/// A certificate with its key, as PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str, folder: &TempDir) -> Self {
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
    pub(crate) fn signs(&self, hosts: &[&str]) -> Identity {
        self.sign(CertificateParams::new(hosts.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap())
    }

    /// A certificate for these hosts whose time was over long ago.
    pub(crate) fn signed_long_ago(&self, hosts: &[&str]) -> Identity {
        let mut params = CertificateParams::new(hosts.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
        self.sign(params)
    }

    /// A certificate for a role of the database.
    pub(crate) fn signs_role(&self, role: &str) -> Identity {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, role);
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> Identity {
        let key = KeyPair::generate().unwrap();
        Identity {
            certificate: params.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }
}

/// Lets the server show this certificate from now on.
pub(crate) fn present(server: &Postgres, identity: &Identity) {
    for (setting, text) in [
        ("ssl_cert_file", &identity.certificate),
        ("ssl_key_file", &identity.key),
    ] {
        server.set(setting, &place(server, text)).unwrap();
    }
    server.set("ssl", "on").unwrap();
}

/// Writes a file where the server can read it, and nobody else.
pub(crate) fn place(server: &Postgres, text: &str) -> String {
    let folder = server.sql("SHOW data_directory").unwrap().remove(0);
    let path = format!("{folder}/{:016x}.pem", rand::random::<u64>());
    let lines = text.trim_end().replace('\'', "''");
    server
        .sql(&format!(
            "COPY (SELECT unnest(string_to_array('{lines}', E'\\n'))) TO PROGRAM 'umask 077; cat > {path}'"
        ))
        .unwrap();
    path
}

/// A server that is verified by name, for tests that leave its certificate alone.
pub(crate) struct Verified {
    server: Postgres,
    folder: TempDir,
    root: PathBuf,
}

impl Verified {
    /// The one of this process.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Verified> = OnceLock::new();
        SHARED.get_or_init(|| {
            let folder = TempDir::new().unwrap();
            let authority = Authority::new("root", &folder);
            let server = private_server();
            present(&server, &authority.signs(&["localhost", "127.0.0.1"]));
            Self {
                server,
                root: authority.file,
                folder,
            }
        })
    }

    /// A database whose URL asks for a server that is verified by name.
    pub(crate) fn database(&self) -> Database {
        let mut database = Database::on(&self.server);
        database.url = format!(
            "{}?sslmode=verify-full&sslrootcert={}",
            database.url,
            self.root.display()
        );
        assert!(self.folder.path().exists());
        database
    }
}
