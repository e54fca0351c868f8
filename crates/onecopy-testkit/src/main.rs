//! The stand-ins as a command, for demos, benchmarks and tests in other languages.
//!
//! Absent: logic. Each command builds a stand-in, says where it is, and waits.

mod args;

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use onecopy_testkit::fault::{FaultServer, Profile};
use onecopy_testkit::s3::S3Server;
use onecopy_testkit::shards::{Dtype, Field, ShardMaker};

use crate::args::{Args, Command, FaultArgs, Kind, ProfileName, ServeArgs, ShardsArgs};

/// Files up to this are held in memory. The ETags of larger ones follow from their names: to read them first would take long.
const HELD_BYTES: u64 = 8 << 20;

fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Serve(args) => serve(&args),
        Command::Fault(args) => fault(&args),
        Command::Shards(args) => shards(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell if this fails, too.
            drop(writeln!(io::stderr(), "error: {error}"));
            ExitCode::from(2)
        }
    }
}

fn serve(args: &ServeArgs) -> io::Result<()> {
    let mut builder = S3Server::builder()
        .credentials(&args.key, &args.secret)
        .region(&args.region)
        .anonymous(args.anonymous)
        .bind(&format!("{}:{}", args.host, args.port))
        .tls(args.tls.is_some());
    if let Some(root) = &args.root {
        builder = builder.folder(root);
    }
    if let Some(file) = &args.sums {
        builder = builder.sums(file);
    }
    let server = builder.start()?;
    server.create_bucket(&args.bucket)?;
    if let Some(shards) = args.make_shards {
        let maker = maker(args.kind, args.sample_bytes, args.seed);
        let maker = maker
            .shards(shards)
            .samples(shards * args.samples_per_shard);
        let mut stored = Ok(());
        maker.build_into(|shard| {
            if stored.is_ok() {
                stored = server.put(&args.bucket, &shard.name, shard.bytes);
            }
        });
        stored?;
    }
    if let (Some(folder), Some(pem)) = (&args.tls, server.ca_pem()) {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("ca.pem"), pem)?;
    }
    announce(&server.endpoint(), &args.bucket)?;
    wait(args.until_stdin_closes)
}

fn fault(args: &FaultArgs) -> io::Result<()> {
    let mut profile = match (args.bytes_per_second, args.profile) {
        (Some(rate), _) => {
            Profile::even(f64::from(rate), Duration::from_millis(args.first_byte_ms))
        }
        (None, ProfileName::Instant) => Profile::instant(),
        (None, ProfileName::Standard) => Profile::standard(args.seed),
        (None, ProfileName::Express) => Profile::express(args.seed),
    };
    profile.refuse_after = Duration::from_millis(args.refuse_after_ms);
    profile.refuse_for = Duration::from_millis(args.refuse_for_ms);
    let server = FaultServer::start_with(&format!("{}:{}", args.host, args.port), profile)?;
    if let Some(root) = &args.root {
        put_folder(&server, root, "")?;
    }
    announce(&server.endpoint(), "bucket")?;
    wait(args.until_stdin_closes)
}

/// Puts every file below a folder; the key is its path from there.
fn put_folder(server: &FaultServer, folder: &Path, below: &str) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let key = format!("{below}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            put_folder(server, &entry.path(), &format!("{key}/"))?;
        } else if entry.path().metadata()?.len() > HELD_BYTES {
            server.put_file(&key, &entry.path())?;
        } else {
            server.put(&key, std::fs::read(entry.path())?);
        }
    }
    Ok(())
}

fn shards(args: &ShardsArgs) -> io::Result<()> {
    let maker = maker(args.kind, args.sample_bytes, args.seed);
    let maker = maker
        .shards(args.shards)
        .samples(args.samples)
        .size(args.width, args.height);
    for path in maker.write_into(&args.folder)? {
        writeln!(io::stdout(), "{}", path.display())?;
    }
    Ok(())
}

fn maker(kind: Kind, sample_bytes: usize, seed: u64) -> ShardMaker {
    let content = match kind {
        Kind::Jpg => Field::jpg(),
        Kind::Npy => Field::npy(Dtype::U8, &[sample_bytes]),
        Kind::Raw => Field::raw(sample_bytes),
    };
    ShardMaker::new(seed).fields([content, Field::cls()])
}

/// One line of JSON, so that whoever started us knows where we are and that we are ready.
fn announce(endpoint: &str, bucket: &str) -> io::Result<()> {
    let told = serde_json::json!({
        "endpoint": endpoint,
        "bucket": bucket,
        "pid": std::process::id(),
    });
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{told}")?;
    stdout.flush()
}

/// Waits for SIGTERM, SIGINT or, where asked, the end of stdin.
fn wait(until_stdin_closes: bool) -> io::Result<()> {
    if until_stdin_closes {
        std::thread::Builder::new()
            .name("testkit-stdin".to_owned())
            .spawn(|| {
                let mut stdin = io::stdin().lock();
                while matches!(stdin.read(&mut [0; 256]), Ok(1..)) {}
                // The servers hold nothing that a drop would save.
                std::process::exit(0);
            })?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        use tokio::signal::unix::{SignalKind, signal};

        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}
