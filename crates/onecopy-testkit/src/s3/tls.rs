//! A certificate authority for one test run, and the server certificate below it.

use std::io;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rcgen::{ExtendedKeyUsagePurpose, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;

/// What a server with TLS needs.
pub(crate) struct Identity {
    pub(crate) acceptor: TlsAcceptor,
    /// The certificate that clients are to trust.
    pub(crate) ca_pem: String,
}

/// Makes an authority, and a certificate of it for `localhost` and the loopback addresses.
pub(crate) fn make_identity() -> io::Result<Identity> {
    let mut authority = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority
        .distinguished_name
        .push(DnType::CommonName, "onecopy testkit authority");
    authority.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let authority_key = KeyPair::generate().map_err(io::Error::other)?;
    let issuer =
        CertifiedIssuer::self_signed(authority, authority_key).map_err(io::Error::other)?;

    let names = ["localhost", "*.localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let mut server = CertificateParams::new(names).map_err(io::Error::other)?;
    server
        .distinguished_name
        .push(DnType::CommonName, "localhost");
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let certificate = server.signed_by(&key, &issuer).map_err(io::Error::other)?;

    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"http/1.1".into()];
    Ok(Identity {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        ca_pem: issuer.pem(),
    })
}
