//! Tokens: what may be done only so often.

use tokio::time::Instant;

use crate::sync::Mutex;

/// A bucket of tokens: some to begin with, some more each second, some for each success, never more than it holds.
#[derive(Debug)]
pub(in crate::store) struct Tokens {
    most: f64,
    per_second: f64,
    /// Guards the tokens that are left, and when they were last counted.
    left: Mutex<(f64, Instant)>,
}

impl Tokens {
    pub(super) fn new(first: f64, most: f64, per_second: f64) -> Self {
        Self {
            most,
            per_second,
            left: Mutex::new((first.min(most), Instant::now())),
        }
    }

    /// Takes one, where there is one.
    pub(in crate::store) fn take(&self) -> bool {
        let mut left = self.left.lock();
        let now = Instant::now();
        let more = now.duration_since(left.1).as_secs_f64() * self.per_second;
        *left = ((left.0 + more).min(self.most), now);
        let is_there = left.0 >= 1.0;
        if is_there {
            left.0 -= 1.0;
        }
        is_there
    }

    /// Puts some in.
    pub(in crate::store) fn give(&self, tokens: f64) {
        let mut left = self.left.lock();
        left.0 = (left.0 + tokens).min(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn no_more_are_taken_than_time_and_success_bring() {
        let tokens = Tokens::new(3.0, 5.0, 2.0);
        let takes = |tokens: &Tokens| (0..100).filter(|_| tokens.take()).count();
        assert_eq!(takes(&tokens), 3);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(takes(&tokens), 2);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(takes(&tokens), 5);
        for _ in 0..9 {
            tokens.give(0.25);
        }
        assert_eq!(takes(&tokens), 2);
    }
}
