//! Several sources as one: with counts of all of them, or without.

use super::by_count::lane_from;
use super::data::Data;
use super::{Counted, LANES, Order, Plan, SourceTotals, Totals, Wish, other_kind, refused};
use crate::error::Result;
use crate::loader::{Catalog, Position};
use crate::pipeline::{Again, Draws, LaneWork, Rounds, Spot, Turns};
use crate::sample::order::{
    Grid, LANES_MAX, Length, Mixed, Mixture, Row, Segment, Source, Stop, Tail,
};
use crate::size::to_usize;

/// One of the sources.
pub(in crate::loader) struct Ingredient<'a> {
    /// Its own shuffle and choices; all else is the same for all of them.
    pub(in crate::loader) wish: Wish<'a>,
    pub(in crate::loader) catalog: &'a Catalog,
}

/// How sources are mixed.
pub(in crate::loader) struct Mixing<'a> {
    pub(in crate::loader) ingredients: Vec<Ingredient<'a>>,
    pub(in crate::loader) weights: &'a [f64],
    pub(in crate::loader) seed: u64,
    pub(in crate::loader) stop: Stop,
}

impl Mixing<'_> {
    /// Divides all sources into lanes.
    pub(in crate::loader) fn plan(&self) -> Result<Plan> {
        let first = self.ingredients.first();
        let first = &first
            .ok_or_else(|| refused("no source is given".into()))?
            .wish;
        let mixture = Mixture::new(self.weights, self.seed, first.epoch)?;
        let counted = self.ingredients.iter().map(|one| one.catalog.counted());
        match counted.collect::<Option<Vec<Counted>>>() {
            Some(counted) => self.by_count(first, mixture, counted),
            None => self.by_shard(first, mixture),
        }
    }

    /// What the state must be of: the data of all sources. How they are mixed is told beside it.
    fn dataset(&self) -> u64 {
        let mut all = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme);
        for one in &self.ingredients {
            all.update(&one.wish.dataset(&one.catalog.sources).to_le_bytes());
        }
        all.finalize()
    }

    fn many(&self) -> u64 {
        self.ingredients.len() as u64
    }

    fn is_shuffled(&self) -> bool {
        self.ingredients
            .iter()
            .any(|one| one.wish.shuffle.is_some())
    }

    /// Lanes of each source, at most, so that all together are about as many as a single source has.
    fn most_lanes(&self, of: u64) -> u64 {
        (of / self.many().next_power_of_two()).max(1)
    }

    /// Samples of the windows of a lane, those of all sources together.
    fn window(&self, lanes: u64) -> u64 {
        let windows = self.ingredients.iter().map(|one| one.wish.window(lanes));
        windows.fold(0, u64::saturating_add)
    }

    fn by_count(&self, first: &Wish<'_>, mixture: Mixture, counted: Vec<Counted>) -> Result<Plan> {
        let groups = first.groups.unwrap_or(first.part.workers);
        let lanes = match first.lanes {
            Some(lanes) => lanes,
            None if !first.is_divided() && !self.is_shuffled() => 1,
            // The same for any number of ranks, and whatever the memory is.
            None => self.most_lanes(LANES).next_multiple_of(groups.max(1)),
        };
        if first.part.ranks > 1 && first.tail == Tail::Short && first.steps.is_none() {
            // Found out in a later epoch it would end a run that has gone on for hours.
            return Err(refused(format!(
                "epochs of a mixture have lengths of their own, so the last global batch of some may be too small for {} ranks",
                first.part.ranks
            ))
            .with_help("use `tail=pad` or `tail=drop`, or say how many steps each rank makes: `steps_per_epoch`"));
        }
        let batch = first.batch.saturating_mul(first.part.ranks);
        let grid = Grid::new(batch, lanes, groups)?;
        let mut data = Vec::with_capacity(counted.len());
        let mut sources = Vec::with_capacity(counted.len());
        for (one, counted) in self.ingredients.iter().zip(counted) {
            let of = Data {
                sources: &one.catalog.sources,
                chosen: one.wish.chosen(&counted)?,
                counted,
            };
            let seed = one.wish.shuffle.map(|(_, seed)| seed);
            sources.push(Source {
                row: Row::new(&of.counts(), seed, first.epoch)?,
                shuffle: seed.map(|seed| (one.wish.window(lanes), seed)),
            });
            data.push(of);
        }
        let totals: Vec<u64> = sources.iter().map(|source| source.row.samples()).collect();
        let length = match first.steps {
            Some((steps, _)) => Length::Steps(steps),
            None => Length::Until(self.stop, first.tail),
        };
        let epoch = Mixed::new(grid, mixture.clone(), sources, length, first.epoch)?;
        epoch.check(first.part)?;
        self.check_held(first, grid, &totals)?;
        let from = first.begun_at(epoch.samples(), batch)?;
        Ok(Plan {
            lanes: self.counted_lanes(&epoch, grid, from, &mut data)?,
            turns: Turns::Grid {
                grid,
                part: first.part,
                from,
                samples: epoch.samples(),
                mixture: Some(mixture),
            },
            order: Order {
                lanes,
                groups,
                window: self.window(lanes),
                global_batch: batch,
                counted: Some(Totals {
                    odd: first.is_odd_told.then(|| odd_of(&epoch, &data)),
                    ..totals_of(&epoch, &totals)
                }),
                steps_here: None,
                dataset: self.dataset(),
            },
        })
    }

    fn check_held(&self, first: &Wish<'_>, grid: Grid, totals: &[u64]) -> Result<()> {
        let (lanes, own) = (grid.lanes(), grid.lanes_of(first.part).count() as u64);
        let held =
            self.ingredients.iter().zip(totals).map(|(one, all)| {
                Wish::held(one.wish.window(lanes), own, &one.catalog.sources, *all)
            });
        first.check_held(held.fold((0, 0), |sum, one| {
            (sum.0 + one.0, sum.1.saturating_add(one.1))
        }))
    }

    /// The lanes of this process, source by source.
    fn counted_lanes(
        &self,
        epoch: &Mixed,
        grid: Grid,
        from: u64,
        data: &mut [Data<'_>],
    ) -> Result<Vec<LaneWork>> {
        let first = &self.ingredients[0].wish;
        let own: Vec<u64> = grid.lanes_of(first.part).collect();
        let taken: Vec<Vec<u64>> = own.iter().map(|lane| epoch.taken(*lane, from)).collect();
        let mut lanes = Vec::with_capacity(own.len() * data.len());
        for (source, (one, data)) in self.ingredients.iter().zip(data).enumerate() {
            let stand = |(&lane, taken): (&u64, &Vec<u64>)| {
                let len = epoch.lane_len(source, lane);
                let windows = epoch.windows(source, lane);
                let read = |at| epoch.lane(source, lane, at);
                lane_from(taken[source], len, windows, read)
            };
            let standing = own.iter().zip(&taken).map(stand).collect();
            let find_starts =
                |counted: &mut Counted, shards: &[usize]| one.catalog.find_starts(counted, shards);
            lanes.extend(data.work(source, standing, first.is_first(), find_starts)?);
        }
        Ok(lanes)
    }

    fn by_shard(&self, first: &Wish<'_>, mixture: Mixture) -> Result<Plan> {
        for one in &self.ingredients {
            if !one.wish.choices.is_empty() {
                return Err(refused(
                    "some of the samples of a source are asked for, and not all sources have an index that tells how many there are".into(),
                )
                .with_help("make one of each with `onecopy index`, and open the data with `index`"));
            }
            one.wish.check_uncounted(&one.catalog.sources)?;
            if one.wish.shards_here(&one.catalog.sources) == 0 {
                return Err(refused(format!(
                    "a source of the mixture has {} shards, which is less than one for each of {} processes",
                    one.catalog.sources.len(),
                    first.process().1
                ))
                .with_help("make an index of each source with `onecopy index` and open the data with `index`; or use fewer workers: `num_workers`"));
            }
        }
        let lanes = match first.lanes {
            Some(lanes) => lanes,
            None if self.is_shuffled() => {
                let shards = self.ingredients.iter();
                let shards = shards.map(|one| one.wish.shards_here(&one.catalog.sources));
                // Half of what a single source has: a state holds all of them.
                let most = self.most_lanes(LANES / 2).min(shards.max().unwrap_or(1));
                first.fitting_lanes(most, self.many())?
            }
            None => 1,
        };
        let (spots, next, given) = self.standing(first, lanes)?;
        let again = match (first.steps, self.stop) {
            (Some(_), _) => Again::Always,
            (None, Stop::AllExhausted) => Again::UntilAllEnded,
            (None, Stop::FirstExhausted) => Again::Never,
        };
        let (mut lanes_here, mut ended) = (Vec::new(), Vec::new());
        for (source, (one, spots)) in self
            .ingredients
            .iter()
            .zip(spots.chunks(to_usize(lanes)))
            .enumerate()
        {
            let spots = Vec::from(spots);
            let found = &one.catalog.sources;
            let (work, is_ended) = one.wish.shard_lanes(source, found, spots, again);
            lanes_here.extend(work);
            ended.push(is_ended);
        }
        Ok(Plan {
            lanes: lanes_here,
            turns: Turns::Rounds(Rounds {
                lanes: to_usize(lanes),
                next,
                again,
                ended,
                draws: Some(Draws {
                    mixture,
                    process: first.process().0,
                    given,
                }),
            }),
            order: Order {
                lanes,
                groups: first.part.workers,
                window: self.window(lanes),
                global_batch: first.batch.saturating_mul(first.part.ranks),
                counted: None,
                steps_here: first.steps_here(),
                dataset: self.dataset(),
            },
        })
    }

    /// Where the lanes stand, source by source, which is next of each, and how many samples were given.
    fn standing(&self, first: &Wish<'_>, lanes: u64) -> Result<(Vec<Spot>, Vec<usize>, u64)> {
        let all = lanes.saturating_mul(self.many());
        let (spots, next, given) = match &first.position {
            None => {
                let spots = vec![Spot::default(); to_usize(all.min(LANES_MAX))];
                (spots, vec![0; self.ingredients.len()], 0)
            }
            Some(Position::Mixed { lanes, next, given }) => (lanes.clone(), next.clone(), *given),
            Some(Position::Spots { .. }) => return Err(other_kind("of a single source", "mixed")),
            Some(Position::Samples(_)) => return Err(other_kind("with an index", "without one")),
        };
        let is_same = spots.len() as u64 == all && next.len() == self.ingredients.len();
        if !is_same || !(1..=LANES_MAX).contains(&all) {
            return Err(refused(format!(
                "the state is of {} sources and {} lanes, and here are {} and {all}",
                next.len(),
                spots.len(),
                self.ingredients.len()
            )));
        }
        Ok((spots, next, given))
    }
}

