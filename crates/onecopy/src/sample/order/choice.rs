//! Which samples of a dataset are read.

use super::Segment;
use super::grid::refused;
use crate::error::Result;
use crate::sync::Arc;

/// Neighbours are drawn together, so many at most: a part of the data then takes few requests for what it reads.
const NEIGHBOURS: u64 = 64;

/// Groups of neighbours that a drawing has at least, where there are so many samples.
const GROUPS: u64 = 1024;

/// A choice among samples that stand in a row. Several in turn each choose among what the one before has left.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    /// Every `step`-th from `start` on, up to before `stop`. Negative ones are counted from the end; none is the end itself.
    Slice {
        /// The first.
        start: Option<i64>,
        /// Behind the last.
        stop: Option<i64>,
        /// From 1.
        step: u64,
    },
    /// Those at these places, which rise.
    Those(Arc<[u64]>),
    /// Of all, in an order that is drawn by groups of up to 64 neighbours, those between two fractions of the whole.
    Drawn {
        /// What the order is drawn from.
        seed: u64,
        /// Where they begin, from 0.
        from: f64,
        /// Where they end, up to 1.
        to: f64,
    },
}

/// Neighbours, `[from, to)`.
type Run = (u64, u64);

impl Choice {
    /// What is chosen of `all` samples: runs that rise and do not touch.
    fn of(&self, all: u64) -> Result<Vec<Run>> {
        match self {
            Self::Slice { start, stop, step } => {
                let from = start.map_or(0, |at| place(at, all));
                let to = stop.map_or(all, |at| place(at, all));
                Ok(slice(from, to, *step))
            }
            Self::Those(places) => those(places, all),
            Self::Drawn { seed, from, to } => {
                Ok(drawn(*seed, part(*from, all), part(*to, all), all))
            }
        }
    }

    /// Tells `sum` of itself: equal choices tell the same.
    pub fn tell(&self, mut sum: impl FnMut(&[u8])) {
        match self {
            Self::Slice { start, stop, step } => {
                sum(b"slice");
                for end in [start, stop] {
                    sum(&[u8::from(end.is_some())]);
                    sum(&end.unwrap_or(0).to_le_bytes());
                }
                sum(&step.to_le_bytes());
            }
            Self::Those(places) => {
                sum(b"those");
                sum(&(places.len() as u64).to_le_bytes());
                places.iter().for_each(|at| sum(&at.to_le_bytes()));
            }
            Self::Drawn { seed, from, to } => {
                sum(b"drawn");
                sum(&seed.to_le_bytes());
                sum(&from.to_le_bytes());
                sum(&to.to_le_bytes());
            }
        }
    }
}

/// A place as Python's slices say it.
fn place(at: i64, all: u64) -> u64 {
    if at < 0 {
        all.saturating_sub(at.unsigned_abs())
    } else {
        all.min(at.unsigned_abs())
    }
}

/// So much of all, to the nearest sample.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a fraction of 2^53 samples and more may be off by one"
)]
fn part(fraction: f64, all: u64) -> u64 {
    ((fraction.clamp(0.0, 1.0) * all as f64).round() as u64).min(all)
}

fn slice(from: u64, to: u64, step: u64) -> Vec<Run> {
    if from >= to {
        return Vec::new();
    }
    if step <= 1 {
        return vec![(from, to)];
    }
    let places = (0..(to - from).div_ceil(step)).map(|number| from + number * step);
    places.map(|at| (at, at + 1)).collect()
}

fn those(places: &[u64], all: u64) -> Result<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::new();
    for &at in places {
        if at >= all {
            return Err(refused(
                format!("sample {at} is asked for, and there are {all}"),
                "places are counted from 0",
            ));
        }
        match runs.last_mut() {
            Some((_, end)) if *end == at => *end += 1,
            Some((_, end)) if *end > at => {
                return Err(refused(
                    format!("sample {at} is asked for behind sample {}", *end - 1),
                    "give each place once, and let them rise",
                ));
            }
            _ => runs.push((at, at + 1)),
        }
    }
    Ok(runs)
}

