//! Every source as often as it is drawn, and nothing of it twice before all of it came.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

fn mixed(
    counts: &[Vec<u64>],
    weights: &[f64],
    grid: Grid,
    length: Length,
    shuffle: Option<(u64, u64)>,
) -> Result<Mixed> {
    let mixture = Mixture::new(weights, 3, 1)?;
    let source = |counts: &Vec<u64>| {
        let row = Row::new(counts, shuffle.map(|(_, seed)| seed), 1)?;
        Ok(Source { row, shuffle })
    };
    let sources = counts.iter().map(source).collect::<Result<Vec<_>>>()?;
    Mixed::new(grid, mixture, sources, length, 1)
}

fn segments(segments: Vec<Segment>) -> Vec<(usize, u64)> {
    let each = |of: Segment| (of.from..of.to).map(move |at| (of.shard, at));
    segments.into_iter().flat_map(each).collect()
}

/// The samples of an epoch from `from` on, as its lanes give them: source, shard and sample.
fn given(epoch: &Mixed, from: u64) -> Vec<(usize, usize, u64)> {
    let mut lanes: BTreeMap<(u64, usize), std::vec::IntoIter<(usize, u64)>> = BTreeMap::new();
    for lane in 0..epoch.grid.lanes() {
        for (source, taken) in epoch.taken(lane, from).into_iter().enumerate() {
            let read = segments(epoch.lane(source, lane, 0));
            let len = epoch.lane_len(source, lane);
            assert_eq!(read.len() as u64, len);
            let windows = epoch.windows(source, lane);
            let left = (taken..len).map(|ordinal| read[to_usize(windows.source(ordinal, len))]);
            lanes.insert((lane, source), left.collect::<Vec<_>>().into_iter());
        }
    }
    let mut samples = Vec::new();
    for sample in from..epoch.samples() {
        let (lane, ordinal) = epoch.grid.place(sample);
        let source = epoch.mixture.draw(epoch.mixture.key(lane), ordinal);
        let (shard, at) = lanes.get_mut(&(lane, source)).unwrap().next().unwrap();
        samples.push((source, shard, at));
    }
    assert!(lanes.into_values().all(|mut lane| lane.next().is_none()));
    samples
}

fn times(samples: &[(usize, usize, u64)], source: usize) -> Vec<u64> {
    let mut times: BTreeMap<(usize, u64), u64> = BTreeMap::new();
    for (_, shard, at) in samples.iter().filter(|one| one.0 == source) {
        *times.entry((*shard, *at)).or_default() += 1;
    }
    times.into_values().collect()
}

/// How often a sample of `source` comes too often or not often enough, in all, where the source has come `passes` times: and how
/// often at most, for windows move samples over the place where a lane stands then.
fn off(epoch: &Mixed, samples: &[(usize, usize, u64)], source: usize, passes: u64) -> (u64, u64) {
    let all = epoch.sources[source].row.samples();
    let mut own = (1..=samples.len()).filter(|behind| samples[behind - 1].0 == source);
    let behind = own.nth(to_usize(passes * all - 1)).unwrap();
    let times = times(&samples[..behind], source);
    let missing = (all - times.len() as u64) * passes;
    let off: u64 = times.into_iter().map(|times| times.abs_diff(passes)).sum();
    let moved = |lane| {
        let (given, len) = (
            epoch.taken(lane, behind as u64)[source],
            epoch.lane_len(source, lane),
        );
        let window = epoch.windows(source, lane).around(given);
        let left = (window.start + window.len).min(len).max(given) - given;
        2 * left.min(given.saturating_sub(window.start))
    };
    (off + missing, (0..epoch.grid.lanes()).map(moved).sum())
}

