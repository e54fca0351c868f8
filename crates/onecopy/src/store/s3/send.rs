//! The outside world, as the credential chain sees it: files, programs, variables, and our own HTTP client.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use reqsign_core::{
    CommandExecute, CommandOutput, Context, Env, Error, FileRead, HttpSend, Result,
};

use super::super::http1::{Client, Endpoint, Failure, Request};
use super::super::small_file;
use crate::config::{Limits, StoreConfig, Variables};
use crate::error::ErrorKind;
use crate::sync::{Arc, Mutex, Threads};

/// Time for the metadata service of a cloud machine: it is one hop away, or it is not there at all.
const METADATA_TIMEOUT: Duration = Duration::from_secs(1);

/// Time for STS, SSO and ECS.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Answers longer than this are refused: credentials are some 2 KiB.
const MAX_ANSWER: usize = 1 << 20;

/// What went wrong last when credentials were asked for over the network, in words; none where nothing did. The metadata
/// service of a cloud machine is left out: elsewhere it is always missing.
#[derive(Debug, Clone, Default)]
pub(super) struct Trouble(Arc<Mutex<Option<String>>>);

impl Trouble {
    /// The words.
    pub(super) fn told(&self) -> Option<String> {
        self.0.lock().clone()
    }

    fn note(&self, words: Option<String>) {
        *self.0.lock() = words;
    }
}

/// The context in which credentials are looked for, and what becomes of the search.
pub(super) fn context(config: &StoreConfig) -> (Context, Trouble) {
    // Connections of their own: a full pool of data connections must not keep credentials waiting.
    let limits = Limits {
        connections: 2,
        tries: 1,
        ..config.limits.clone()
    };
    let config = StoreConfig {
        limits,
        ..config.clone()
    };
    let sender = Sender {
        client: Client::new(&config),
        // A proxy would ask its own machine who it is.
        metadata: Client::new(&config).directly(),
        trouble: Trouble::default(),
    };
    let trouble = sender.trouble.clone();
    let context = Context::new()
        .with_env(Surroundings(config.variables))
        .with_file_read(Files)
        .with_command_execute(Programs)
        .with_http_send(sender);
    (context, trouble)
}

#[derive(Debug)]
struct Surroundings(Variables);

impl Env for Surroundings {
    fn var(&self, key: &str) -> Option<String> {
        self.0.get(key)
    }

    fn vars(&self) -> HashMap<String, String> {
        self.0.all().into_iter().collect()
    }

    fn home_dir(&self) -> Option<PathBuf> {
        self.0.get("HOME").map(PathBuf::from)
    }
}

/// For what waits for files and programs, one at a time.
fn waiting() -> Threads {
    Threads::new("credentials", 1)
}

#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> Result<Vec<u8>> {
        let file = path.to_owned();
        let read = waiting().run(move || small_file::read(file)).await;
        // Without a thread to wait on: it is a small file, and credentials that are there must not seem to be missing.
        read.unwrap_or_else(|_no_thread| small_file::read(path))
            .map_err(|error| Error::config_invalid(error.to_string()))
    }
}

#[derive(Debug)]
struct Programs;

impl CommandExecute for Programs {
    async fn command_execute<'a>(
        &'a self,
        program: &'a str,
        args: &'a [&'a str],
    ) -> Result<CommandOutput> {
        let mut command = std::process::Command::new(program);
        command.args(args).stdin(std::process::Stdio::null());
        let ran = waiting().run(move || command.output()).await;
        let output = ran
            .map_err(|error| Error::unexpected(error.to_string()))?
            .map_err(|error| Error::config_invalid(error.to_string()))?;
        Ok(CommandOutput {
            status: output.status.code().unwrap_or(-1),
            stdout: output.stdout,
            stderr: output.stderr,
        })
    }
}

#[derive(Debug)]
struct Sender {
    client: Client,
    metadata: Client,
    trouble: Trouble,
}

impl HttpSend for Sender {
    async fn http_send(&self, asked: http::Request<Bytes>) -> Result<http::Response<Bytes>> {
        let (parts, body) = asked.into_parts();
        let uri = parts.uri.to_string();
        let (endpoint, rest) = Endpoint::split(&uri)
            .map_err(|_shows_the_url| Error::request_invalid("the URL of a credential request"))?;
        let is_metadata = is_metadata(&endpoint.host, rest);
        let (client, timeout) = if is_metadata {
            (&self.metadata, METADATA_TIMEOUT)
        } else {
            (&self.client, TIMEOUT)
        };
        let rest = if rest.starts_with('/') {
            rest.to_owned()
        } else {
            format!("/{rest}")
        };
        let place = endpoint.to_string();
        let request = Request {
            method: parts.method,
            endpoint,
            path_and_query: rest,
            headers: parts.headers,
            body,
        };
        let exchange = async {
            let answer = client.send(&request).await?;
            let (status, headers) = (answer.head.status, answer.head.headers);
            let text = answer.body.collect(MAX_ANSWER).await?;
            Ok::<_, Failure>((status, headers, text))
        };
        let late = || Failure::new(ErrorKind::Unreachable, "timeout", "no answer in time");
        let answered = tokio::time::timeout(timeout, exchange).await;
        let answered = answered.unwrap_or_else(|_elapsed| Err(late()));
        let (status, headers, text) = answered.map_err(|failure| {
            let error = failure.into_error("ask for them at", place.as_str());
            if !is_metadata {
                self.trouble.note(Some(error.to_string()));
            }
            Error::unexpected(error.to_string())
        })?;
        if !is_metadata {
            let refused = format!("{place} refused them (status {status})");
            self.trouble.note((status >= 400).then_some(refused));
        }
        let mut answer = http::Response::new(Bytes::from(text));
        *answer.status_mut() = http::StatusCode::from_u16(status)
            .map_err(|error| Error::unexpected(error.to_string()))?;
        *answer.headers_mut() = headers;
        Ok(answer)
    }
}

/// EC2's metadata service, ECS's and EKS's: link-local addresses, or paths that only EC2's has.
fn is_metadata(host: &str, path: &str) -> bool {
    host.starts_with("169.254.") || host.starts_with("fd00:ec2:") || path.starts_with("/latest/")
}
