//! What Python asks for, as the engine takes it.

use std::str::FromStr;
use std::time::Duration;

use onecopy::config::{AddressingStyle, LoadConfig, OnError, Secret, StoreConfig};
use onecopy::device::Device;
use onecopy::loader::Position;
use onecopy::route::{Route, RouteWish};
use onecopy::sample::SampleOptions;
use onecopy::sample::decode::{Decoder, Fit};
use onecopy::sample::order::{self, Part};
use onecopy::{Error, ErrorKind, Loader, Mix, size};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::catalog::Catalog;
use crate::error::to_py;
use crate::order::Order;
use crate::policy::{Policy, Wish};
use crate::wait::interruptible;

/// The attributes of `onecopy._settings.Settings`, read at once.
#[derive(FromPyObject)]
pub(crate) struct Settings {
    urls: Vec<String>,
    endpoint_url: Option<String>,
    region: Option<String>,
    profile: Option<String>,
    no_sign_request: bool,
    is_requester_paying: bool,
    addressing_style: Option<String>,
    sse_c_key: Option<String>,
    no_verify_checksum: bool,
    ca_bundle: Option<String>,
    no_verify_ssl: bool,
    memory_bytes: Option<usize>,
    route: String,
    require: Option<String>,
    on_error: Wish,
    max_skipped: Option<u64>,
    wait_limit: Option<f64>,
    connections: Option<usize>,
    decode_threads: Option<usize>,
    key_rule: String,
    duplicates: String,
    shuffle: Option<(usize, u64)>,
    is_decoding: bool,
    pictures: Option<Decoding>,
    decoders: Vec<(String, Decoding)>,
    fields: Option<Vec<String>>,
    batch_size: Option<usize>,
    device: String,
    epoch: u64,
    part: (u64, u64, u64, u64),
    index: Option<String>,
    lanes: Option<u64>,
    lane_groups: Option<u64>,
    window: Option<u64>,
    step: Option<u64>,
    steps_per_epoch: Option<u64>,
    steps_made: u64,
    is_stepping: bool,
    tail: Option<String>,
    position: Option<String>,
    choices: Vec<Choice>,
    sources: Vec<Self>,
    weights: Option<Vec<f64>>,
    mix_seed: u64,
    stop: String,
}

/// How a field is decoded.
#[derive(FromPyObject)]
pub(crate) struct Decoding {
    kind: String,
    size: Option<(u32, u32)>,
    fit: String,
}

/// Which samples are read: the dataclasses of `_settings.py`.
#[derive(FromPyObject)]
pub(crate) enum Choice {
    Slice {
        start: Option<i64>,
        stop: Option<i64>,
        step: u64,
    },
    Those {
        places: PyBackedBytes,
    },
    Drawn {
        seed: u64,
        first: f64,
        then: f64,
    },
}

impl Choice {
    fn of(&self) -> order::Choice {
        match self {
            Self::Slice { start, stop, step } => order::Choice::Slice {
                start: *start,
                stop: *stop,
                step: *step,
            },
            Self::Those { places } => {
                let (numbers, _) = places.as_chunks::<8>();
                let numbers = numbers.iter().copied().map(u64::from_ne_bytes);
                order::Choice::Those(numbers.collect())
            }
            Self::Drawn { seed, first, then } => order::Choice::Drawn {
                seed: *seed,
                from: *first,
                to: *then,
            },
        }
    }
}

impl Settings {
    /// How to reach the store.
    fn store(&self) -> Result<StoreConfig, Error> {
        let style = self.addressing_style.as_deref();
        let mut store = StoreConfig {
            endpoint_url: self.endpoint_url.clone(),
            region: self.region.clone(),
            profile: self.profile.clone(),
            is_anonymous: self.no_sign_request,
            is_requester_paying: self.is_requester_paying,
            addressing_style: style
                .map(|style| option::<AddressingStyle>("addressing_style", style))
                .transpose()?,
            sse_c_key: self.sse_c_key.clone().map(Secret),
            is_checksum_unverified: self.no_verify_checksum,
            ca_bundle: self.ca_bundle.clone(),
            is_tls_unverified: self.no_verify_ssl,
            ..StoreConfig::default()
        };
        if let Some(connections) = self.connections {
            store.limits.connections = connections;
        }
        Ok(store)
    }

    /// What is read, and how one may get at it.
    fn source(&self, on_error: OnError) -> Result<Loader, Error> {
        let config = LoadConfig {
            store: self.store()?,
            route: self.wish()?,
            memory_bytes: self.memory_bytes,
            decode_threads: self.decode_threads,
            on_error,
            max_skipped: self.max_skipped,
            // What is longer than a Duration can be is for ever.
            wait_limit: self
                .wait_limit
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            ..LoadConfig::default()
        };
        config.check()?;
        let loader = onecopy::open(self.urls.clone(), config)
            .options(self.options()?)
            .index(self.index.clone())
            .choose(self.choices.iter().map(Choice::of));
        Ok(match self.shuffle {
            Some((capacity, seed)) => loader.shuffle(capacity, seed),
            None => loader,
        })
    }

