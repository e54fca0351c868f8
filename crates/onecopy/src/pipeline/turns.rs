//! Which lane gives the next sample.

use std::ops::Range;

use crate::sample::order::{Grid, Mixture, Part};

/// Whose turn it is. The lanes of several sources stand source by source.
#[derive(Debug, Clone)]
pub enum Turns {
    /// As the grid says: sample by sample from `from` to `samples`, for the lanes of `part`, lowest first.
    Grid {
        /// Which lane gives which sample.
        grid: Grid,
        /// Whose lanes these are.
        part: Part,
        /// The first sample of the epoch that is wanted.
        from: u64,
        /// Behind the last one.
        samples: u64,
        /// Which source a sample comes from, where there are several.
        mixture: Option<Mixture>,
    },
    /// One after the other, as long as they have any.
    Rounds(Rounds),
}

/// Turns of lanes of which nobody knows how many samples they have.
#[derive(Debug, Clone)]
pub struct Rounds {
    /// So many lanes has each source.
    pub lanes: usize,
    /// Which of them is the first; of each source.
    pub next: Vec<usize>,
    /// What becomes of a source none of whose lanes has any left.
    pub again: Again,
    /// Which sources had none left before, and were begun again.
    pub ended: Vec<bool>,
    /// Which source gives the next sample, where there are several.
    pub draws: Option<Draws>,
}

/// What becomes of a source that has no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// It ends all.
    Never,
    /// It begins again, until all sources have ended once.
    UntilAllEnded,
    /// It begins again.
    Always,
}

/// Draws of sources.
#[derive(Debug, Clone)]
pub struct Draws {
    /// How they are drawn.
    pub mixture: Mixture,
    /// Whose draws these are: as those of a lane.
    pub process: u64,
    /// So many samples were given before.
    pub given: u64,
}

/// The turns of lanes, one by one.
pub(super) enum Order {
    Grid(GridOrder),
    Rounds(RoundOrder),
}

/// A source none of whose lanes has any left.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) source: usize,
    /// Its lanes, where they begin again.
    pub(super) again: Option<Range<usize>>,
}

pub(super) struct GridOrder {
    turns: Box<dyn Iterator<Item = (usize, bool)>>,
    /// Which lanes have no more.
    over: Vec<bool>,
    left: usize,
}

pub(super) struct RoundOrder {
    rounds: Rounds,
    key: u64,
    /// Which lanes have no more.
    over: Vec<bool>,
    /// How many of each source have.
    left: Vec<usize>,
    is_over: bool,
}

impl Order {
    pub(super) fn new(turns: Turns, lanes: usize) -> Self {
        match turns {
            Turns::Rounds(rounds) => Self::Rounds(RoundOrder::new(rounds)),
            Turns::Grid {
                grid,
                part,
                from,
                samples,
                mixture,
            } => {
                let own: Vec<u64> = grid.lanes_of(part).collect();
                let keys: Vec<u64> = mixture.as_ref().map_or_else(Vec::new, |mixture| {
                    own.iter().map(|lane| mixture.key(*lane)).collect()
                });
                let place = move |sample| {
                    let (lane, ordinal) = grid.place(sample);
                    let at = own.binary_search(&lane).unwrap_or(usize::MAX);
                    let drawn = mixture.as_ref().zip(keys.get(at));
                    let source = drawn.map_or(0, |(mixture, key)| mixture.draw(*key, ordinal));
                    at.saturating_add(source * own.len())
                };
                let due = grid.samples_of(part, from);
                let due = due.take_while(move |(sample, _)| *sample < samples);
                Self::Grid(GridOrder {
                    turns: Box::new(due.map(move |(sample, is_own)| (place(sample), is_own))),
                    over: vec![false; lanes],
                    left: lanes,
                })
            }
        }
    }

    /// The lane whose turn it is, one that has more, as far as is known; and whether its sample is given here.
    pub(super) fn next(&mut self) -> Option<(usize, bool)> {
        match self {
            Self::Grid(order) => order.next(),
            Self::Rounds(order) => order.next().map(|lane| (lane, true)),
        }
    }

    /// Notes that the lane whose turn it was gave a sample.
    pub(super) fn gave(&mut self) {
        if let Self::Rounds(order) = self
            && let Some(draws) = &mut order.rounds.draws
        {
            draws.given += 1;
        }
    }

    /// Notes that a lane has no more; gives its source, where none of its lanes has.
    pub(super) fn is_over(&mut self, lane: usize) -> Option<Ended> {
        match self {
            Self::Grid(order) => {
                order.is_over(lane);
                None
            }
            Self::Rounds(order) => order.is_over(lane),
        }
    }
}

impl GridOrder {
    fn next(&mut self) -> Option<(usize, bool)> {
        while self.left > 0 {
            let (lane, is_own) = self.turns.next()?;
            if !self.over.get(lane).copied().unwrap_or(false) {
                return Some((lane, is_own));
            }
        }
        None
    }

    fn is_over(&mut self, lane: usize) {
        if let Some(over) = self.over.get_mut(lane)
            && !std::mem::replace(over, true)
        {
            self.left -= 1;
        }
    }
}

impl RoundOrder {
    fn new(rounds: Rounds) -> Self {
        let sources = rounds.next.len();
        let draws = rounds.draws.as_ref();
        Self {
            key: draws.map_or(0, |draws| draws.mixture.key(draws.process)),
            over: vec![false; sources * rounds.lanes],
            left: vec![rounds.lanes; sources],
            is_over: rounds.lanes == 0,
            rounds,
        }
    }

