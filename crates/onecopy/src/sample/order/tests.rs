//! Every sample once, on any number of ranks and workers.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::size::to_usize;

/// All samples of an epoch, as the parts give them: what each of `ranks` gets in each of its steps.
fn given(epoch: &Epoch, ranks: u64, workers: u64) -> Vec<Vec<Vec<(usize, u64)>>> {
    let of_rank = |rank| {
        let mut steps: BTreeMap<u64, Vec<(usize, u64)>> = BTreeMap::new();
        for worker in 0..workers {
            let part = Part {
                rank,
                ranks,
                worker,
                workers,
            };
            let samples = epoch.grid().samples_of(part, 0);
            let samples = samples.take_while(|(sample, _)| *sample < epoch.samples());
            for (sample, _) in samples.filter(|(_, is_own)| *is_own) {
                let step = sample / epoch.grid().batch();
                steps.entry(step).or_default().push(epoch.sample(sample));
            }
        }
        steps.into_values().collect()
    };
    (0..ranks).map(of_rank).collect()
}

fn tails() -> impl Strategy<Value = Tail> {
    prop_oneof![Just(Tail::Short), Just(Tail::Pad), Just(Tail::Drop)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_sample_comes_once_but_for_what_the_tail_says(
        counts in prop::collection::vec(0..20_u64, 1..8),
        (ranks, workers) in (1..5_u64, 1..4_u64),
        (per_rank, lanes) in (1..6_u64, 1..4_u64),
        groups in 1..4_u64,
        tail in tails(),
        shuffle in prop::option::of((1..9_u64, any::<u64>())),
        number in 0..5_u64,
    ) {
        let grid = Grid::new(per_rank * ranks, lanes * ranks * groups, groups).unwrap();
        let all: u64 = counts.iter().sum();
        let epoch = match Epoch::new(&counts, grid, tail, shuffle, number) {
            Ok(epoch) => epoch,
            Err(_) => {
                prop_assert!(all == 0 || (tail == Tail::Drop && all < grid.batch()));
                return Ok(());
            }
        };
        let part = Part { ranks, workers, ..Part::WHOLE };
        if epoch.check(part).is_err() {
            prop_assert!(tail == Tail::Short && all % grid.batch() < ranks);
            return Ok(());
        }
        let steps = given(&epoch, ranks, workers);
        for rank in &steps {
            prop_assert_eq!(rank.len() as u64, epoch.steps());
        }
        let mut times: BTreeMap<(usize, u64), u64> = BTreeMap::new();
        for sample in steps.iter().flatten().flatten() {
            *times.entry(*sample).or_default() += 1;
        }
        let mut expected: BTreeMap<(usize, u64), u64> = BTreeMap::new();
        for (shard, count) in counts.iter().enumerate() {
            expected.extend((0..*count).map(|sample| ((shard, sample), 1)));
        }
        for segment in epoch.odd() {
            for sample in segment.from..segment.to {
                let times = expected.entry((segment.shard, sample)).or_default();
                *times = if tail == Tail::Pad { *times + 1 } else { *times - 1 };
            }
        }
        expected.retain(|_, times| *times > 0);
        prop_assert_eq!(times, expected);
        // The very same global batches on any other number of ranks that can be given whole lanes.
        let alone = given(&epoch, 1, 1);
        for (step, whole) in alone[0].iter().enumerate() {
            let mut together: Vec<_> = steps.iter().flat_map(|rank| rank[step].clone()).collect();
            let mut whole = whole.clone();
            together.sort_unstable();
            whole.sort_unstable();
            prop_assert_eq!(together, whole);
        }
    }

    #[test]
    fn a_lane_goes_on_where_it_was_left(
        counts in prop::collection::vec(0..20_u64, 1..8),
        lanes in 1..9_u64,
        from in 0..40_u64,
    ) {
        let grid = Grid::new(3, lanes, 1).unwrap();
        let Ok(epoch) = Epoch::new(&counts, grid, Tail::Pad, Some((5, 1)), 0) else { return Ok(()) };
        for lane in 0..lanes {
            let all = each(epoch.lane(lane, 0));
            prop_assert_eq!(all.len() as u64, epoch.lane_len(lane));
            let from = to_usize(from.min(epoch.lane_len(lane)));
            prop_assert_eq!(&each(epoch.lane(lane, from as u64))[..], &all[from..]);
        }
    }
}

/// How many of the first `samples`, at most, windows took from behind the place where a lane stands then, and how many they put off
/// for them.
fn moved(epoch: &Epoch, samples: u64) -> u64 {
    let of_lane = |lane| {
        let (given, len) = (epoch.grid().taken(lane, samples), epoch.lane_len(lane));
        let window = epoch.windows(lane).around(given);
        let left = (window.start + window.len).min(len).max(given) - given;
        2 * left.min(given.saturating_sub(window.start))
    };
    (0..epoch.grid().lanes()).map(of_lane).sum()
}

fn each(segments: Vec<Segment>) -> Vec<(usize, u64)> {
    let each = |of: Segment| (of.from..of.to).map(move |at| (of.shard, at));
    segments.into_iter().flat_map(each).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_row_that_goes_round_gives_each_sample_once_before_any_comes_again(
        counts in prop::collection::vec(0..20_u64, 1..6),
        (batch, lanes, groups) in (1..9_u64, 1..9_u64, 1..4_u64),
        steps in 1..60_u64,
        shuffle in prop::option::of((1..9_u64, any::<u64>())),
        prefix in any::<prop::sample::Index>(),
    ) {
        let all: u64 = counts.iter().sum();
        prop_assume!(all > 0);
        let grid = Grid::new(batch, lanes * groups, groups).unwrap();
        let epoch = Epoch::of_steps(&counts, grid, steps, shuffle, 3).unwrap();
        let given: Vec<(usize, u64)> = (0..epoch.samples()).map(|at| epoch.sample(at)).collect();
        prop_assert_eq!(given.len() as u64, steps * batch);
        let times = |samples: usize| {
            let shards = counts.iter().enumerate();
            let none = shards.flat_map(|(shard, count)| (0..*count).map(move |at| ((shard, at), 0)));
            let mut times: BTreeMap<(usize, u64), u64> = none.collect();
            for sample in &given[..samples] {
                *times.get_mut(sample).unwrap() += 1;
            }
            times
        };
        for passes in 1..=epoch.samples() / all {
            let times = times(to_usize(passes * all));
            let off: u64 = times.values().map(|times| times.abs_diff(passes)).sum();
            let most = moved(&epoch, passes * all);
            prop_assert!(off <= most && (shuffle.is_some() || most == 0), "{} of {}", off, most);
        }
        if shuffle.is_none() {
            let prefix = prefix.index(given.len() + 1) as u64;
            let few = prefix / all..=prefix.div_ceil(all);
            prop_assert!(times(to_usize(prefix)).values().all(|times| few.contains(times)));
        }
        // All together are whole passes and what `odd` tells.
        let whole = epoch.samples() / all;
        let odd = each(epoch.odd());
        let expected = |sample: &(usize, u64)| match epoch.samples() > all {
            true => 1 + odd.iter().filter(|one| *one == sample).count() as u64,
            false => whole.max(1) - u64::from(odd.contains(sample)),
        };
        for (sample, times) in times(given.len()) {
            prop_assert_eq!(times, expected(&sample));
        }
        // What a lane reads from anywhere on is what single samples are.
        for lane in 0..grid.lanes() {
            let (read, len) = (each(epoch.lane(lane, 0)), epoch.lane_len(lane));
            prop_assert_eq!(read.len() as u64, len);
            for ordinal in 0..len {
                let source = epoch.windows(lane).source(ordinal, len);
                let sample = given[to_usize(grid.sample_of(lane, ordinal))];
                prop_assert_eq!(read[to_usize(source)], sample);
            }
            let from = prefix.index(read.len() + 1);
            prop_assert_eq!(&each(epoch.lane(lane, from as u64))[..], &read[from..]);
        }
    }
}

#[test]
fn many_lanes_do_not_read_two_passes_at_the_same_time() {
    let grid = Grid::new(64, 64, 1).unwrap();
    let counts = [100; 7];
    for (steps, shuffle) in [(20, None), (20, Some((4, 1))), (33, None)] {
        let epoch = Epoch::of_steps(&counts[..], grid, steps, shuffle, 0).unwrap();
        // A lane reads 10 samples or more of each pass, and windows end with the 10th at the latest, or behind the 7th.
        let first: BTreeSet<_> = (0..64 * 7).map(|at| epoch.sample(at)).collect();
        assert_eq!(first.len(), 64 * 7);
    }
    // One pass is what it is without steps.
    let epoch = Epoch::of_steps(&[64; 9], grid, 9, Some((4, 1)), 0).unwrap();
    let same = Epoch::new(&[64; 9], grid, Tail::Pad, Some((4, 1)), 0).unwrap();
    assert!((0..64 * 9).all(|at| epoch.sample(at) == same.sample(at)));
}

#[test]
fn what_fills_the_last_batch_is_read_beside_the_rest() {
    let grid = Grid::new(8, 4, 2).unwrap();
    let epoch = Epoch::new(&[6, 0, 7], grid, Tail::Pad, None, 0).unwrap();
    let given: Vec<_> = (0..16).map(|at| epoch.sample(at)).collect();
    let row = |at: u64| {
        if at % 13 < 6 {
            (0, at % 13)
        } else {
            (2, at % 13 - 6)
        }
    };
    let lanes = [0, 4, 0, 4, 0, 4, 0, 4, 8, 12, 8, 12, 8, 12, 8, 12];
    let expected = lanes.into_iter().enumerate();
    let expected = expected.map(|(at, start)| row(start + at as u64 % 8 / 2));
    assert_eq!(given, expected.collect::<Vec<_>>());
}

#[test]
fn a_row_that_goes_round_too_often_is_refused_with_what_to_do() {
    let grid = Grid::new(1, 64, 1).unwrap();
    let of = |steps| Epoch::of_steps(&[1, 0, 2], grid, steps, None, 0);
    let most = of((1 << 22) / 3 * 3).unwrap();
    assert_eq!(most.sample((1 << 22) / 3 * 3 - 1), (2, 1));
    let error = of((1 << 22) + 3).unwrap_err();
    assert!(error.help().unwrap().contains("steps_per_epoch"), "{error}");
}

#[test]
fn without_shuffling_one_lane_gives_the_order_of_the_shards() {
    let grid = Grid::new(4, 1, 1).unwrap();
    let epoch = Epoch::new(&[2, 0, 3], grid, Tail::Pad, None, 9).unwrap();
    let given: Vec<_> = (0..epoch.samples())
        .map(|sample| epoch.sample(sample))
        .collect();
    let row = [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2)];
    assert_eq!(given, [&row[..], &row[..3]].concat());
    assert_eq!((epoch.steps(), epoch.padded(), epoch.dropped()), (2, 3, 0));
    let epoch = Epoch::new(&[2, 0, 3], grid, Tail::Drop, None, 9).unwrap();
    assert_eq!((epoch.steps(), epoch.padded(), epoch.dropped()), (1, 0, 1));
    assert_eq!(
        epoch.odd(),
        [Segment {
            shard: 2,
            from: 2,
            to: 3
        }]
    );
}

