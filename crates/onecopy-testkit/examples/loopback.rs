//! How fast the S3 server is on loopback: GETs of 8 MiB ranges into one buffer per connection.
//!
//! `cargo run --release -p onecopy-testkit --example loopback [connections] [folder]`
#![expect(clippy::print_stdout, reason = "an example reports on stdout")]

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use onecopy_testkit::s3::S3Server;

const OBJECT_BYTES: usize = 256 << 20;
const RANGE_BYTES: usize = 8 << 20;
const RANGES_PER_CONNECTION: usize = 512;

fn main() -> io::Result<()> {
    let connections = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(4);
    let mut builder = S3Server::builder().anonymous(true);
    if let Some(folder) = std::env::args().nth(2) {
        builder = builder.folder(folder);
    }
    let server = builder.start()?;
    server.create_bucket("bucket")?;
    server.put("bucket", "object", vec![7; OBJECT_BYTES])?;
    let address = server.addr();
    let begun = Instant::now();
    let total = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..connections)
            .map(|_| scope.spawn(move || read(address)))
            .collect();
        let read = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or(Ok(0)));
        read.sum::<io::Result<usize>>()
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a report")]
    let rate = total as f64 / seconds / 1e9;
    println!("{connections} connections: {rate:.2} GB/s ({total} bytes in {seconds:.2} s)");
    Ok(())
}

fn read(address: SocketAddr) -> io::Result<usize> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    let mut body = vec![0; RANGE_BYTES + 4096];
    let mut total = 0;
    for number in 0..RANGES_PER_CONNECTION {
        let start = number * RANGE_BYTES % OBJECT_BYTES;
        let last = start + RANGE_BYTES - 1;
        // In one write: pieces of a head would wait for each other's delayed ACK.
        let head = format!(
            "GET /bucket/object HTTP/1.1\r\nHost: x\r\nRange: bytes={start}-{last}\r\n\r\n"
        );
        socket.write_all(head.as_bytes())?;
        let mut have = 0;
        let head = loop {
            have += socket.read(&mut body[have..])?;
            let end = body[..have].windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                break end + 4;
            }
        };
        let mut left = RANGE_BYTES - (have - head);
        while left > 0 {
            let read = socket.read(&mut body[..left])?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            left -= read;
        }
        total += RANGE_BYTES;
    }
    Ok(total)
}
