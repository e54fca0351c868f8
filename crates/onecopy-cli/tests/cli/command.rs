//! Runs the binary beside a server, away from the settings of whoever runs the tests.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use std::fmt;
use std::process::{Command, Output, Stdio};

use onecopy_testkit::s3::S3Server;
use onecopy_testkit::shards::{Field, Shard, ShardMaker};
use serde_json::Value;
use tempfile::TempDir;

/// A server with the bucket `data`, and a home folder without settings.
pub(crate) struct World {
    pub(crate) server: S3Server,
    home: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let server = S3Server::builder().start().unwrap();
        server.create_bucket("data").unwrap();
        Self {
            server,
            home: TempDir::new().unwrap(),
        }
    }

    pub(crate) fn put(&self, key: &str, bytes: impl Into<Vec<u8>>) {
        self.server.put("data", key, bytes.into()).unwrap();
    }

    /// Three shards of small pictures below `train/`.
    pub(crate) fn put_shards(&self, samples: u64) -> Vec<Shard> {
        let shards = ShardMaker::new(3)
            .samples(samples)
            .shards(3)
            .size(64, 48)
            .fields([Field::jpg(), Field::cls()])
            .build();
        for shard in &shards {
            self.put(&format!("train/{}", shard.name), shard.bytes.clone());
        }
        shards
    }

    /// The command as a shell starts it after `setup`.
    pub(crate) fn in_a_shell(&self, setup: &str, args: &[&str]) -> Command {
        let inner = self.command(args);
        let mut command = Command::new("/bin/sh");
        command
            .env_clear()
            .args(["-c", &format!("{setup} && exec \"$0\" \"$@\"")])
            .arg(inner.get_program())
            .args(inner.get_args());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// The command with the server's endpoint and keys.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = bare(args);
        command
            .env("HOME", self.home.path())
            .env("AWS_ENDPOINT_URL", self.server.endpoint())
            .env("AWS_ACCESS_KEY_ID", "onecopy")
            .env("AWS_SECRET_ACCESS_KEY", "onecopy-secret");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        Ended::from(self.command(args).output().unwrap())
    }
}

/// The command without any server.
pub(crate) fn bare(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onecopy"));
    command
        .args(args)
        .env_clear()
        .env("HOME", "/nonexistent")
        .env("AWS_REGION", "us-east-1")
        // No credentials from the machine that runs the tests.
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .stdin(Stdio::null());
    command
}

/// How a run ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl fmt::Debug for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, stderr) = (self.code, &self.stderr);
        let stdout = String::from_utf8_lossy(&self.stdout);
        write!(
            f,
            "code {code:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}"
        )
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ended {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// Stdout as the one JSON object that it must be.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.text().lines().count(), 1, "{self:?}");
        let value: Value = serde_json::from_str(self.text()).unwrap();
        assert_eq!(value["schema"], 1, "{self:?}");
        value
    }

    /// It ended with an error after some items were done: 2, and one error of this text.
    #[track_caller]
    pub(crate) fn failed_after(&self, texts: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert_eq!(self.stderr.matches("onecopy: ").count(), 1, "{self:?}");
        for text in texts.iter().chain(&["\nhelp: "]) {
            assert!(self.stderr.contains(text), "{text:?} is not in {self:?}");
        }
    }

    /// It could not run: 2, nothing on stdout, and one error of this text with some help on stderr.
    #[track_caller]
    pub(crate) fn failed(&self, texts: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert!(self.stdout.is_empty(), "{self:?}");
        assert_eq!(self.stderr.matches("onecopy: ").count(), 1, "{self:?}");
        assert!(self.stderr.starts_with("onecopy: could not "), "{self:?}");
        for text in texts.iter().chain(&["\nhelp: "]) {
            assert!(self.stderr.contains(text), "{text:?} is not in {self:?}");
        }
    }
}
