//! Loads of some of the samples: slices, lists, drawn parts, one by one.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod loads_support;

use loads_support::*;
use onecopy::loader::{Counted, Position};
use onecopy::sample::order::{Choice, Part, Tail};
use onecopy::sync::Arc;
use onecopy::{ErrorKind, Loader};
use proptest::prelude::*;

fn those(places: &[u64]) -> Choice {
    Choice::Those(places.into())
}

fn counted(data: &Data) -> Loader {
    data.loader().counted(Some(data.counted.clone()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn what_is_chosen_comes_once_on_any_number_of_ranks_and_from_any_step(
        counts in prop::collection::vec(0..30_u64, 1..6),
        picks in prop::collection::btree_set(0..150_u64, 1..60),
        is_drawn in any::<bool>(),
        ranks in 1..4_u64,
        stop in 0..20_u64,
        shuffle in prop::option::of(2..40_usize),
        are_starts_known in any::<bool>(),
    ) {
        let all: u64 = counts.iter().sum();
        prop_assume!(all > 1);
        let mut data = Data::new(&counts);
        if !are_starts_known {
            data.counted.starts.clear();
        }
        let places: Vec<u64> = picks.into_iter().filter(|at| *at < all).collect();
        let drawing = Choice::Drawn { seed: 5, from: 0.25, to: 1.0 };
        let choices = if is_drawn || places.is_empty() { vec![drawing] } else { vec![those(&places)] };
        let loader = |rank: u64, ranks: u64, from: u64| {
            let part = Part { rank, ranks, ..Part::WHOLE };
            let loader = counted(&data).choose(choices.clone()).lanes(Some(6), None).part(part).tail(Some(Tail::Pad));
            let loader = loader.batch(usize::try_from(6 / ranks).unwrap(), false);
            let loader = loader.position((from > 0).then_some(Position::Samples(from)));
            match shuffle {
                Some(capacity) => loader.shuffle(capacity, 3),
                None => loader,
            }
        };
        let whole = batches(loader(0, 1, 0));
        let mut labels = whole.concat();
        labels.sort_unstable();
        labels.dedup();
        if is_drawn || places.is_empty() {
            prop_assert_eq!(labels.len() as u64, all - (all + 2) / 4);
        } else {
            prop_assert_eq!(labels, places.iter().map(|at| i64::try_from(*at).unwrap()).collect::<Vec<_>>());
        }
        let stop = stop % (whole.len() as u64 + 1);
        let given: Vec<_> = (0..ranks).map(|rank| batches(loader(rank, ranks, stop * 6))).collect();
        for (step, expected) in whole.iter().skip(usize::try_from(stop).unwrap()).enumerate() {
            let mut together: Vec<i64> = given.iter().flat_map(|rank| rank[step].clone()).collect();
            let mut expected = expected.clone();
            together.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(together, expected);
        }
        prop_assert!(given.iter().all(|rank| rank.len() as u64 == whole.len() as u64 - stop));
    }
}

#[test]
fn far_samples_take_no_bytes_of_those_between_and_near_ones_no_request() {
    // 3,000 samples of 2 KiB: 6 MB in a shard.
    let data = Data::new(&[3000]);
    let read = |places: &[u64]| {
        let mut load = counted(&data)
            .choose([those(places)])
            .batch(8, false)
            .run()
            .unwrap();
        let labels: Vec<i64> = load
            .by_ref()
            .flat_map(|batch| labels(&batch.unwrap()))
            .collect();
        (labels, load.report().payload_bytes)
    };
    let (labels, far) = read(&[1, 1500, 2998]);
    assert_eq!(labels, [1, 1500, 2998]);
    assert!(far <= 3 * 2048, "{far}");
    let (labels, near) = read(&[1, 3, 400]);
    assert_eq!(labels, [1, 3, 400]);
    assert_eq!(near, 400 * 2048);
}

#[test]
fn runs_that_share_a_catalog_ask_once_what_is_there() {
    let data = Data::new(&[5, 6, 7]);
    let catalog = counted(&data).catalog().unwrap();
    for place in [17, 0, 9] {
        let one = counted(&data)
            .within(Some(Arc::clone(&catalog)))
            .choose([those(&[place])]);
        assert_eq!(batches(one), [[i64::try_from(place).unwrap()]]);
    }
    // What is listed anew would be missed.
    std::fs::rename(
        data.urls[2].trim_start_matches("file://"),
        data.urls[2].trim_start_matches("file://").to_owned() + "x",
    )
    .unwrap();
    let first = counted(&data).within(Some(catalog)).choose([those(&[0])]);
    assert_eq!(batches(first), [[0]]);
}

#[test]
fn what_cannot_be_chosen_is_refused() {
    let data = Data::new(&[5, 6]);
    let without = data.loader().choose([those(&[1])]).run().unwrap_err();
    assert!(
        without.help().unwrap().contains("onecopy index"),
        "{without}"
    );
    let beyond = counted(&data).choose([those(&[11])]).run().unwrap_err();
    assert_eq!(beyond.kind(), ErrorKind::InvalidInput);
    let none = counted(&data).choose([those(&[])]).run().unwrap_err();
    assert!(
        none.to_string().contains("of 0 samples none is left"),
        "{none}"
    );
    // The second shard has fewer samples than are said, and the last of them is asked for.
    let wrong = Counted {
        samples: vec![5, 7],
        starts: Vec::new(),
    };
    let stale = data.loader().counted(Some(wrong)).choose([those(&[2, 11])]);
    let error = stale.run().unwrap().find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::Changed);
}
