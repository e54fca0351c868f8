//! The front door: URLs and settings in, batches and the ledger of what happened out.

mod arrange;
mod catalog;
mod dataset;
mod indexed;
mod load;
mod memory;
mod mix;
mod order;
mod outlook;
mod position;
mod route;
mod start;

pub use catalog::Catalog;
pub use load::Load;
pub use mix::mix;
pub use order::{Counted, LANES, Order, SourceTotals, Totals};
pub use outlook::Outlook;
pub use position::Position;

use crate::batch::{BatchPlan, Fields};
use crate::config::LoadConfig;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::pipeline::{Batches, Buffers, Samples, Work};
use crate::sample::SampleOptions;
use crate::sample::decode::Decoder;
use crate::sample::order::{Choice, Part, Stop, Tail};
use crate::store::shown_url;
use crate::sync::Arc;

/// A shuffle buffer, as asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ShuffleWish {
    /// Samples to choose from.
    capacity: usize,
    /// What the order is drawn from, together with the epoch.
    seed: u64,
}

/// How loaders are mixed: see [`mix`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mix {
    /// How often each gives a sample, in proportion; none is equally often.
    pub weights: Option<Vec<f64>>,
    /// What the order of sources is drawn from, together with the epoch.
    pub seed: u64,
    /// When an epoch ends, where [`Loader::steps_per_epoch`] does not say it.
    pub stop: Stop,
}

/// What to load and how: each step returns the whole. Nothing is read before one of the `run` calls.
#[derive(Debug, Clone)]
#[must_use]
pub struct Loader {
    urls: Vec<String>,
    config: LoadConfig,
    plan: BatchPlan,
    options: SampleOptions,
    shuffle: Option<ShuffleWish>,
    limit: Option<u64>,
    device: Device,
    epoch: u64,
    part: Part,
    lanes: Option<u64>,
    groups: Option<u64>,
    window: Option<u64>,
    step: Option<u64>,
    steps: Option<u64>,
    steps_made: u64,
    is_stepped_outside: bool,
    /// Whether it is told which samples come twice, or not at all: a list that a load has no use for.
    is_odd_told: bool,
    tail: Option<Tail>,
    counted: Option<Counted>,
    index: Option<String>,
    position: Option<Position>,
    catalog: Option<Arc<Catalog>>,
    choices: Vec<Choice>,
    mixed: Option<Arc<mix::Mixed>>,
}

/// Opens `urls` for loading: `s3://bucket/train-{000..999}.tar`, a prefix, a glob, `http(s)://`, `file://`, a path.
pub fn open(urls: impl IntoIterator<Item = impl Into<String>>, config: LoadConfig) -> Loader {
    let options = SampleOptions {
        on_error: config.on_error.clone(),
        ..SampleOptions::default()
    };
    Loader {
        urls: urls.into_iter().map(Into::into).collect(),
        config,
        plan: BatchPlan::default(),
        options,
        shuffle: None,
        limit: None,
        device: Device::Cpu,
        epoch: 0,
        part: Part::WHOLE,
        lanes: None,
        groups: None,
        window: None,
        step: None,
        steps: None,
        steps_made: 0,
        is_stepped_outside: false,
        is_odd_told: false,
        tail: None,
        counted: None,
        index: None,
        position: None,
        catalog: None,
        choices: Vec::new(),
        mixed: None,
    }
}

impl Loader {
    /// Reads shards in an order of their own, and each sample of a lane in a random order among its neighbours, so that at any
    /// time one of `capacity` samples can be next; all of it from `seed` and epoch.
    pub fn shuffle(mut self, capacity: usize, seed: u64) -> Self {
        self.shuffle = (capacity > 1).then_some(ShuffleWish { capacity, seed });
        self
    }

    /// Decodes fields by their names; pictures as `pictures` says, or not at all.
    pub fn decode(mut self, pictures: Option<Decoder>) -> Self {
        self.plan.is_decoding = true;
        self.plan.pictures = pictures;
        self
    }

    /// Decodes the field `name` (or all fields with that last extension) in a way of its own.
    pub fn decode_field(mut self, name: impl Into<String>, decoder: Decoder) -> Self {
        self.plan.decoders.insert(name.into(), decoder);
        self
    }

    /// Keeps only these fields, in this order.
    pub fn fields(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.plan.fields = Fields::Named(names.into_iter().map(Into::into).collect());
        self
    }

    /// Collates `size` samples.
    pub fn batch(mut self, size: usize, is_dropping_last: bool) -> Self {
        self.plan.size = Some(size);
        self.plan.is_dropping_last = is_dropping_last;
        self
    }

    /// How shards are read: keys, duplicates, what follows the end of an archive.
    pub fn options(mut self, options: SampleOptions) -> Self {
        self.options = SampleOptions {
            on_error: self.config.on_error.clone(),
            ..options
        };
        self
    }

    /// Reads no more than `samples` of them and ends as at the end of the data: the last batch is as short as it has to be.
    /// Samples that are read and then left out, because a field does not decode, count. Buffers know no samples.
    pub fn limit(mut self, samples: u64) -> Self {
        self.limit = Some(samples);
        self
    }