/// The samples at the places `[from, to)` of an order in which groups of neighbours stand as drawn; what fills no group stands at
/// its end.
fn drawn(seed: u64, from: u64, to: u64, all: u64) -> Vec<Run> {
    let len = (all / GROUPS).clamp(1, NEIGHBOURS);
    let mut groups: Vec<u64> = (0..all / len).collect();
    super::order_shards(&mut groups, seed, 0);
    let rest = groups.len() as u64 * len;
    let mut runs: Vec<Run> = Vec::new();
    for (place, group) in groups.into_iter().enumerate() {
        let start = place as u64 * len;
        let (first, behind) = (from.max(start), to.min(start + len));
        if first < behind {
            let shift = |at: u64| group * len + (at - start);
            runs.push((shift(first), shift(behind)));
        }
    }
    runs.sort_unstable();
    if to > rest && from < to {
        runs.push((from.max(rest), to));
    }
    joined(runs)
}

/// Runs that touch become one.
fn joined(runs: impl IntoIterator<Item = Run>) -> Vec<Run> {
    let mut joined: Vec<Run> = Vec::new();
    for (from, to) in runs {
        match joined.last_mut() {
            Some((_, end)) if *end == from => *end = to,
            _ => joined.push((from, to)),
        }
    }
    joined
}

/// The samples of a dataset that are read: runs of neighbours in the row of all samples, shard by shard as they are listed.
#[derive(Debug, Clone)]
pub struct Chosen {
    runs: Vec<Run>,
    /// How many samples are chosen before each run, and in all.
    before: Vec<u64>,
    /// Where each shard begins in the row of all, and where the last one ends.
    starts: Vec<u64>,
}

impl Chosen {
    /// What `choices`, one after the other, leave of shards that hold `counts` samples.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where a place is beyond the end, or comes twice.
    pub fn new(counts: &[u64], choices: &[Choice]) -> Result<Self> {
        let mut starts = vec![0];
        let mut all = 0_u64;
        for count in counts {
            all = all.saturating_add(*count);
            starts.push(all);
        }
        let mut chosen = Self::of(vec![(0, all)], starts);
        for choice in choices {
            let runs = choice.of(chosen.samples())?;
            let runs = joined(
                runs.into_iter()
                    .flat_map(|(from, to)| chosen.runs(from, to)),
            );
            chosen = Self::of(runs, chosen.starts);
        }
        Ok(chosen)
    }

    fn of(runs: Vec<Run>, starts: Vec<u64>) -> Self {
        let mut before = vec![0];
        let mut sum = 0;
        for (from, to) in &runs {
            sum += to - from;
            before.push(sum);
        }
        Self {
            runs,
            before,
            starts,
        }
    }

    /// How many samples are chosen.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// How many of each shard.
    #[must_use]
    pub fn counts(&self) -> Vec<u64> {
        let ranks: Vec<u64> = self.starts.iter().map(|&at| self.rank(at)).collect();
        ranks.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// How many samples are chosen before the place `at` of the row of all.
    fn rank(&self, at: u64) -> u64 {
        let run = self.runs.partition_point(|(_, to)| *to <= at);
        let within = self.runs.get(run);
        self.before[run] + within.map_or(0, |(from, _)| at.saturating_sub(*from))
    }

    /// The chosen samples `[from, to)`, as runs of the row of all.
    fn runs(&self, from: u64, to: u64) -> impl Iterator<Item = Run> + '_ {
        let first = self.before.partition_point(|before| *before <= from).max(1) - 1;
        let runs = self.runs.iter().zip(&self.before).skip(first);
        runs.take_while(move |(_, before)| **before < to)
            .map(move |((start, end), before)| {
                let (skip, most) = (from.saturating_sub(*before), to - before);
                (start + skip, (*end).min(start + most))
            })
            .filter(|(from, to)| from < to)
    }

