//! rustls as the server, over real sockets: each cipher in each version.

use std::io::{self, Read, Write};
use std::time::Duration;

use rustls::{CipherSuite, HandshakeKind, ProtocolVersion};
use tokio::time::timeout;

use super::peer::noise;
use super::sockets::{
    PATIENCE, SUITES, connect, connector, hops, read_exact, serve, server_config,
};
use crate::buffer::Slab;
use crate::error::ErrorKind;
use crate::store::http1::failure::Failure;
use crate::store::http1::gap::Gap;
use crate::sync;

#[tokio::test]
async fn each_cipher_of_each_version_carries_both_ways_over_key_updates() {
    for suite in SUITES {
        let (address, server) = serve(server_config(), 1, |mut served| {
            let request = served.read(100_000);
            let body = noise(1 << 20);
            let is_tls13 = served.tls.protocol_version() == Some(ProtocolVersion::TLSv1_3);
            for (number, part) in body.chunks(70_001).enumerate() {
                if is_tls13 && number % 4 == 2 {
                    served.tls.refresh_traffic_keys().unwrap();
                }
                served.write(part);
            }
            let second = served.read(20);
            served.write(b"the end");
            let agreed = served.tls.negotiated_cipher_suite().unwrap().suite();
            served.say_goodbye();
            (request, second, agreed)
        });
        let connector = connector(Some(suite));
        let mut stream = connect(&connector, address).await.unwrap();
        stream.write(&noise(100_000)).await.unwrap();
        let body = read_exact(&mut stream, 1 << 20).await.unwrap();
        assert_eq!(body, noise(1 << 20), "{suite:?}");
        stream.write(b"twenty bytes of text").await.unwrap();
        assert_eq!(read_exact(&mut stream, 100).await.unwrap(), b"the end");
        assert_eq!(stream.read(&mut [0; 9]).await.unwrap(), 0, "a clean end");
        assert!(!stream.is_quiet());
        let (request, second, agreed) = server.join().unwrap().pop().unwrap();
        assert_eq!(request, noise(100_000));
        assert_eq!(second, b"twenty bytes of text");
        assert_eq!(agreed, suite);
    }
}

#[tokio::test]
async fn aes_128_is_what_a_server_gets_that_heeds_our_order() {
    let mut config = server_config();
    config.ignore_client_order = false;
    let (address, server) = serve(config, 1, |mut served| {
        served.read(1);
        served.tls.negotiated_cipher_suite().unwrap().suite()
    });
    let mut stream = connect(&connector(None), address).await.unwrap();
    stream.write(b"x").await.unwrap();
    assert_eq!(
        server.join().unwrap(),
        [CipherSuite::TLS13_AES_128_GCM_SHA256]
    );
}

#[tokio::test]
async fn the_next_connection_resumes_with_a_ticket() {
    for suite in [SUITES[0], SUITES[3]] {
        let (address, server) = serve(server_config(), 3, |mut served| {
            served.read(1);
            served.write(b"x");
            let kind = served.tls.handshake_kind();
            served.say_goodbye();
            kind
        });
        let connector = connector(Some(suite));
        for _ in 0..3 {
            let mut stream = connect(&connector, address).await.unwrap();
            stream.write(b"x").await.unwrap();
            assert_eq!(read_exact(&mut stream, 1).await.unwrap(), b"x");
        }
        let kinds = server.join().unwrap();
        assert_eq!(kinds[0], Some(HandshakeKind::Full));
        assert_eq!(kinds[1], Some(HandshakeKind::Resumed), "{suite:?}");
        assert_eq!(kinds[2], Some(HandshakeKind::Resumed), "{suite:?}");
    }
}

#[tokio::test]
async fn an_end_without_goodbye_is_an_error() {
    for suite in [SUITES[0], SUITES[3]] {
        let (address, server) = serve(server_config(), 1, |mut served| {
            served.read(1);
            served.write(b"so far");
        });
        let mut stream = connect(&connector(Some(suite)), address).await.unwrap();
        stream.write(b"x").await.unwrap();
        let mut bytes = [0; 100];
        assert_eq!(stream.read(&mut bytes).await.unwrap(), 6);
        let error = stream.read(&mut bytes).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(stream.read(&mut bytes).await.is_err());
        server.join().unwrap();
    }
}

