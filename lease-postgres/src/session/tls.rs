//! TLS by rustls: what `sslmode` and its sisters mean, as in libpq (PostgreSQL manual, "SSL Support").

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How a connection is encrypted: the values of `sslmode`, `sslrootcert`, `sslcert` and `sslkey`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Tls {
    pub(super) mode: Mode,
    pub(super) roots: Option<Roots>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

/// `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mode {
    /// Never encrypted.
    Disable,
    /// Encrypted if the server can. Nothing is verified.
    #[default]
    Prefer,
    /// Encrypted. The certificate is verified only if roots are given.
    Require,
    /// Encrypted, and the certificate leads to a root.
    VerifyCa,
    /// Encrypted, and the certificate leads to a root and is for this host.
    VerifyFull,
}

/// `sslrootcert`: who may have signed the server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Roots {
    /// The word `system`: whom the machine trusts.
    System,
    /// The certificates in a PEM file.
    File(PathBuf),
}

impl Mode {
    /// What the driver is told. It knows no verification: that is in the [connector](Tls::connector).
    pub(super) const fn for_driver(self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::VerifyCa | Self::VerifyFull => SslMode::Require,
        }
    }
}

impl Tls {
    /// Whether the server's certificate must lead to a root.
    pub(super) fn verifies(&self) -> bool {
        !matches!(
            (self.mode, &self.roots),
            (Mode::Disable | Mode::Prefer, _) | (Mode::Require, None)
        )
    }

    /// What makes a connection's encryption. Reads the files.
    ///
    /// # Errors
    /// What is wrong with which file.
    pub(super) fn connector(&self) -> Result<MakeRustlsConnect, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier(provider)?);
        let config = match (&self.certificate, &self.key) {
            (None, None) => config.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let chain = certificates("sslcert", certificate)?;
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| format!("`sslkey` {}: {error}", key.display()))?;
                config
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| format!("`sslcert` and `sslkey` can't be used: {error}"))?
            }
            _ => return Err("`sslcert` and `sslkey` need each other".to_owned()),
        };
        Ok(MakeRustlsConnect::new(config))
    }

    fn verifier(&self, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, String> {
        if !self.verifies() {
            return Ok(Arc::new(Anyone { provider }));
        }
        let verifies_name = self.mode == Mode::VerifyFull;
        let roots = match &self.roots {
            Some(Roots::File(path)) => file_roots(path)?,
            Some(Roots::System) | None => system_roots()?,
        };
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| format!("`sslrootcert` can't be used: {error}"))?;
        Ok(if verifies_name {
            chain
        } else {
            Arc::new(AnyName { chain })
        })
    }
}

fn certificates(option: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = || CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, _>>();
    let certificates = read().map_err(|error| format!("`{option}` {}: {error}", path.display()))?;
    if certificates.is_empty() {
        return Err(format!("`{option}` {}: no certificate in it", path.display()));
    }
    Ok(certificates)
}

fn file_roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("sslrootcert", path)? {
        roots
            .add(certificate)
            .map_err(|error| format!("`sslrootcert` {}: {error}", path.display()))?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(ToString::to_string).unwrap_or_default();
        return Err(format!("this machine trusts nobody: give `sslrootcert` {why}")
            .trim_end()
            .to_owned());
    }
    Ok(roots)
}

/// Verifies nothing but that the server has the key of the certificate it shows: `sslmode=require`.
#[derive(Debug)]
struct Anyone {
    provider: Arc<CryptoProvider>,
}

/// Verifies that the certificate leads to a root, whatever host it is for: `sslmode=verify-ca`.
#[derive(Debug)]
struct AnyName {
    chain: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ServerCertVerifier for AnyName {
    /// The name is what is checked last, so that every other fault has been found before.
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self
            .chain
            .verify_server_cert(certificate, intermediates, name, ocsp, now)
        {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            answer => answer,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}
