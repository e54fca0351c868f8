//! Certificates that are known and still not good.

use std::net::SocketAddr;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::PrivateKeyDer;

use super::sockets::serve;
use crate::error::ErrorKind;
use crate::store::http1::addresses::tests::resolved;
use crate::store::http1::connect::connect;
use crate::store::http1::endpoint::Endpoint;
use crate::store::http1::failure::Failure;
use crate::store::http1::tls::trust::Trust;
use crate::sync::Arc;

/// What becomes of a connection to `localhost` whose certificate, which is trusted, is for `name` and good until `year`.
async fn met(name: &str, year: i32) -> Result<(), Failure> {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(year, 1, 1);
    let key = KeyPair::generate().unwrap();
    let made = params.self_signed(&key).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("ca.pem");
    std::fs::write(&bundle, made.pem()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![made.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    let (address, _server) = serve(config, 1, |mut served| {
        // A client that goes away is part of the game.
        let _gone = served.tls.complete_io(&mut served.socket);
    });
    let trust = Trust {
        ca_bundle: Some(bundle.to_str().unwrap().to_owned()),
        is_unverified: false,
    };
    let tls = trust.connector()?;
    let url = format!("https://localhost:{}", SocketAddr::port(&address));
    let (endpoint, _) = Endpoint::split(&url).unwrap();
    let addresses = resolved(&[address]);
    let soon = Duration::from_secs(10);
    connect(&endpoint, None, &addresses, Some(&tls), soon)
        .await
        .map(|_| ())
}

#[tokio::test]
async fn a_certificate_out_of_time_or_of_another_name_is_named_and_not_tried_again() {
    met("localhost", 2100).await.unwrap();
    for (name, year, why) in [
        ("localhost", 2020, "expired"),
        ("other.example", 2100, "not valid for name"),
    ] {
        let failure = met(name, year).await.unwrap_err();
        assert_eq!(
            (failure.kind, failure.cause, failure.is_worth_retrying),
            (ErrorKind::Unreachable, "certificate", false)
        );
        assert!(failure.why.contains(why), "{}", failure.why);
        assert!(failure.help.unwrap().contains("`ca_bundle`"));
    }
}
