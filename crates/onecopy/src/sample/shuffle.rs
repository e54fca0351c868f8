//! A shuffle buffer whose order follows from a seed alone, and whose memory is bounded in bytes of the stream.
//!
//! A held sample keeps the slab alive that it lies in, so what a shuffle buffer costs is not what its samples weigh but
//! how far back in the stream the oldest of them reaches. That span is what is limited here.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};

use super::Sample;

/// A reservoir of at most `capacity` samples, out of which a random one leaves for each that comes in too many.
///
/// The order that comes out is a function of what goes in, of the positions given with it, and of (seed, epoch).
#[derive(Debug)]
pub struct Shuffle<T = Sample> {
    capacity: usize,
    max_span_bytes: u64,
    random: ChaCha8Rng,
    held: Vec<Held<T>>,
    /// Arrival number -> place in `held`: the first entry is the oldest.
    places: BTreeMap<u64, usize>,
    arrived: u64,
    first: Option<u64>,
    newest: u64,
    /// The fewest samples that were chosen from because more would have reached too far back; none while all fitted.
    limited_to: Option<usize>,
}

#[derive(Debug)]
struct Held<T> {
    item: T,
    arrival: u64,
    position: u64,
}

impl<T> Shuffle<T> {
    /// A buffer for `capacity` samples; 0 passes them through in order. `max_span_bytes` limits the part of the stream
    /// between the oldest and the newest sample held.
    #[must_use]
    pub fn new(capacity: usize, seed: u64, epoch: u64, max_span_bytes: u64) -> Self {
        // Both numbers go into the key of the cipher as they are: no two pairs share an order by construction.
        let mut key = [0_u8; 32];
        for (to, from) in key
            .iter_mut()
            .zip(seed.to_le_bytes().into_iter().chain(epoch.to_le_bytes()))
        {
            *to = from;
        }
        Self {
            capacity,
            max_span_bytes,
            random: ChaCha8Rng::from_seed(key),
            held: Vec::new(),
            places: BTreeMap::new(),
            arrived: 0,
            first: None,
            newest: 0,
            limited_to: None,
        }
    }

    /// Puts `item` in; `stream_position` is where it begins, counted over the whole stream and never falling. Gives out
    /// the oldest one where the span is too long, else a random one where the buffer is full.
    ///
    /// Call [`Shuffle::next_due`] afterwards until it has nothing more: one push can make several samples due.
    pub fn push(&mut self, item: T, stream_position: u64) -> Option<T> {
        self.newest = self.newest.max(stream_position);
        self.first.get_or_insert(stream_position);
        self.places.insert(self.arrived, self.held.len());
        self.held.push(Held {
            item,
            arrival: self.arrived,
            position: stream_position,
        });
        self.arrived += 1;
        self.next_due()
    }

    /// The next sample that has to leave for a limit to be kept.
    pub fn next_due(&mut self) -> Option<T> {
        if let Some((_, &place)) = self.places.first_key_value()
            && self.newest - self.held[place].position > self.max_span_bytes
        {
            return self.take(place);
        }
        if self.held.len() > self.capacity.min(self.fitting()) {
            if self.held.len() <= self.capacity {
                let now = self.held.len() - 1;
                self.limited_to = Some(self.limited_to.map_or(now, |before| before.min(now)));
            }
            return self.take_random();
        }
        None
    }

    /// How many samples can be chosen from without the oldest being forced out often, judged by how densely samples have
    /// come so far.
    ///
    /// A sample stays for as many arrivals as there are places, on average, and by chance much longer. With half as many
    /// places as samples in the span, one in seven (e^-2) is forced out by its age, and the others leave at random;
    /// with as many places as samples it would be nearly all, in the order in which they came.
    fn fitting(&self) -> usize {
        let passed = self.newest - self.first.unwrap_or(self.newest);
        if passed == 0 {
            return usize::MAX;
        }
        let in_span =
            u128::from(self.arrived) * u128::from(self.max_span_bytes) / u128::from(passed);
        usize::try_from(in_span / 2).unwrap_or(usize::MAX).max(1)
    }

