//! `openssl s_server` as the server: another hand's reading of the same standards, in each version with each cipher.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tempfile::TempDir;
use tokio::time::timeout;

use super::peer::noise;
use super::sockets::{PATIENCE, connect, connector, read_exact};
use crate::store::http1::tls::stream::TlsStream;

/// A running server, which ends with this.
struct Server {
    process: Child,
    address: SocketAddr,
    stdout: BufReader<ChildStdout>,
}

/// Whether there is an openssl to speak with: `make test` brings it where it may, and says so where it cannot.
fn is_here() -> bool {
    Command::new("openssl").arg("version").output().is_ok()
}

impl Server {
    fn start(folder: &Path, options: &str) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = made.signing_key.serialize_pem();
        fs::write(folder.join("both.pem"), [made.cert.pem(), key].concat()).unwrap();
        let started = Command::new("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0", "-naccept", "1"])
            .args(["-cert", "both.pem", "-key", "both.pem"])
            .args(options.split_whitespace())
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut process = started.unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let line = line_with(&mut stdout, "ACCEPT ");
        let address = line.trim().trim_start_matches("ACCEPT ").parse().unwrap();
        Self {
            process,
            address,
            stdout,
        }
    }

    fn stdin(&mut self) -> &mut ChildStdin {
        self.process.stdin.as_mut().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Reads on until a line holds `text`.
fn line_with(lines: &mut impl BufRead, text: &str) -> String {
    loop {
        let mut line = String::new();
        let len = lines.read_line(&mut line).unwrap();
        assert!(len > 0, "openssl ended before it said {text:?}");
        if line.contains(text) {
            return line;
        }
    }
}

const CIPHERS: [&str; 6] = [
    "-tls1_3 -ciphersuites TLS_AES_128_GCM_SHA256",
    "-tls1_3 -ciphersuites TLS_AES_256_GCM_SHA384",
    "-tls1_3 -ciphersuites TLS_CHACHA20_POLY1305_SHA256",
    "-tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256",
    "-tls1_2 -cipher ECDHE-ECDSA-AES256-GCM-SHA384",
    "-tls1_2 -cipher ECDHE-ECDSA-CHACHA20-POLY1305",
];

#[tokio::test]
async fn files_come_whole_from_openssl_with_each_cipher_of_each_version() {
    if !is_here() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let body = noise(3_000_001);
    fs::write(folder.path().join("file"), &body).unwrap();
    // As they are; many small records; padded ones among many tickets.
    let ways = [
        "-WWW",
        "-WWW -max_send_frag 512",
        "-WWW -record_padding 777 -num_tickets 9 -max_send_frag 5000",
    ];
    for cipher in CIPHERS {
        for way in ways {
            let server = Server::start(folder.path(), &format!("{cipher} {way}"));
            let mut stream = connect(&connector(None), server.address).await.unwrap();
            stream.write(b"GET /file HTTP/1.0\r\n\r\n").await.unwrap();
            let head = b"HTTP/1.0 200 ok\r\nContent-type: text/plain\r\n\r\n";
            // One byte more than there is: the end has to be seen, too.
            let answer = read_exact(&mut stream, head.len() + body.len() + 1)
                .await
                .unwrap();
            assert!(answer.starts_with(head), "{cipher} {way}");
            assert!(answer[head.len()..] == body, "{cipher} {way}");
        }
    }
}

#[tokio::test]
async fn keys_are_updated_when_openssl_does_and_when_it_asks() {
    if !is_here() {
        return;
    }
    let folder = TempDir::new().unwrap();
    for cipher in &CIPHERS[..3] {
        let mut server = Server::start(folder.path(), cipher);
        let mut stream = connect(&connector(None), server.address).await.unwrap();
        for command in ["", "k\n", "K\n", "K\n", "k\n"] {
            if !command.is_empty() {
                update(&mut server, &mut stream, command).await;
            }
            server.stdin().write_all(b"from the server\n").unwrap();
            let line = read_exact(&mut stream, 16).await.unwrap();
            assert_eq!(line, b"from the server\n");
            // Sealed with the key that was asked for.
            let text = format!("from the client after {command:?}\n");
            stream.write(text.as_bytes()).await.unwrap();
            line_with(&mut server.stdout, text.trim());
        }
    }
}

/// Lets the server update its key, and waits until that came in.
async fn update(server: &mut Server, stream: &mut TlsStream, command: &str) {
    // In one piece: the server looks at the first byte of what it reads at once.
    server.stdin().write_all(command.as_bytes()).unwrap();
    let updated = async {
        // Nothing was opened yet with the new key.
        while !format!("{stream:?}").contains("Opener(Count { form: Tls13, seq: 0") {
            assert!(stream.is_quiet());
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, updated).await.unwrap();
}

#[tokio::test]
async fn openssl_that_is_killed_is_no_clean_end() {
    if !is_here() {
        return;
    }
    let folder = TempDir::new().unwrap();
    for cipher in [CIPHERS[0], CIPHERS[3]] {
        let mut server = Server::start(folder.path(), cipher);
        let mut stream = connect(&connector(None), server.address).await.unwrap();
        server.stdin().write_all(b"so far\n").unwrap();
        assert_eq!(read_exact(&mut stream, 7).await.unwrap(), b"so far\n");
        server.process.kill().unwrap();
        assert!(stream.read(&mut [0; 9]).await.is_err());
        let mut rest = Vec::new();
        server.stdout.read_to_end(&mut rest).unwrap();
    }
}

#[tokio::test]
async fn a_renegotiation_by_openssl_is_refused() {
    if !is_here() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let mut server = Server::start(folder.path(), CIPHERS[3]);
    let mut stream = connect(&connector(None), server.address).await.unwrap();
    server.stdin().write_all(b"before\n").unwrap();
    assert_eq!(read_exact(&mut stream, 7).await.unwrap(), b"before\n");
    server.stdin().write_all(b"r\n").unwrap();
    let error = stream.read(&mut [0; 9]).await.unwrap_err();
    assert!(error.to_string().contains("negotiate anew"), "{error}");
}
