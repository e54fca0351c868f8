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

/// Time to reach the metadata service of a cloud machine, and for the answer of Amazon's: it is one hop away, or it is not
/// there at all. Those of Google and Microsoft fetch the token from elsewhere before they answer.
const METADATA_TIMEOUT: Duration = Duration::from_secs(1);

/// Time for services that give out tokens.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Time for a program that gives out credentials, as AWS's SDK for Go has it: it may ask over the network, or ask somebody.
/// And for a file that holds them. What takes longer is left to itself.
const LOCAL_TIMEOUT: Duration = Duration::from_mins(1);

/// Answers longer than this are refused: credentials are some 2 KiB.
const MAX_ANSWER: usize = 1 << 20;

/// What went wrong last when credentials were asked for over the network, in words; none where nothing did. The metadata
/// service of a cloud machine is left out: elsewhere it is always missing.
#[derive(Debug, Clone, Default)]
pub(in crate::store) struct Trouble(Arc<Mutex<Option<String>>>);

impl Trouble {
    /// The words.
    pub(in crate::store) fn told(&self) -> Option<String> {
        self.0.lock().clone()
    }

    /// `why` with the words behind it.
    pub(in crate::store) fn behind(&self, why: &str) -> String {
        match self.told() {
            Some(words) => format!("{why}: {words}"),
            None => why.to_owned(),
        }
    }

    fn note(&self, words: Option<String>) {
        *self.0.lock() = words;
    }
}

/// The context in which credentials are looked for, and what becomes of the search.
pub(in crate::store) fn context(config: &StoreConfig) -> (Context, Trouble) {
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
        metadata: Client::new(&near(&config)).directly(),
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

/// For what is one hop away.
fn near(config: &StoreConfig) -> StoreConfig {
    let mut near = config.clone();
    near.limits.connect_timeout = METADATA_TIMEOUT;
    near
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

/// Waits for a file or a program on a thread of its own, but no longer than they may take.
async fn in_time<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<crate::error::Result<T>> {
    let threads = Threads::new("credentials", 1);
    let done = tokio::time::timeout(LOCAL_TIMEOUT, threads.run(work)).await;
    done.map_err(|_elapsed| {
        let seconds = LOCAL_TIMEOUT.as_secs();
        Error::unexpected(format!("{name} gave no credentials within {seconds} s"))
    })
}

#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> Result<Vec<u8>> {
        let file = path.to_owned();
        let read = in_time(path, move || small_file::read(file)).await?;
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
        let ran = in_time(program, move || command.output()).await?;
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
        let service = Service::of(&endpoint.host, rest);
        let is_metadata = service != Service::Other;
        let (client, timeout) = match service {
            Service::Metadata => (&self.metadata, METADATA_TIMEOUT),
            Service::MetadataThatAsks => (&self.metadata, TIMEOUT),
            Service::Other => (&self.client, TIMEOUT),
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

/// Who is asked for a credential.
#[derive(Debug, PartialEq, Eq)]
enum Service {
    /// EC2's metadata service, ECS's and EKS's: link-local addresses, or paths that only EC2's has.
    Metadata,
    /// That of Google or Microsoft.
    MetadataThatAsks,
    Other,
}

impl Service {
    fn of(host: &str, path: &str) -> Self {
        let begins = |start: &str| path.starts_with(start);
        if begins("/computeMetadata/") || begins("/metadata/identity/") {
            return Self::MetadataThatAsks;
        }
        if host.starts_with("169.254.") || host.starts_with("fd00:ec2:") || begins("/latest/") {
            return Self::Metadata;
        }
        Self::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_program_that_does_not_end_is_an_error_that_names_it() {
        // The clock is far ahead of the program.
        let ran = Programs.command_execute("sleep", &["3"]).await;
        let error = ran.unwrap_err().to_string();
        assert!(
            error.contains("sleep gave no credentials within 60 s"),
            "{error}"
        );
    }

    #[test]
    fn metadata_services_are_told_from_all_others() {
        for (host, path, service) in [
            ("169.254.169.254", "/latest/api/token", Service::Metadata),
            ("169.254.170.2", "/v2/credentials", Service::Metadata),
            (
                "169.254.169.254",
                "/metadata/identity/oauth2/token?x",
                Service::MetadataThatAsks,
            ),
            (
                "metadata.google.internal",
                "/computeMetadata/v1/instance",
                Service::MetadataThatAsks,
            ),
            ("oauth2.googleapis.com", "/token", Service::Other),
        ] {
            assert_eq!(Service::of(host, path), service, "{host}{path}");
        }
    }
}