    /// Where batches go.
    pub fn to(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// Which epoch this is: it changes the order of a shuffle, and nothing else.
    pub fn epoch(mut self, epoch: u64) -> Self {
        self.epoch = epoch;
        self
    }

    /// Reads only what is for one rank and worker: all of them together read the whole, each sample once. More than one rank
    /// needs [`Loader::counted`] or [`Loader::steps_per_epoch`]; without counts each shard goes to one process.
    pub fn part(mut self, part: Part) -> Self {
        self.part = part;
        self
    }

    /// In how many lanes the data are read, and in how many groups these take turns, batch by batch; none leaves a number to
    /// what is usual. Both change the order. Each number of ranks must divide the lanes of a group. Workers whose number does not
    /// divide the groups read all of their rank.
    pub fn lanes(mut self, lanes: Option<u64>, groups: Option<u64>) -> Self {
        (self.lanes, self.groups) = (lanes, groups);
        self
    }

    /// How many samples of a lane are shuffled among each other, in place of what follows from the capacity of
    /// [`Loader::shuffle`] and the lanes: for a run that goes on.
    pub fn window(mut self, samples: Option<u64>) -> Self {
        self.window = samples;
        self
    }

    /// How many samples a rank takes in each step, where whoever receives them makes the batches; none is what
    /// [`Loader::batch`] was told, or one.
    pub fn step(mut self, samples: Option<u64>) -> Self {
        self.step = samples;
        self
    }

    /// How many steps each rank makes in an epoch, batches or single samples; none goes by what there is. Where there is less,
    /// the shards of each process (or, where samples are counted, of all) are begun again, and samples come more than once; what
    /// is not reached does not come.
    pub fn steps_per_epoch(mut self, steps: Option<u64>) -> Self {
        self.steps = steps;
        self
    }

    /// How many of [`Loader::steps_per_epoch`] this process has made of the epoch, where it goes on in its midst and samples are
    /// not counted.
    pub fn steps_made(mut self, steps: u64) -> Self {
        self.steps_made = steps;
        self
    }

    /// Whether whoever receives samples leaves some of them out, or makes the batches: only they know then when all steps are made,
    /// and end the load.
    pub fn steps_outside(mut self, is_outside: bool) -> Self {
        self.is_stepped_outside = is_outside;
        self
    }

    /// What becomes of the samples that do not fill a global batch; none goes by what [`Loader::batch`] was told. `pad` needs
    /// [`Loader::counted`].
    pub fn tail(mut self, tail: Option<Tail>) -> Self {
        self.tail = tail;
        self
    }

    /// Takes from the index at `url` how many samples each source has, and where they begin: one of `onecopy index`, of wids, or
    /// of Megatron-Energon.
    pub fn index(mut self, url: Option<String>) -> Self {
        self.index = url;
        self
    }

    /// How many samples each source has, in the order in which URLs name or stores list them; in place of an index.
    pub fn counted(mut self, counted: Option<Counted>) -> Self {
        self.counted = counted;
        self
    }

    /// Reads these samples only; each choice is one among what those before it have left. Needs an index.
    pub fn choose(mut self, choices: impl IntoIterator<Item = Choice>) -> Self {
        self.choices.extend(choices);
        self
    }

    /// Goes on in the midst of the epoch. All that [`Order`] tells must be as it was.
    pub fn position(mut self, position: Option<Position>) -> Self {
        self.position = position;
        self
    }

    /// Reads what `catalog` has, in place of looking it up; it was made by a loader of the same data.
    pub fn within(mut self, catalog: Option<Arc<Catalog>>) -> Self {
        self.catalog = catalog;
        self
    }

    /// Reads the shards' bytes and no further.
    ///
    /// # Errors
    ///
    /// What URLs, credentials, listing and configuration can meet.
    pub fn run_buffers(self) -> Result<Load<Buffers>> {
        if self.mixed.is_some() {
            return Err(
                mix::refused("bytes are wanted, which are those of one of them")
                    .with_help("read each loader by itself"),
            );
        }
        let in_order = Self {
            lanes: Some(1),
            counted: None,
            index: None,
            steps: None,
            ..self
        };
        in_order.start(Work::buffers)
    }

    /// Reads samples and no further.
    ///
    /// # Errors
    ///
    /// As [`Loader::run_buffers`].
    pub fn run_samples(self) -> Result<Load<Samples>> {
        self.start(Work::samples)
    }

    /// Reads batches on the device. Without `batch` the bytes of single samples that nobody decodes stay where the network
    /// put them: take them out before the next one, for they hold memory that the load needs.
    ///
    /// # Errors
    ///
    /// As [`Loader::run_buffers`].
    pub fn run(self) -> Result<Load<Batches>> {
        if self.plan.size == Some(0) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "make batches",
                "",
                "their size is 0",
            )
            .with_help("use `batch=64`, or leave it out for single samples"));
        }
        let (mut plan, on_error) = (self.plan.clone(), self.config.on_error.clone());
        // Where samples are counted, those that are dropped are not even read.
        let is_counted = self.is_counted();
        plan.is_dropping_last = !is_counted && self.tail_wanted() == Tail::Drop;
        self.start(|work, network| work.batches(network, plan, on_error))
    }

    /// Samples of a step of one rank.
    fn step_samples(&self) -> u64 {
        self.step.unwrap_or(self.plan.size.unwrap_or(1) as u64)
    }

    fn tail_wanted(&self) -> Tail {
        let usual = if self.plan.is_dropping_last {
            Tail::Drop
        } else {
            Tail::Short
        };
        self.tail.unwrap_or(usual)
    }

    /// Looks at the data, and says what a run would be, before the first byte of it is read.
    ///
    /// # Errors
    ///
    /// As [`Loader::run`].
    pub fn plan(mut self) -> Result<Outlook> {
        self.is_odd_told = true;
        self.in_time(|loader, ledger| {
            let arranged = loader.arrange(ledger)?;
            Ok(Outlook::of(&arranged.plan, &arranged.memory))
        })
    }
}

/// The URLs as a ledger may show them: without signatures.
fn shown(urls: &[String]) -> String {
    urls.iter()
        .map(|url| shown_url(url))
        .collect::<Vec<_>>()
        .join(" ")
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