#[tokio::test]
async fn payload_right_behind_the_handshake_is_not_lost() {
    let mut config = server_config();
    config.send_half_rtt_data = true;
    let (address, server) = serve(config, 1, |mut served| {
        // Until our first flight is due: the other side has not said that it is done.
        while !served.tls.wants_write() {
            served.tls.read_tls(&mut served.socket).unwrap();
            served.tls.process_new_packets().unwrap();
        }
        served.write(b"spoken first");
        assert!(served.tls.is_handshaking());
        assert_eq!(served.read(4), b"then");
    });
    let mut stream = connect(&connector(None), address).await.unwrap();
    assert_eq!(read_exact(&mut stream, 12).await.unwrap(), b"spoken first");
    stream.write(b"then").await.unwrap();
    server.join().unwrap();
}

#[tokio::test]
async fn a_dropped_connection_says_goodbye_and_a_forged_record_is_answered() {
    let (address, server) = serve(server_config(), 2, |mut served| {
        let is_forging = served.read(1) == b"f";
        if is_forging {
            let forged = [&[23, 3, 3, 0, 40][..], &[7; 40]].concat();
            served.socket.write_all(&forged).unwrap();
        }
        let mut stream = rustls::Stream::new(&mut served.tls, &mut served.socket);
        stream.read(&mut [0; 1]).map_err(|error| error.to_string())
    });
    let connector = connector(None);
    let mut stream = connect(&connector, address).await.unwrap();
    stream.write(b"g").await.unwrap();
    drop(stream);
    let mut stream = connect(&connector, address).await.unwrap();
    stream.write(b"f").await.unwrap();
    let error = stream.read(&mut [0; 9]).await.unwrap_err();
    let failure = Failure::connection(error);
    assert_eq!(
        (failure.kind, failure.cause),
        (ErrorKind::Unreachable, "tls")
    );
    assert!(failure.is_worth_retrying);
    assert!(
        failure.why.starts_with("TLS broke off: "),
        "{}",
        failure.why
    );
    assert!(!stream.is_quiet());
    assert!(stream.read(&mut [0; 9]).await.is_err());
    drop(stream);
    let [good, forged] = server.join().unwrap().try_into().unwrap();
    assert_eq!(good, Ok(0));
    let alert = forged.unwrap_err();
    assert!(alert.contains("BadRecordMac"), "{alert}");
}

#[tokio::test]
async fn a_dropped_read_loses_nothing() {
    let (go_on, may_go_on) = sync::channel::bounded::<()>(0);
    let (address, server) = serve(server_config(), 1, move |mut served| {
        served.read(1);
        served.tls.writer().write_all(&noise(50_000)).unwrap();
        let sealed = served.sealed();
        for piece in sealed.chunks(7000) {
            may_go_on.recv().unwrap();
            served.socket.write_all(piece).unwrap();
        }
        served.read(1);
    });
    let mut stream = connect(&connector(None), address).await.unwrap();
    stream.write(b"x").await.unwrap();
    let mut slabs = [Slab::heap(50_000)];
    let mut gap = Gap::new(&mut slabs, 0, 50_000);
    let hops = hops();
    let mut drops = 0;
    while gap.left() > 0 {
        let read = stream.read_into(&hops, &mut gap, usize::MAX);
        if timeout(Duration::from_millis(5), read).await.is_err() {
            drops += 1;
            // Whether the server waits for this or is still at the piece before: the read was dropped.
            let _is_waiting = go_on.try_send(());
        }
    }
    assert!(drops >= 8, "{drops}");
    assert_eq!(&slabs[0][..], noise(50_000));
    stream.write(b"x").await.unwrap();
    server.join().unwrap();
}

#[tokio::test]
async fn an_idle_connection_is_quiet_until_something_comes() {
    let (go_on, may_go_on) = sync::channel::unbounded::<()>();
    let (address, server) = serve(server_config(), 1, move |mut served| {
        served.read(1);
        served.write(b"answer");
        served.read(1);
        // A key update is nothing to worry about; a byte is.
        served.tls.refresh_traffic_keys().unwrap();
        served.write(b"more");
        may_go_on.recv().unwrap();
        served.write(b"!");
        may_go_on.recv().unwrap();
    });
    let mut stream = connect(&connector(None), address).await.unwrap();
    for wanted in [&b"answer"[..], b"more"] {
        stream.write(b"x").await.unwrap();
        assert_eq!(read_exact(&mut stream, wanted.len()).await.unwrap(), wanted);
        assert!(stream.is_quiet());
    }
    go_on.send(()).unwrap();
    let noticed = async {
        while stream.is_quiet() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, noticed).await.unwrap();
    go_on.send(()).unwrap();
    server.join().unwrap();
}
