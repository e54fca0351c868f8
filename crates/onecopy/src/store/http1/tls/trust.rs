//! Whom TLS trusts.

use rustls::SupportedCipherSuite;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::handshake::TlsConnector;
use crate::error::ErrorKind;
use crate::store::http1::failure::Failure;
use crate::store::small_file;
use crate::sync::{Arc, check_files};

/// Whom to trust.
#[derive(Debug, Clone, Default)]
pub(in crate::store) struct Trust {
    /// A PEM file to use instead of the system's certificates.
    pub(in crate::store) ca_bundle: Option<String>,
    /// Check nothing: the user said so.
    pub(in crate::store) is_unverified: bool,
}

impl Trust {
    /// Reads the certificates. Takes some milliseconds: once per client, and only where TLS is spoken.
    pub(in crate::store::http1) fn connector(&self) -> Result<TlsConnector, Failure> {
        self.config(provider()).map(TlsConnector::new)
    }

    /// The settings for the ciphers of `provider`.
    pub(super) fn config(&self, provider: CryptoProvider) -> Result<ClientConfig, Failure> {
        let provider = Arc::new(provider);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| {
                Failure::new(ErrorKind::Bug, "tls", error.to_string()).with_source(error)
            })?;
        let mut config = if self.is_unverified {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
                .with_no_client_auth()
        } else {
            builder
                .with_root_certificates(self.roots()?)
                .with_no_client_auth()
        };
        config.alpn_protocols = vec![b"http/1.1".into()];
        // Records are opened here and not by rustls: see `handshake`.
        config.enable_secret_extraction = true;
        Ok(config)
    }

    fn roots(&self) -> Result<RootCertStore, Failure> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = &self.ca_bundle {
            let unreadable = |why: String| {
                Failure::new(ErrorKind::InvalidInput, "ca_bundle", why)
                    .with_help("`ca_bundle` (or AWS_CA_BUNDLE) takes a PEM file of certificates")
            };
            let pem = small_file::read(path)
                .map_err(|error| unreadable(format!("cannot read {path}: {error}")))?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let added = certificate
                    .map_err(|error| error.to_string())
                    .and_then(|der| roots.add(der).map_err(|error| error.to_string()));
                added
                    .map_err(|why| unreadable(format!("{path} holds a bad certificate: {why}")))?;
            }
            if roots.is_empty() {
                return Err(unreadable(format!("{path} holds no certificate")));
            }
            return Ok(roots);
        }
        let found = rustls_native_certs::load_native_certs();
        let (added, _ignored) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            // Without a file to spare none can be read.
            check_files("TLS", 1).map_err(|error| Failure::of_ours("no_files", error))?;
            return Err(Failure::new(
                ErrorKind::Unreachable,
                "no_roots",
                "this machine has no certificates to trust",
            )
            .final_now()
            .with_help("install ca-certificates, or name a PEM file with `ca_bundle`"));
        }
        Ok(roots)
    }
}

/// AES-128-GCM first, which costs least where processors have AES. A server that heeds our order takes it.
pub(super) fn provider() -> CryptoProvider {
    let mut provider = aws_lc_rs::default_provider();
    let is_cheapest = |suite: &SupportedCipherSuite| {
        let name = suite.suite().as_str().unwrap_or_default();
        name.contains("AES_128_GCM")
    };
    provider
        .cipher_suites
        .sort_by_key(|suite| !is_cheapest(suite));
    provider
}

/// Accepts every certificate; signatures of the handshake are still checked.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_bundle_is_named_with_help() {
        let empty = tempfile::NamedTempFile::new().unwrap();
        for path in ["/nonexistent.pem", empty.path().to_str().unwrap()] {
            let trust = Trust {
                ca_bundle: Some(path.to_owned()),
                is_unverified: false,
            };
            let failure = trust.connector().err().unwrap();
            assert!(failure.why.contains(path), "{}", failure.why);
            assert!(failure.help.is_some());
        }
    }
}