fn lengths() -> impl Strategy<Value = Length> {
    let tails = prop_oneof![Just(Tail::Short), Just(Tail::Pad), Just(Tail::Drop)];
    let stops = prop_oneof![Just(Stop::FirstExhausted), Just(Stop::AllExhausted)];
    prop_oneof![
        (1..30_u64).prop_map(Length::Steps),
        (stops, tails).prop_map(|(stop, tail)| Length::Until(stop, tail)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_source_comes_as_drawn_and_none_of_it_twice_before_all_came(
        counts in prop::collection::vec(prop::collection::vec(0..12_u64, 1..4), 1..4),
        weights in prop::collection::vec(0.2..4.0_f64, 4),
        (batch, lanes, groups) in (1..7_u64, 1..5_u64, 1..3_u64),
        length in lengths(),
        shuffle in prop::option::of((1..9_u64, any::<u64>())),
        from in 0..50_u64,
    ) {
        let all: Vec<u64> = counts.iter().map(|counts| counts.iter().sum()).collect();
        let weights = &weights[..counts.len()];
        let grid = Grid::new(batch, lanes * groups, groups).unwrap();
        let Ok(epoch) = mixed(&counts, weights, grid, length, shuffle) else {
            let is_dropped = matches!(length, Length::Until(_, Tail::Drop | Tail::Short));
            prop_assert!(all.contains(&0) || is_dropped);
            return Ok(());
        };
        let samples = given(&epoch, 0);
        let mut is_whole = true;
        let mut is_beyond = false;
        for (source, &all) in all.iter().enumerate() {
            let times = times(&samples, source);
            let sum: u64 = times.iter().sum();
            prop_assert_eq!(sum, epoch.samples_of(source));
            prop_assert!(times.iter().all(|times| (sum / all..=sum.div_ceil(all)).contains(times)));
            let odd: u64 = epoch.odd(source).iter().map(|of| of.to - of.from).sum();
            prop_assert_eq!(odd, sum.abs_diff(all));
            is_whole &= sum >= all;
            is_beyond |= sum > all;
        }
        // Samples that only fill the last batch begin no pass.
        let unfilled = match length {
            Length::Until(stop, Tail::Pad) => mixed(&counts, weights, grid, Length::Until(stop, Tail::Short), shuffle).unwrap(),
            _ => epoch.clone(),
        };
        for (source, &all) in all.iter().enumerate() {
            for passes in 1..=unfilled.samples_of(source).saturating_sub(1) / all {
                let (off, most) = off(&epoch, &samples, source, passes);
                prop_assert!(off <= most && (shuffle.is_some() || most == 0), "{} of {}", off, most);
            }
        }
        match length {
            Length::Steps(steps) => prop_assert_eq!((samples.len() as u64, epoch.steps()), (steps * batch, steps)),
            Length::Until(Stop::FirstExhausted, Tail::Pad) => {}
            Length::Until(Stop::FirstExhausted, _) => prop_assert!(!is_beyond),
            Length::Until(Stop::AllExhausted, Tail::Drop) => {}
            Length::Until(Stop::AllExhausted, _) => prop_assert!(is_whole),
        }
        for source in 0..counts.len() {
            for lane in 0..grid.lanes() {
                let read = segments(epoch.lane(source, lane, 0));
                let from = to_usize(from).min(read.len());
                prop_assert_eq!(&segments(epoch.lane(source, lane, from as u64))[..], &read[from..]);
            }
        }
        let from = from % (epoch.samples() + 1);
        prop_assert_eq!(&given(&epoch, from)[..], &samples[to_usize(from)..]);
    }

    #[test]
    fn an_epoch_ends_with_the_sample_that_ends_it(
        counts in prop::collection::vec(1..40_u64, 1..4), lanes in 1..4_u64,
    ) {
        let grid = Grid::new(1, lanes, 1).unwrap();
        let rows: Vec<Vec<u64>> = counts.iter().map(|count| vec![*count]).collect();
        let weights = vec![1.0; counts.len()];
        let of = |stop, more: u64| {
            let epoch = mixed(&rows, &weights, grid, Length::Until(stop, Tail::Short), None).ok();
            let steps = epoch.map_or(0, |epoch| epoch.samples()) + more;
            let epoch = mixed(&rows, &weights, grid, Length::Steps(steps.max(1)), None).unwrap();
            (0..counts.len()).map(|source| epoch.samples_of(source)).collect::<Vec<_>>()
        };
        let is_over = |given: &[u64]| given.iter().zip(&counts).any(|(given, count)| given > count);
        prop_assert!(is_over(&of(Stop::FirstExhausted, 1)));
        let all = of(Stop::AllExhausted, 0);
        prop_assert!(all.iter().zip(&counts).all(|(given, count)| given >= count));
        prop_assert!(all.iter().zip(&counts).any(|(given, count)| given == count));
    }
}

#[test]
fn a_mixture_of_one_is_the_source_itself() {
    let (counts, shuffle) = (vec![7, 0, 12, 5], Some((4, 9)));
    let grid = Grid::new(4, 6, 2).unwrap();
    for stop in [Stop::FirstExhausted, Stop::AllExhausted] {
        for tail in [Tail::Short, Tail::Pad, Tail::Drop] {
            let epoch = super::super::Epoch::new(&counts, grid, tail, shuffle, 1).unwrap();
            let length = Length::Until(stop, tail);
            let alone =
                mixed(std::slice::from_ref(&counts), &[2.5], grid, length, shuffle).unwrap();
            let samples: Vec<_> = given(&alone, 0).iter().map(|one| (one.1, one.2)).collect();
            let expected: Vec<_> = (0..epoch.samples()).map(|at| epoch.sample(at)).collect();
            assert_eq!(samples, expected);
        }
    }
    for steps in [3, 6, 7, 40] {
        let epoch = super::super::Epoch::of_steps(&counts, grid, steps, shuffle, 1).unwrap();
        let length = Length::Steps(steps);
        let alone = mixed(std::slice::from_ref(&counts), &[2.5], grid, length, shuffle).unwrap();
        let samples: Vec<_> = given(&alone, 0).iter().map(|one| (one.1, one.2)).collect();
        let expected: Vec<_> = (0..epoch.samples()).map(|at| epoch.sample(at)).collect();
        assert_eq!(samples, expected);
    }
}

#[test]
fn a_small_source_comes_whole_before_it_begins_again() {
    let grid = Grid::new(16, 16, 1).unwrap();
    let rows = [vec![40], vec![4000]];
    let until = |tail| Length::Until(Stop::AllExhausted, tail);
    for length in [Length::Steps(500), until(Tail::Pad), until(Tail::Drop)] {
        let epoch = mixed(&rows, &[1.0, 1.0], grid, length, None).unwrap();
        let samples = given(&epoch, 0);
        let own: Vec<u64> = samples
            .iter()
            .filter(|one| one.0 == 0)
            .map(|one| one.2)
            .collect();
        assert!(own.len() > 3000);
        for pass in own.chunks_exact(40) {
            let distinct: BTreeSet<&u64> = pass.iter().collect();
            assert_eq!(distinct.len(), 40);
        }
    }
}

#[test]
fn what_does_not_fill_a_batch_is_as_if_it_had_never_been_drawn() {
    let grid = Grid::new(16, 4, 2).unwrap();
    for (small, large) in (1..5).flat_map(|small| (40..50).map(move |large| (small, large))) {
        let rows = [vec![small], vec![large]];
        let until = Length::Until(Stop::AllExhausted, Tail::Drop);
        let cut = mixed(&rows, &[1.0, 1.0], grid, until, Some((3, 1))).unwrap();
        let steps = Length::Steps(cut.steps());
        let same = mixed(&rows, &[1.0, 1.0], grid, steps, Some((3, 1))).unwrap();
        assert_eq!(given(&cut, 0), given(&same, 0));
    }
}

#[test]
fn a_source_that_goes_round_too_often_is_refused_while_it_is_drawn() {
    let grid = Grid::new(1 << 20, 1 << 10, 1).unwrap();
    let rows = [vec![1; 50], vec![1 << 30]];
    let error = mixed(&rows, &[30.0, 1.0], grid, Length::Steps(1 << 7), None).unwrap_err();
    assert!(
        error.to_string().contains("source 0 of the mixture"),
        "{error}"
    );
    assert!(error.help().unwrap().contains("steps_per_epoch"), "{error}");
}

#[test]
fn what_has_no_end_is_refused_and_not_looked_for() {
    let grid = Grid::new(8, 4, 1).unwrap();
    let rows = [vec![1000], vec![10_000_000]];
    let until = |stop| Length::Until(stop, Tail::Pad);
    for (weights, length) in [
        ([1.0, 1e-11], until(Stop::AllExhausted)),
        ([1.0, 1.0], Length::Steps(u64::MAX)),
        ([1.0, 1.0], Length::Steps(SAMPLES_MAX / 8 + 1)),
    ] {
        let error = mixed(&rows, &weights, grid, length, None).unwrap_err();
        assert!(error.help().unwrap().contains("steps_per_epoch"), "{error}");
    }
    let error = mixed(
        &[vec![5], vec![0, 0]],
        &[1.0, 1.0],
        grid,
        until(Stop::AllExhausted),
        None,
    );
    assert!(error.unwrap_err().to_string().contains("source 1"));
    // A source that is hardly ever drawn does no harm where the others end the epoch.
    let epoch = mixed(
        &rows,
        &[1.0, 1e-11],
        grid,
        until(Stop::FirstExhausted),
        None,
    )
    .unwrap();
    assert_eq!(epoch.samples(), 1000);
}