    /// Neighbours among the chosen samples of a shard, as runs of that shard's own samples.
    #[must_use]
    pub fn segments(&self, of: Segment) -> Vec<Segment> {
        let Some(&start) = self.starts.get(of.shard) else {
            return Vec::new();
        };
        let before = self.rank(start);
        let runs = self.runs(before + of.from, before + of.to);
        runs.map(|(from, to)| Segment {
            shard: of.shard,
            from: from - start,
            to: to - start,
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All samples that are chosen, as (shard, sample).
    fn all(counts: &[u64], choices: &[Choice]) -> Vec<(usize, u64)> {
        let chosen = Chosen::new(counts, choices).unwrap();
        let mut samples = Vec::new();
        for (shard, count) in chosen.counts().into_iter().enumerate() {
            // In two pieces, so that borders within runs are met.
            let half = count / 2;
            let pieces = [(0, half), (half, count)];
            for (from, to) in pieces {
                for of in chosen.segments(Segment { shard, from, to }) {
                    samples.extend((of.from..of.to).map(|sample| (shard, sample)));
                }
            }
        }
        assert_eq!(samples.len() as u64, chosen.samples());
        samples
    }

    fn row(counts: &[u64]) -> Vec<(usize, u64)> {
        let shards = counts.iter().enumerate();
        shards
            .flat_map(|(shard, count)| (0..*count).map(move |sample| (shard, sample)))
            .collect()
    }

    fn drawing(seed: u64, from: f64, to: f64) -> Choice {
        Choice::Drawn { seed, from, to }
    }

    proptest! {
        #[test]
        fn slices_choose_as_those_of_lists(
            counts in prop::collection::vec(0..9_u64, 0..6),
            slices in prop::collection::vec((prop::option::of(-40..40_i64), prop::option::of(-40..40_i64), 1..5_u64), 0..4),
        ) {
            let mut expected = row(&counts);
            let mut choices = Vec::new();
            for (start, stop, step) in slices {
                let len = i64::try_from(expected.len()).unwrap();
                let clamp = |at: i64| usize::try_from(if at < 0 { (at + len).max(0) } else { at.min(len) }).unwrap();
                let (from, to) = (start.map_or(0, clamp), stop.map_or(expected.len(), clamp));
                expected = expected.get(from..to.max(from)).unwrap().iter().copied().step_by(usize::try_from(step).unwrap()).collect();
                choices.push(Choice::Slice { start, stop, step });
            }
            prop_assert_eq!(all(&counts, &choices), expected);
        }

        #[test]
        fn parts_that_are_drawn_are_the_whole_and_share_nothing(
            counts in prop::collection::vec(0..3000_u64, 1..5), seed in any::<u64>(), one in 0.0..1.0_f64, other in 0.0..1.0_f64,
        ) {
            let (first, second) = (one.min(other), one.max(other));
            let borders = [0.0, first, second, 1.0];
            let mut together = Vec::new();
            let whole = row(&counts).len() as u64;
            for pair in borders.windows(2) {
                let part_of = all(&counts, &[drawing(seed, pair[0], pair[1])]);
                prop_assert_eq!(part_of.len() as u64, part(pair[1], whole) - part(pair[0], whole));
                prop_assert!(part_of.is_sorted());
                together.extend(part_of);
            }
            together.sort_unstable();
            prop_assert_eq!(together, row(&counts));
        }

        #[test]
        fn places_choose_among_what_was_chosen_before(
            counts in prop::collection::vec(1..20_u64, 1..6), seed in any::<u64>(), every in 1..4_usize,
        ) {
            let half = all(&counts, &[drawing(seed, 0.0, 0.5)]);
            let places: Vec<u64> = (0..half.len() as u64).step_by(every).collect();
            let expected: Vec<_> = half.iter().copied().step_by(every).collect();
            let choices = [drawing(seed, 0.0, 0.5), Choice::Those(places.into())];
            prop_assert_eq!(all(&counts, &choices), expected);
        }
    }

    #[test]
    fn a_drawing_is_the_same_in_every_version() {
        let chosen = all(&[6, 0, 4], &[drawing(7, 0.0, 0.5)]);
        assert_eq!(chosen, [(0, 0), (0, 2), (0, 4), (2, 0), (2, 2)]);
        // Of many samples, neighbours are drawn together.
        let chosen = Chosen::new(&[100_000], &[drawing(7, 0.0, 0.1)]).unwrap();
        assert_eq!(chosen.samples(), 10_000);
        assert!(chosen.runs.len() <= 158, "{}", chosen.runs.len());
    }

    #[test]
    fn places_that_cannot_be_are_refused() {
        for (places, why) in [
            (vec![3, 10], "sample 10 is asked for, and there are 10"),
            (vec![3, 3], "sample 3 is asked for behind sample 3"),
            (vec![3, 4, 1], "sample 1 is asked for behind sample 4"),
        ] {
            let error = Chosen::new(&[4, 6], &[Choice::Those(places.into())]).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
