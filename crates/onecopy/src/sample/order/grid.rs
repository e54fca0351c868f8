//! Where each sample of an epoch comes from: which lane, and which of that lane's samples.

use crate::error::{Error, ErrorKind, Result};

/// Lanes at most: far more than anybody reads.
pub const LANES_MAX: u64 = 1 << 20;

/// Samples of a global batch at most: far more than anybody takes in one step.
const BATCH_MAX: u64 = 1 << 24;

/// How the samples of an epoch are dealt out: to global batches, to lanes, to ranks and to workers.
///
/// Global batch `t` is drawn from the lanes of group `t mod groups`, one sample from each in turn. So what is in it does not
/// depend on how many ranks or workers read it, as long as each can be given whole lanes.
///
/// ```text
///  lane l: group l mod groups, place l div groups within it
///  worker w of W reads the lanes whose group is w mod W      (W divides groups; else all lanes of its rank)
///  rank   r of R reads the lanes whose place is r mod R      (R divides lanes / groups, and the batch)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    batch: u64,
    lanes: u64,
    groups: u64,
}

/// Which part of an epoch one process reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Which rank this is, of `ranks`.
    pub rank: u64,
    /// So many ranks divide each global batch among themselves.
    pub ranks: u64,
    /// Which worker of the rank this is, of `workers`.
    pub worker: u64,
    /// So many workers of a rank take turns, batch by batch.
    pub workers: u64,
}

impl Part {
    /// All of it.
    pub const WHOLE: Self = Self {
        rank: 0,
        ranks: 1,
        worker: 0,
        workers: 1,
    };
}

impl Default for Part {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl Grid {
    /// A grid of global batches of `batch` samples over `lanes` lanes in `groups` groups.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where a number is 0, or groups do not divide the lanes.
    pub fn new(batch: u64, lanes: u64, groups: u64) -> Result<Self> {
        if !(1..=BATCH_MAX).contains(&batch) || groups == 0 || !(1..=LANES_MAX).contains(&lanes) {
            return Err(refused(
                format!(
                    "global batches of {batch} samples, {lanes} lanes and {groups} groups of lanes are asked for"
                ),
                &format!("use numbers from 1, at most {BATCH_MAX} samples and {LANES_MAX} lanes"),
            ));
        }
        if !lanes.is_multiple_of(groups) {
            return Err(refused(
                format!("{lanes} lanes do not fall into {groups} groups"),
                "take a number of `lanes` that the number of workers divides",
            ));
        }
        Ok(Self {
            batch,
            lanes,
            groups,
        })
    }

    /// Samples of a global batch.
    #[must_use]
    pub fn batch(&self) -> u64 {
        self.batch
    }

    /// Lanes in all.
    #[must_use]
    pub fn lanes(&self) -> u64 {
        self.lanes
    }

    /// Groups of lanes.
    #[must_use]
    pub fn groups(&self) -> u64 {
        self.groups
    }

    /// Lanes of one group.
    #[must_use]
    pub fn lanes_of_group(&self) -> u64 {
        self.lanes / self.groups
    }

    /// Whether ranks can be given whole lanes, so that the order stays what it is.
    ///
    /// # Errors
    ///
    /// `InvalidInput`, with a number that would do.
    pub fn check(&self, part: Part) -> Result<()> {
        let Part {
            rank,
            ranks,
            worker,
            workers,
        } = part;
        if rank >= ranks || worker >= workers {
            return Err(refused(
                format!("there is no rank {rank} of {ranks}, or no worker {worker} of {workers}"),
                "both are counted from 0",
            ));
        }
        let lanes = self.lanes_of_group();
        if !lanes.is_multiple_of(ranks) {
            return Err(refused(
                format!("{lanes} lanes cannot be divided among {ranks} ranks"),
                &format!(
                    "use a number of ranks that divides {lanes}, or begin with `lanes={}`: the order depends on it",
                    lanes.next_multiple_of(ranks) * self.groups
                ),
            ));
        }
        if !self.batch.is_multiple_of(ranks) {
            return Err(refused(
                format!(
                    "a global batch of {} samples cannot be divided among {ranks} ranks",
                    self.batch
                ),
                &format!(
                    "use a global batch of {}",
                    self.batch.next_multiple_of(ranks)
                ),
            ));
        }
        Ok(())
    }

    /// As [`Grid::check`]; and whether each rank makes as many steps as all others, where an epoch has `samples`.
    ///
    /// # Errors
    ///
    /// `InvalidInput`, with what to do.
    pub fn check_all(&self, part: Part, samples: u64) -> Result<()> {
        self.check(part)?;
        let rest = samples % self.batch;
        if rest > 0 && rest < part.ranks {
            return Err(refused(
                format!(
                    "the last global batch has {rest} samples for {} ranks, so some would make a step less, and the others wait for them",
                    part.ranks
                ),
                "use `tail=pad` or `tail=drop`",
            ));
        }
        Ok(())
    }