    fn next(&mut self) -> Option<usize> {
        if self.is_over {
            return None;
        }
        let draws = self.rounds.draws.as_ref();
        let source = draws.map_or(0, |draws| draws.mixture.draw(self.key, draws.given));
        let lanes = self.rounds.lanes;
        let next = self.rounds.next.get_mut(source)?;
        // Of a source that is not over some lane has more.
        for _ in 0..lanes {
            let lane = *next;
            *next = (lane + 1) % lanes;
            let at = source * lanes + lane;
            if !self.over.get(at).copied().unwrap_or(false) {
                return Some(at);
            }
        }
        None
    }

    fn is_over(&mut self, lane: usize) -> Option<Ended> {
        let lanes = self.rounds.lanes;
        let (source, over) = (lane / lanes, self.over.get_mut(lane)?);
        if std::mem::replace(over, true) {
            return None;
        }
        self.left[source] -= 1;
        if self.left[source] > 0 {
            return None;
        }
        self.rounds.ended[source] = true;
        let is_again = match self.rounds.again {
            Again::Never => false,
            Again::UntilAllEnded => !self.rounds.ended.iter().all(|ended| *ended),
            Again::Always => true,
        };
        let own = source * lanes..(source + 1) * lanes;
        if !is_again {
            self.is_over = true;
            return Some(Ended {
                source,
                again: None,
            });
        }
        self.over[own.clone()].fill(false);
        self.left[source] = lanes;
        Some(Ended {
            source,
            again: Some(own),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(lanes: usize, next: Vec<usize>, again: Again, draws: Option<Draws>) -> Turns {
        Turns::Rounds(Rounds {
            lanes,
            ended: vec![false; next.len()],
            next,
            again,
            draws,
        })
    }

    /// Takes from lanes that have so much left each, and begin again with `row`.
    fn take(order: &mut Order, left: &mut [usize], row: &[usize], most: usize) -> Vec<usize> {
        let mut given = Vec::new();
        while given.len() < most
            && let Some((lane, true)) = order.next()
        {
            if left[lane] == 0 {
                if let Some(Ended {
                    again: Some(lanes), ..
                }) = order.is_over(lane)
                {
                    lanes.for_each(|lane| left[lane] = row[lane]);
                }
                continue;
            }
            left[lane] -= 1;
            order.gave();
            given.push(lane);
        }
        given
    }

    #[test]
    fn lanes_take_turns_until_none_has_more() {
        let row = [2, 1, 3];
        let mut order = Order::new(rounds(3, vec![1], Again::Never, None), 3);
        assert_eq!(
            take(&mut order, &mut row.clone(), &row, 99),
            [1, 2, 0, 2, 0, 2]
        );
        assert_eq!(order.next(), None);
        // Again, from the lane whose turn it is.
        let mut order = Order::new(rounds(3, vec![1], Again::Always, None), 3);
        let given = take(&mut order, &mut row.clone(), &row, 14);
        assert_eq!(given, [1, 2, 0, 2, 0, 2, 0, 1, 2, 0, 2, 2, 0, 1]);
    }

    #[test]
    fn sources_are_drawn_and_end_all_or_begin_again() {
        let mixture = Mixture::new(&[1.0, 1.0], 5, 0).unwrap();
        let draws = |given| Draws {
            mixture: mixture.clone(),
            process: 0,
            given,
        };
        let key = mixture.key(0);
        let drawn: Vec<usize> = (0..40).map(|at| mixture.draw(key, at)).collect();
        let row = [2, 1, 9, 9];
        let of = |again| {
            let mut order = Order::new(rounds(2, vec![0, 0], again, Some(draws(0))), 4);
            take(&mut order, &mut row.clone(), &row, 40)
        };
        for again in [Again::Never, Again::UntilAllEnded, Again::Always] {
            let given = of(again);
            let sources: Vec<usize> = given.iter().map(|lane| lane / 2).collect();
            assert_eq!(sources, drawn[..given.len()]);
            let of_first = sources.iter().filter(|source| **source == 0).count();
            match again {
                Again::Never => assert_eq!(of_first, 3),
                Again::UntilAllEnded => assert!(of_first > 3 && given.len() - of_first == 18),
                Again::Always => assert_eq!(given.len(), 40),
            }
        }
        let mut order = Order::new(rounds(2, vec![0, 0], Again::Always, Some(draws(7))), 4);
        let given = take(&mut order, &mut row.clone(), &row, 20);
        let sources: Vec<usize> = given.iter().map(|lane| lane / 2).collect();
        assert_eq!(sources, drawn[7..27]);
    }

    #[test]
    fn a_grid_gives_each_lane_its_place_among_those_of_the_part() {
        let grid = Grid::new(4, 4, 1).unwrap();
        let part = Part {
            rank: 1,
            ranks: 2,
            ..Part::WHOLE
        };
        let turns = |mixture| Turns::Grid {
            grid,
            part,
            from: 2,
            samples: 8,
            mixture,
        };
        let all = |turns, lanes| -> Vec<usize> {
            let mut order = Order::new(turns, lanes);
            std::iter::from_fn(|| order.next().map(|(lane, _)| lane)).collect()
        };
        // Samples 3, 5 and 7 come from the lanes 3, 1 and 3, which are the second and the first of this part.
        assert_eq!(all(turns(None), 2), [1, 0, 1]);
        let mixture = Mixture::new(&[1.0, 1.0], 1, 0).unwrap();
        let drawn = |lane, ordinal| 2 * mixture.draw(mixture.key(lane), ordinal);
        let expected = [1 + drawn(3, 0), drawn(1, 1), 1 + drawn(3, 1)];
        assert_eq!(all(turns(Some(mixture.clone())), 4), expected);
    }
}