    /// What is read of all sources.
    fn sources(&self, on_error: &OnError) -> Result<Loader, Error> {
        if self.sources.is_empty() {
            return self.source(on_error.clone());
        }
        let sources = self.sources.iter();
        let sources = sources.map(|one| one.sources(on_error));
        let how = Mix {
            weights: self.weights.clone(),
            seed: self.mix_seed,
            stop: option("stop", &self.stop)?,
        };
        onecopy::mix(sources.collect::<Result<Vec<_>, Error>>()?, how)
    }

    /// The engine's loader, and what to do about errors.
    pub(crate) fn loader(mut self) -> Result<(Loader, Policy), Error> {
        let raise = Wish::Word("raise".to_owned());
        let policy = Policy::of(std::mem::replace(&mut self.on_error, raise))?;
        let (rank, ranks, worker, workers) = self.part;
        let tail = self.tail.as_deref();
        let position = self.position.as_deref();
        let mut loader = self
            .sources(&policy.for_engine())?
            .to(self.device.parse::<Device>()?)
            .epoch(self.epoch)
            .part(Part {
                rank,
                ranks,
                worker,
                workers,
            })
            .lanes(self.lanes, self.lane_groups)
            .window(self.window)
            .step(self.step)
            .steps_per_epoch(self.steps_per_epoch)
            .steps_made(self.steps_made)
            .steps_outside(self.is_stepping)
            .tail(tail.map(|tail| option("tail", tail)).transpose()?)
            .position(position.map(str::parse::<Position>).transpose()?);
        if self.is_decoding {
            loader = loader.decode(self.pictures.as_ref().map(decoder).transpose()?);
        }
        for (name, decoding) in &self.decoders {
            loader = loader.decode_field(name, decoder(decoding)?);
        }
        if let Some(fields) = self.fields {
            loader = loader.fields(fields);
        }
        if let Some(size) = self.batch_size {
            loader = loader.batch(size, false);
        }
        Ok((loader, policy))
    }

    fn wish(&self) -> Result<RouteWish, Error> {
        if let Some(route) = &self.require {
            return Ok(RouteWish::Require(option::<Route>("require", route)?));
        }
        if self.route == "auto" {
            return Ok(RouteWish::Auto);
        }
        Ok(RouteWish::Prefer(option::<Route>("route", &self.route)?))
    }

    fn options(&self) -> Result<SampleOptions, Error> {
        Ok(SampleOptions {
            key_rule: option("key_rule", &self.key_rule)?,
            duplicates: option("duplicates", &self.duplicates)?,
            ..SampleOptions::default()
        })
    }
}

/// The engine's decoder for `decoding`.
fn decoder(decoding: &Decoding) -> Result<Decoder, Error> {
    Ok(match decoding.kind.as_str() {
        "rgb" => Decoder::Rgb {
            size: decoding.size,
            fit: fit(&decoding.fit)?,
        },
        "npy" => Decoder::Npy,
        "npz" => Decoder::Npz,
        "cls" => Decoder::Cls,
        "txt" => Decoder::Text,
        "json" => Decoder::Json,
        "raw" => Decoder::Raw,
        other => {
            return Err(unknown(
                "decode",
                other,
                "use \"rgb\", \"npy\", \"npz\", \"cls\", \"txt\", \"json\", \"raw\" or a function",
            ));
        }
    })
}

fn fit(word: &str) -> Result<Fit, Error> {
    match word {
        "crop" => Ok(Fit::Crop),
        "stretch" => Ok(Fit::Stretch),
        other => Err(unknown("fit", other, "use \"crop\" or \"stretch\"")),
    }
}

/// `value` as what the option `name` takes.
fn option<T: FromStr<Err = String>>(name: &str, value: &str) -> Result<T, Error> {
    value
        .parse()
        .map_err(|why: String| Error::new(ErrorKind::InvalidInput, "take the option", name, why))
}

fn unknown(name: &str, value: &str, help: &str) -> Error {
    let why = format!("it does not know {value:?}");
    Error::new(ErrorKind::InvalidInput, "take the option", name, why).with_help(help)
}

/// Says whether the engine knows every word of `settings`, without reading anything.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, settings: Settings) -> PyResult<()> {
    settings
        .loader()
        .map(drop)
        .map_err(|error| to_py(py, error))
}

/// Says what a run would be, before the first byte of the data is read: how it is ordered, then lanes of this process, bytes,
/// ranges, bytes of a range, of the pool, and of batches on their way.
#[pyfunction]
#[pyo3(signature = (settings, catalog=None))]
pub(crate) fn plan(
    py: Python<'_>,
    settings: Settings,
    catalog: Option<&Bound<'_, Catalog>>,
) -> PyResult<(Order, [u64; 6])> {
    let (loader, _) = settings.loader().map_err(|error| to_py(py, error))?;
    let loader = loader.within(Catalog::of(catalog));
    let plan = interruptible(py, "plan", move || loader.plan())?;
    let plan = plan.map_err(|error| to_py(py, error))?;
    let numbers = [
        plan.lanes_here,
        plan.bytes,
        plan.ranges,
        plan.range_bytes,
        plan.pool_bytes,
        plan.batch_bytes,
    ];
    Ok((Order(plan.order), numbers))
}

/// Reads a size as people write it, in bytes.
#[pyfunction]
pub(crate) fn parse_size(py: Python<'_>, text: &str) -> PyResult<u64> {
    size::parse(text).map_err(|error| to_py(py, error))
}
