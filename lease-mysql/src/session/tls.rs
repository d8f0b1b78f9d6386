//! TLS by rustls: what `ssl-mode` and its sisters mean, as in MySQL's own clients but for the default.

use std::path::{Path, PathBuf};

use mysql_async::{ClientIdentity, SslOpts};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// How a connection is encrypted: the values of `ssl-mode`, `ssl-ca`, `ssl-cert` and `ssl-key`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Tls {
    pub(super) mode: Option<Mode>,
    pub(super) ca: Option<PathBuf>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

/// `ssl-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Never encrypted.
    Disabled,
    /// Encrypted if the server can. Nothing is verified.
    Preferred,
    /// Encrypted. Nothing is verified.
    Required,
    /// Encrypted, and the certificate leads to a root and is for this host.
    VerifyIdentity,
}

/// What the driver is told.
pub(super) enum Encryption {
    Never,
    IfPossible(SslOpts),
    Always(SslOpts),
}

impl Tls {
    /// Whether a server must show a certificate that leads to a root.
    pub(super) fn verifies(&self, is_local: bool) -> bool {
        self.mode(is_local) == Mode::VerifyIdentity
    }

    fn mode(&self, is_local: bool) -> Mode {
        match self.mode {
            Some(mode) => mode,
            None if is_local && self.ca.is_none() => Mode::Disabled,
            None => Mode::VerifyIdentity,
        }
    }

    /// What makes a connection's encryption. Reads the files.
    ///
    /// Nothing said, a connection that does not leave this machine is not encrypted, and any other is verified in full: a
    /// password must not go to whoever answers.
    ///
    /// # Errors
    /// What is wrong with which file.
    pub(super) fn encryption(&self, is_local: bool) -> Result<Encryption, String> {
        let mode = self.mode(is_local);
        if mode == Mode::Disabled {
            return Ok(Encryption::Never);
        }
        // The driver asks rustls for the process's provider, and panics if it can't tell which of two.
        if CryptoProvider::get_default().is_none() {
            // Another thread may have been faster: then there is one.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let ssl = match (mode, &self.ca) {
            (Mode::VerifyIdentity, ca) => {
                let roots = match ca {
                    Some(path) => certificates("ssl-ca", path)?,
                    None => system_roots()?,
                };
                SslOpts::default()
                    .with_disable_built_in_roots(true)
                    .with_root_certs(roots.into_iter().map(|der| der.to_vec().into()).collect())
            }
            (_, Some(_)) => return Err("`ssl-ca` is looked at by `ssl-mode=VERIFY_IDENTITY` alone".to_owned()),
            (_, None) => SslOpts::default().with_danger_accept_invalid_certs(true),
        };
        let ssl = ssl.with_client_identity(self.identity()?);
        Ok(match mode {
            Mode::Preferred => Encryption::IfPossible(ssl),
            _ => Encryption::Always(ssl),
        })
    }

    fn identity(&self) -> Result<Option<ClientIdentity>, String> {
        match (&self.certificate, &self.key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => {
                certificates("ssl-cert", certificate)?;
                let chain = read("ssl-cert", certificate)?;
                let key = rsa_key(key)?;
                Ok(Some(ClientIdentity::new(chain.into(), key.into())))
            }
            _ => Err("`ssl-cert` and `ssl-key` need each other".to_owned()),
        }
    }
}

fn read(option: &str, path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("`{option}` {}: {error}", path.display()))
}

/// A private key in the one form that the driver takes: RSA, in the encoding of PKCS #1.
fn rsa_key(path: &Path) -> Result<Vec<u8>, String> {
    /// In PKCS #8 the algorithm, `rsaEncryption`, and then a string of bytes of a length in two bytes: that is the key.
    const RSA: [u8; 17] = [
        0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00, 0x04, 0x82,
    ];
    let refused = |why: &dyn std::fmt::Display| format!("`ssl-key` {}: {why}", path.display());
    match PrivateKeyDer::from_pem_slice(&read("ssl-key", path)?) {
        Ok(PrivateKeyDer::Pkcs1(key)) => Ok(key.secret_pkcs1_der().to_vec()),
        Ok(PrivateKeyDer::Pkcs8(key)) => {
            let der = key.secret_pkcs8_der();
            let at = der.windows(RSA.len()).take(16).position(|window| window == RSA);
            let key = at.and_then(|at| der.get(at + RSA.len() + 2..));
            key.map(<[u8]>::to_vec).ok_or_else(|| refused(&"it is no RSA key"))
        }
        Ok(_) => Err(refused(&"it is no RSA key")),
        Err(error) => Err(refused(&error)),
    }
}

fn certificates(option: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = read(option, path)?;
    let certificates = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("`{option}` {}: {error}", path.display()))?;
    if certificates.is_empty() {
        return Err(format!("`{option}` {}: no certificate in it", path.display()));
    }
    Ok(certificates)
}

fn system_roots() -> Result<Vec<CertificateDer<'static>>, String> {
    let found = rustls_native_certs::load_native_certs();
    let certificates: Vec<_> = found
        .certs
        .into_iter()
        .filter(|certificate| RootCertStore::empty().add(certificate.clone()).is_ok())
        .collect();
    if certificates.is_empty() {
        let why = found.errors.first().map(ToString::to_string).unwrap_or_default();
        return Err(format!("this machine trusts nobody: give `ssl-ca` {why}")
            .trim_end()
            .to_owned());
    }
    Ok(certificates)
}
