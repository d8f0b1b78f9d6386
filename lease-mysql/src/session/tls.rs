//! TLS by rustls: what `ssl-mode` and its sisters mean, as in MySQL's own clients but for the default.

use std::path::{Path, PathBuf};

use mysql_async::{ClientIdentity, SslOpts};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

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
    /// Encrypted. The certificate is verified only if `ssl-ca` is given.
    Required,
    /// Encrypted, and the certificate leads to a root.
    VerifyCa,
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
    /// What makes a connection's encryption. Reads the files.
    ///
    /// Nothing said, a connection that does not leave this machine is not encrypted, and any other is verified in full: a
    /// password must not go to whoever answers.
    ///
    /// # Errors
    /// What is wrong with which file.
    pub(super) fn encryption(&self, is_local: bool) -> Result<Encryption, String> {
        let mode = match self.mode {
            Some(mode) => mode,
            None if is_local && self.ca.is_none() => Mode::Disabled,
            None => Mode::VerifyIdentity,
        };
        if mode == Mode::Disabled {
            return Ok(Encryption::Never);
        }
        // The driver asks rustls for the process's provider, and panics if it can't tell which of two.
        if CryptoProvider::get_default().is_none() {
            // Another thread may have been faster: then there is one.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let verifies = !matches!((mode, &self.ca), (Mode::Preferred, _) | (Mode::Required, None));
        let ssl = if verifies {
            // Who may have signed the server's certificate: those in the file, or whom the machine trusts.
            let roots = match &self.ca {
                Some(path) => certificates("ssl-ca", path)?,
                None => system_roots()?,
            };
            SslOpts::default()
                .with_disable_built_in_roots(true)
                .with_root_certs(roots.into_iter().map(|der| der.to_vec().into()).collect())
                .with_danger_skip_domain_validation(mode != Mode::VerifyIdentity)
        } else {
            SslOpts::default().with_danger_accept_invalid_certs(true)
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
                let key_bytes = read("ssl-key", key)?;
                rustls::pki_types::PrivateKeyDer::from_pem_slice(&key_bytes)
                    .map_err(|error| format!("`ssl-key` {}: {error}", key.display()))?;
                Ok(Some(ClientIdentity::new(chain.into(), key_bytes.into())))
            }
            _ => Err("`ssl-cert` and `ssl-key` need each other".to_owned()),
        }
    }
}

fn read(option: &str, path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("`{option}` {}: {error}", path.display()))
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