    /// From how few samples it had to choose, at the least, where memory was too small for what was asked for.
    #[must_use]
    pub fn limited_to(&self) -> Option<usize> {
        self.limited_to
    }

    /// Empties the buffer, in random order.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        std::iter::from_fn(|| self.take_random())
    }

    /// How many samples it was to choose from.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many samples are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether none is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    fn take_random(&mut self) -> Option<T> {
        let count = self.held.len() as u64;
        if count == 0 {
            return None;
        }
        // Our own reduction, and not the one of a crate that may change with its version: a run must be resumable by a
        // later onecopy. The bias is below count / 2^64.
        let place = (u128::from(self.random.next_u64()) * u128::from(count)) >> 64;
        self.take(usize::try_from(place).unwrap_or(0))
    }

    fn take(&mut self, place: usize) -> Option<T> {
        let taken = self.held.swap_remove(place);
        self.places.remove(&taken.arrival);
        if let Some(moved) = self.held.get(place) {
            self.places.insert(moved.arrival, place);
        }
        Some(taken.item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out for numbers 0..count, ten bytes apart.
    fn order(shuffle: &mut Shuffle<u64>, count: u64) -> Vec<u64> {
        let mut out = Vec::new();
        for number in 0..count {
            out.extend(shuffle.push(number, number * 10));
            while let Some(due) = shuffle.next_due() {
                out.push(due);
            }
            assert!(shuffle.len() <= shuffle.capacity);
        }
        out.extend(shuffle.drain());
        assert!(shuffle.is_empty() && shuffle.places.is_empty());
        out
    }

    #[test]
    fn each_comes_out_once_in_an_order_that_the_seed_fixes() {
        for capacity in [0, 1, 2, 7, 100, 1000, 5000] {
            let once = order(&mut Shuffle::new(capacity, 7, 0, u64::MAX), 1000);
            assert_eq!(
                once,
                order(&mut Shuffle::new(capacity, 7, 0, u64::MAX), 1000)
            );
            let mut sorted = once.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..1000).collect::<Vec<_>>());
            if capacity > 1 {
                assert_ne!(once, sorted);
                for (seed, epoch) in [(7, 1), (8, 0), (0, 7)] {
                    assert_ne!(
                        once,
                        order(&mut Shuffle::new(capacity, seed, epoch, u64::MAX), 1000)
                    );
                }
            }
        }
    }

    #[test]
    fn the_order_is_the_same_in_every_version() {
        assert_eq!(
            order(&mut Shuffle::new(4, 1, 2, u64::MAX), 8),
            [1, 4, 2, 5, 0, 3, 6, 7],
            "a run must be resumable by a later version"
        );
    }

    #[test]
    fn no_span_grows_beyond_its_limit() {
        let mut shuffle = Shuffle::new(50, 3, 0, 100);
        let mut out = Vec::new();
        for number in 0..500_u64 {
            out.extend(shuffle.push(number, number * 10));
            while let Some(due) = shuffle.next_due() {
                out.push(due);
            }
            let oldest = shuffle.held.iter().map(|held| held.position).min();
            assert!(number * 10 - oldest.unwrap_or(number * 10) <= 100);
        }
        // A jump makes all of them due at once.
        out.extend(shuffle.push(500, 100_000));
        while let Some(due) = shuffle.next_due() {
            out.push(due);
        }
        assert_eq!(shuffle.len(), 1);
        out.extend(shuffle.drain());
        out.sort_unstable();
        assert_eq!(out, (0..=500).collect::<Vec<_>>());
    }

    #[test]
    fn without_room_it_keeps_the_order() {
        assert_eq!(order(&mut Shuffle::new(0, 9, 9, 0), 5), [0, 1, 2, 3, 4]);
    }
}