/// The numbers of an epoch of sources that have so many samples.
fn totals_of(epoch: &Mixed, totals: &[u64]) -> Totals {
    let sources = totals.iter().enumerate().map(|(source, all)| SourceTotals {
        dataset_samples: *all,
        samples: epoch.samples_of(source),
    });
    let sources: Vec<SourceTotals> = sources.collect();
    let (more, less): (Vec<u64>, Vec<u64>) = sources
        .iter()
        .map(|of| {
            let (all, given) = (of.dataset_samples, of.samples);
            (given.saturating_sub(all), all.saturating_sub(given))
        })
        .unzip();
    Totals {
        dataset_samples: totals.iter().sum(),
        samples: epoch.samples(),
        steps: epoch.steps(),
        padded: more.iter().sum(),
        dropped: less.iter().sum(),
        odd: None,
        sources,
    }
}

/// The samples that come more often than once, or not at all.
fn odd_of(epoch: &Mixed, data: &[Data<'_>]) -> Vec<Segment> {
    let mut odd = Vec::new();
    let mut shards = 0;
    for (source, data) in data.iter().enumerate() {
        let own = epoch.odd(source).into_iter();
        odd.extend(own.flat_map(|of| data.segments(of)).map(|of| Segment {
            shard: of.shard + shards,
            ..of
        }));
        shards += data.sources.len();
    }
    odd
}
