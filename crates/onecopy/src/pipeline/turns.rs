//! Which lane gives the next sample.

use crate::sample::order::{Grid, Part};

/// Whose turn it is.
#[derive(Debug, Clone, Copy)]
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
    },
    /// One after the other, as long as they have any, from the lane `next` on.
    Round {
        /// Which lane is the first.
        next: usize,
        /// Whether they begin again once none has any left.
        is_repeating: bool,
    },
}

impl Turns {
    /// Whether lanes begin again once none has any left.
    pub(super) fn is_repeating(&self) -> bool {
        matches!(
            self,
            Self::Round {
                is_repeating: true,
                ..
            }
        )
    }
}

/// The turns of lanes, one by one.
pub(super) struct Order {
    turns: Box<dyn Iterator<Item = usize>>,
    /// Which lanes have no more.
    over: Vec<bool>,
    left: usize,
}

impl Order {
    pub(super) fn new(turns: Turns, lanes: usize) -> Self {
        let turns: Box<dyn Iterator<Item = usize>> = match turns {
            Turns::Round { next, .. } => Box::new((0..lanes.max(1)).cycle().skip(next)),
            Turns::Grid {
                grid,
                part,
                from,
                samples,
            } => {
                let own: Vec<u64> = grid.lanes_of(part).collect();
                let place = move |lane| own.binary_search(&lane).unwrap_or(usize::MAX);
                let due = grid.samples_of(part, from);
                let due = due.take_while(move |(sample, _)| *sample < samples);
                Box::new(due.map(move |(_, lane)| place(lane)))
            }
        };
        Self {
            turns,
            over: vec![false; lanes],
            left: lanes,
        }
    }

    /// Notes that a lane has no more.
    pub(super) fn is_over(&mut self, lane: usize) {
        if let Some(over) = self.over.get_mut(lane)
            && !std::mem::replace(over, true)
        {
            self.left -= 1;
        }
    }

    /// Begins again with all lanes, from the one whose turn it is.
    pub(super) fn begin_again(&mut self) {
        self.over.fill(false);
        self.left = self.over.len();
    }
}

impl Iterator for Order {
    type Item = usize;

    /// The lane whose turn it is: one that has more, as far as is known.
    fn next(&mut self) -> Option<usize> {
        while self.left > 0 {
            let lane = self.turns.next()?;
            if !self.over.get(lane).copied().unwrap_or(false) {
                return Some(lane);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_take_turns_until_none_has_more() {
        let round = Turns::Round {
            next: 1,
            is_repeating: false,
        };
        let mut order = Order::new(round, 3);
        let mut left = [2, 1, 3];
        let mut given = Vec::new();
        while let Some(lane) = order.next() {
            if left[lane] == 0 {
                order.is_over(lane);
                continue;
            }
            left[lane] -= 1;
            given.push(lane);
        }
        assert_eq!(given, [1, 2, 0, 2, 0, 2]);
        order.begin_again();
        assert_eq!(order.take(4).collect::<Vec<_>>(), [0, 1, 2, 0]);
    }

    #[test]
    fn a_grid_gives_each_lane_its_place_among_those_of_the_part() {
        let grid = Grid::new(4, 4, 1).unwrap();
        let part = Part {
            rank: 1,
            ranks: 2,
            ..Part::WHOLE
        };
        let turns = Turns::Grid {
            grid,
            part,
            from: 2,
            samples: 8,
        };
        // Samples 3, 5 and 7 come from the lanes 3, 1 and 3, which are the second and the first of this part.
        assert_eq!(Order::new(turns, 2).collect::<Vec<_>>(), [1, 0, 1]);
    }
}