    /// The lane that sample `g` of the epoch comes from, and which of that lane's samples it is.
    #[must_use]
    pub fn place(&self, sample: u64) -> (u64, u64) {
        let (step, within) = (sample / self.batch, sample % self.batch);
        let (group, turn) = (step % self.groups, step / self.groups);
        let of_group = turn * self.batch + within;
        let lanes = self.lanes_of_group();
        (of_group % lanes * self.groups + group, of_group / lanes)
    }

    /// How many of the first `samples` of an epoch come from `group`.
    #[must_use]
    pub fn taken_of_group(&self, group: u64, samples: u64) -> u64 {
        let (steps, rest) = (samples / self.batch, samples % self.batch);
        let turns = steps / self.groups + u64::from(group < steps % self.groups);
        let begun = if steps % self.groups == group {
            rest
        } else {
            0
        };
        turns * self.batch + begun
    }

    /// How many of the first `samples` of an epoch come from `lane`.
    #[must_use]
    pub fn taken(&self, lane: u64, samples: u64) -> u64 {
        let (group, place) = (lane % self.groups, lane / self.groups);
        let of_group = self.taken_of_group(group, samples);
        let lanes = self.lanes_of_group();
        of_group / lanes + u64::from(place < of_group % lanes)
    }

    /// Which sample of the epoch is the sample `ordinal` of `lane`: what [`Grid::place`] takes apart.
    #[must_use]
    pub fn sample_of(&self, lane: u64, ordinal: u64) -> u64 {
        let (group, place) = (lane % self.groups, lane / self.groups);
        let of_group = ordinal * self.lanes_of_group() + place;
        let (turn, within) = (of_group / self.batch, of_group % self.batch);
        (turn * self.groups + group) * self.batch + within
    }

    /// How many of the first `samples` of an epoch come from lanes before `lane`, in the order of groups and of lanes within them.
    #[must_use]
    pub fn taken_before(&self, lane: u64, samples: u64) -> u64 {
        let (group, place) = (lane % self.groups, lane / self.groups);
        let (steps, rest) = (samples / self.batch, samples % self.batch);
        let (turns, more) = (steps / self.groups, steps % self.groups);
        let begun = if more < group { rest } else { 0 };
        let of_groups = (turns * group + more.min(group)) * self.batch + begun;
        let (own, lanes) = (self.taken_of_group(group, samples), self.lanes_of_group());
        of_groups + place * (own / lanes) + place.min(own % lanes)
    }

    /// Whether each worker has lanes of its own. Else each reads all that its rank reads, and gives the batches that are its own:
    /// the order stays what it is.
    #[must_use]
    pub fn divides_among_workers(&self, part: Part) -> bool {
        self.groups.is_multiple_of(part.workers)
    }

    /// Whose lanes `part` reads.
    fn reader(&self, part: Part) -> Part {
        if self.divides_among_workers(part) {
            return part;
        }
        Part {
            worker: 0,
            workers: 1,
            ..part
        }
    }

    /// The lanes that `part` reads, lowest first.
    pub fn lanes_of(&self, part: Part) -> impl Iterator<Item = u64> + use<> {
        let Self { lanes, groups, .. } = *self;
        let part = self.reader(part);
        (0..lanes).filter(move |lane| {
            lane % groups % part.workers == part.worker && lane / groups % part.ranks == part.rank
        })
    }

    /// The samples that `part` reads, in order, from sample `from` of the epoch on and without end; each with whether it gives it.
    pub fn samples_of(&self, part: Part, from: u64) -> impl Iterator<Item = (u64, bool)> + use<> {
        let (grid, reader) = (*self, self.reader(part));
        let first = from - from % grid.batch;
        (first / grid.batch..)
            .filter(move |step| step % reader.workers == reader.worker)
            .flat_map(move |step| {
                let begin = step * grid.batch;
                let ranks = usize::try_from(part.ranks).unwrap_or(usize::MAX);
                let is_own = step % part.workers == part.worker;
                let samples = (begin + part.rank..begin + grid.batch).step_by(ranks);
                samples.map(move |sample| (sample, is_own))
            })
            .skip_while(move |(sample, _)| *sample < from)
    }
}

pub(super) fn refused(why: String, help: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, "plan the order", "", why).with_help(help)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn grids() -> impl Strategy<Value = (Grid, Part)> {
        (1..4_u64, 1..4_u64, 1..4_u64, 1..5_u64, 1..4_u64, 1..4_u64).prop_map(
            |(ranks, workers, per_rank, per_lane, more_groups, lanes)| {
                let groups = workers * more_groups;
                let grid = Grid::new(per_rank * ranks, lanes * ranks * groups, groups).unwrap();
                let part = Part {
                    rank: per_lane % ranks,
                    ranks,
                    worker: per_lane % workers,
                    workers,
                };
                (grid, part)
            },
        )
    }

