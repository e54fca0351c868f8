//! Bounded fuzzing of what parses answers and records: seeds, mutated without an end in sight but for a count.
//!
//! `make test` runs a fixed number of inputs; `ONECOPY_FUZZ_SECONDS=3600 cargo test --release -p onecopy fuzz` runs each target
//! for that long instead, from another seed every time (`ONECOPY_FUZZ_SEED` repeats one).

use std::time::{Duration, Instant, SystemTime};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Inputs per target where no time is set.
const INPUTS: u64 = 20_000;

/// Mutations of one input at most.
const MUTATIONS: usize = 6;

/// Longest run of bytes that one mutation writes, repeats or takes away.
const RUN: usize = 64;

/// No input grows beyond this.
const LONGEST: usize = 8 << 10;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Calls `round` with one seed after the other: `count` times from 0, or for as long as is asked for, from a seed that the
/// clock gives.
pub(crate) fn rounds(count: u64, mut round: impl FnMut(u64)) {
    let seconds = number("ONECOPY_FUZZ_SECONDS");
    let clock = || {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        // Rounds of one start do not reach the seeds of the next.
        since.map_or(0, |since| since.as_secs() << 32)
    };
    let first = number("ONECOPY_FUZZ_SEED").unwrap_or_else(|| seconds.map_or(0, |_| clock()));
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let is_more = |done: u64| match end {
        Some(end) => Instant::now() < end,
        None => done < count,
    };
    let mut done = 0;
    while is_more(done) {
        round(first + done);
        done += 1;
    }
    println!("{done} rounds from seed {first}");
}

/// Calls `check` with mutations of `seeds`, into which pieces of `words` are woven. `check` panics where a promise is broken; the
/// input is then printed with the panic.
pub(crate) fn fuzz(seeds: &[&[u8]], words: &[&[u8]], mut check: impl FnMut(&[u8])) {
    for seed in seeds {
        check(seed);
    }
    rounds(INPUTS, |round| {
        let mut random = ChaCha8Rng::seed_from_u64(round);
        let seed = seeds[random.random_range(0..seeds.len())];
        let input = mutate(seed, words, &mut random);
        let told = Told(&input);
        check(told.0);
    });
}

/// Prints the input where the check of it panics.
struct Told<'a>(&'a [u8]);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input was: {}", self.0.escape_ascii());
        }
    }
}

fn mutate(seed: &[u8], words: &[&[u8]], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut input = Vec::from(seed);
    for _ in 0..random.random_range(1..=MUTATIONS) {
        let at = random.random_range(0..=input.len());
        let run = random.random_range(1..=RUN).min(input.len() - at);
        match random.random_range(0..7_u8) {
            0 => input.truncate(at),
            1 => drop(input.drain(at..at + run)),
            2 => input.insert(at, random.random()),
            3 => {
                let bit = 1 << random.random_range(0..8_u8);
                input
                    .iter_mut()
                    .skip(at)
                    .take(1)
                    .for_each(|byte| *byte ^= bit);
            }
            4 => {
                let again: Vec<u8> = input[at..at + run].repeat(random.random_range(1..9));
                drop(input.splice(at..at, again));
            }
            5 if !words.is_empty() => {
                let word = words[random.random_range(0..words.len())];
                drop(input.splice(at..at + run.min(word.len()), word.iter().copied()));
            }
            _ => input[at..at + run]
                .iter_mut()
                .for_each(|byte| *byte = random.random()),
        }
        input.truncate(LONGEST);
    }
    input
}