#[test]
fn shards_of_five_one_none_and_seven_samples_give_three_ranks_equal_steps() {
    let grid = Grid::new(12, 63, 1).unwrap();
    for (tail, steps, padded, dropped) in [(Tail::Pad, 2, 11, 0), (Tail::Drop, 1, 0, 1)] {
        let epoch = Epoch::new(&[5, 1, 0, 7], grid, tail, Some((4, 7)), 0).unwrap();
        let part = Part {
            ranks: 3,
            ..Part::WHOLE
        };
        epoch.check(part).unwrap();
        assert_eq!(
            (epoch.steps(), epoch.padded(), epoch.dropped()),
            (steps, padded, dropped)
        );
        assert!(
            given(&epoch, 3, 1)
                .iter()
                .all(|rank| rank.len() as u64 == steps)
        );
    }
    // One sample is left for the last batch of three ranks.
    let epoch = Epoch::new(&[5, 1, 0, 7], grid, Tail::Short, None, 0).unwrap();
    let error = epoch
        .check(Part {
            ranks: 3,
            ..Part::WHOLE
        })
        .unwrap_err();
    assert!(error.help().unwrap().contains("`tail=pad`"), "{error}");
}

#[test]
fn ten_million_samples_in_ten_thousand_shards_take_little() {
    let counts = vec![1000; 10_000];
    let grid = Grid::new(1024, 64, 1).unwrap();
    let epoch = Epoch::new(&counts, grid, Tail::Drop, Some((157, 0)), 3).unwrap();
    let segments: usize = (0..64).map(|lane| epoch.lane(lane, 0).len()).sum();
    assert!(segments <= 10_000 + 64);
    assert!((0..64).all(|lane| epoch.lane(lane, 100_000).len() < 100));
}

fn order(seed: u64, epoch: u64) -> Vec<u32> {
    let mut shards: Vec<u32> = (0..100).collect();
    order_shards(&mut shards, seed, epoch);
    shards
}

#[test]
fn an_order_follows_from_seed_and_epoch_and_keeps_every_shard() {
    assert_eq!(order(7, 0), order(7, 0));
    assert_ne!(order(7, 0), order(7, 1));
    assert_ne!(order(7, 0), order(8, 0));
    let mut sorted = order(7, 3);
    sorted.sort_unstable();
    assert_eq!(sorted, (0..100).collect::<Vec<u32>>());
}