    proptest! {
        #[test]
        fn every_lane_gives_its_samples_in_order_and_none_twice((grid, _) in grids(), samples in 1..500_u64) {
            let mut next: BTreeMap<u64, u64> = BTreeMap::new();
            for sample in 0..samples {
                let (lane, ordinal) = grid.place(sample);
                prop_assert!(lane < grid.lanes());
                let due = next.entry(lane).or_default();
                prop_assert_eq!((ordinal, grid.sample_of(lane, ordinal)), (*due, sample));
                *due += 1;
            }
            let mut lanes: Vec<u64> = (0..grid.lanes()).collect();
            lanes.sort_by_key(|lane| (lane % grid.groups(), *lane));
            let mut before = 0;
            for lane in lanes {
                let taken = next.get(&lane).copied().unwrap_or(0);
                prop_assert_eq!((grid.taken(lane, samples), grid.taken_before(lane, samples)), (taken, before));
                before += taken;
            }
            let of_groups: u64 = (0..grid.groups()).map(|group| grid.taken_of_group(group, samples)).sum();
            prop_assert_eq!(of_groups, samples);
        }

        #[test]
        fn the_parts_are_the_whole_and_each_reads_lanes_of_its_own((grid, one) in grids(), from in 0..300_u64) {
            let mut all = Vec::new();
            let mut lanes = Vec::new();
            for rank in 0..one.ranks {
                for worker in 0..one.workers {
                    let part = Part { rank, worker, ..one };
                    grid.check(part).unwrap();
                    let mine: Vec<u64> = grid.lanes_of(part).collect();
                    let samples: Vec<(u64, bool)> = grid
                        .samples_of(part, from)
                        .take_while(|(sample, _)| *sample < from + 3 * grid.batch() * grid.groups())
                        .collect();
                    prop_assert!(samples.iter().all(|(sample, is_own)| *is_own && mine.contains(&grid.place(*sample).0)));
                    prop_assert!(samples.is_sorted());
                    all.extend(samples.into_iter().map(|(sample, _)| sample));
                    lanes.extend(mine);
                }
            }
            all.sort_unstable();
            lanes.sort_unstable();
            prop_assert_eq!(all, (from..from + 3 * grid.batch() * grid.groups()).collect::<Vec<_>>());
            prop_assert_eq!(lanes, (0..grid.lanes()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn workers_that_do_not_divide_the_groups_read_all_of_their_rank_and_give_what_is_their_own() {
        let grid = Grid::new(4, 8, 2).unwrap();
        let mut given = Vec::new();
        for worker in 0..3 {
            let part = Part {
                rank: 1,
                ranks: 2,
                worker,
                workers: 3,
            };
            grid.check(part).unwrap();
            assert_eq!(grid.lanes_of(part).collect::<Vec<_>>(), [2, 3, 6, 7]);
            let read = grid.samples_of(part, 4).take(12);
            let own = read.filter(|(_, is_own)| *is_own);
            given.extend(own.map(|(sample, _)| (sample, worker)));
        }
        given.sort_unstable();
        let workers: Vec<u64> = given.iter().map(|(_, worker)| *worker).collect();
        let samples: Vec<u64> = given.into_iter().map(|(sample, _)| sample).collect();
        assert_eq!(samples, [5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27]);
        assert_eq!(workers, [1, 1, 2, 2, 0, 0, 1, 1, 2, 2, 0, 0]);
    }

    #[test]
    fn what_does_not_divide_is_refused_with_a_number_that_does() {
        let grid = Grid::new(96, 64, 2).unwrap();
        let part = |ranks, workers| Part {
            ranks,
            workers,
            ..Part::WHOLE
        };
        grid.check(part(8, 2)).unwrap();
        for (part, help) in [(part(3, 1), "lanes=66"), (part(64, 1), "lanes=128")] {
            let error = grid.check(part).unwrap_err();
            assert!(error.help().unwrap().contains(help), "{error}");
        }
        let error = Grid::new(6, 64, 1).unwrap().check(part(4, 1)).unwrap_err();
        assert!(
            error.help().unwrap().contains("global batch of 8"),
            "{error}"
        );
        for (batch, lanes, groups) in [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 64, 3)] {
            assert!(Grid::new(batch, lanes, groups).is_err());
        }
        let lost = Part {
            rank: 2,
            ranks: 2,
            ..Part::WHOLE
        };
        assert!(grid.check(lost).is_err());
    }
}
