//! One file or folder per command. A command prints nothing: it returns a value for `output` to
//! show. Exceptions are `cat`, whose result is the bytes themselves, and `cp` and `sync`, which show
//! a line per item as it is done.

mod bench;
mod buckets;
mod cat;
mod cp;
mod demo;
mod figures;
mod index;
mod ls;
mod run;
mod sync;
mod transfer;

use onecopy::Result;
use onecopy::config::{Limits, LoadConfig, StoreConfig};

use crate::args::{Command, ReadingArgs, StoreArgs};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{Output, Shown};
use crate::progress::Progress;

/// What surrounds a command.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) interrupt: Interrupt,
    pub(crate) progress: Progress,
    /// For commands that have something to show before they are done.
    pub(crate) output: Output,
    pub(crate) is_quiet: bool,
}

/// What a command found, and the answer that it gives.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) value: Option<Box<dyn Shown>>,
    /// Something to know of the answer, for people: on stderr, unless they want quiet.
    pub(crate) remark: Option<String>,
    pub(crate) exit: Exit,
}

impl Outcome {
    fn new(value: impl Shown + 'static, exit: Exit) -> Self {
        let value: Box<dyn Shown> = Box::new(value);
        Self {
            value: Some(value),
            remark: None,
            exit,
        }
    }

    fn with_remark(mut self, remark: String) -> Self {
        self.remark = Some(remark);
        self
    }
}

/// Runs `command`.
pub(crate) fn run(command: Command, context: &Context) -> Result<Outcome> {
    match command {
        Command::Demo(args) => demo::run(&args, context),
        Command::Ls(args) => ls::run(&args, context),
        Command::Cat(args) => cat::run(&args, context),
        Command::Cp(args) => cp::run(&args, context),
        Command::Run(args) => run::run(&args, context),
        Command::Sync(args) => sync::run(&args, context),
        Command::Index(args) => index::run(&args, context),
        Command::Bench(args) => bench::run(&args, context),
    }
}

fn store_config(args: &StoreArgs) -> StoreConfig {
    StoreConfig {
        endpoint_url: args.endpoint_url.clone(),
        region: args.region.clone(),
        profile: args.profile.clone(),
        is_anonymous: args.is_anonymous,
        is_requester_paying: args.request_payer.is_some(),
        addressing_style: args.addressing_style,
        sse_c_key: args.sse_c_key.clone(),
        is_checksum_unverified: args.is_checksum_unverified,
        ca_bundle: args.ca_bundle.clone(),
        is_tls_unverified: args.is_tls_unverified,
        ..StoreConfig::default()
    }
}

fn load_config(store: &StoreArgs, reading: &ReadingArgs) -> LoadConfig {
    let mut config = LoadConfig {
        store: store_config(store),
        memory_bytes: reading.memory,
        range_bytes: reading.range,
        ..LoadConfig::default()
    };
    if let Some(connections) = reading.connections {
        config.store.limits = Limits {
            connections,
            ..config.store.limits
        };
    }
    config
}
