//! How long we wait for a body that does not come, or comes too slowly.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::failure::Failure;
use super::recent::Recent;
use super::request::LONGEST_CHANGE;
use crate::error::ErrorKind;

/// A body that brings less than this in the time without which it would count as stalled is as good as stalled:
/// 1.6 KiB/s at the default of 10 s. Else one byte every few seconds would hold a slab for ever.
pub(super) const LEAST_PROGRESS: usize = 16 << 10;

/// How often we look, at most.
const BEAT: Duration = Duration::from_millis(500);

/// Beats in a row in which a body must be slow: the first second of a connection that is far away is slow by nature.
const SLOW_BEATS: u32 = 2;

/// The patience with one body. Only time spent reading counts, because it is made when reading begins; the timer is armed
/// at the first read that has to wait, and set anew at every beat rather than at every read.
#[derive(Debug)]
pub(super) struct Patience<'a> {
    sleep: Pin<Box<Sleep>>,
    beat: Duration,
    beat_began: Instant,
    beat_bytes: usize,
    slow_beats: u32,
    stall: Duration,
    /// What each of the last beats brought, as many as make up the stall.
    beats: VecDeque<usize>,
    beats_max: usize,
    /// What counts as progress.
    least: usize,
    /// What other bodies are like; none where a slow body is as good as any.
    recent: Option<&'a Recent>,
}

impl<'a> Patience<'a> {
    /// Gives up where next to nothing comes for `stall`, and, where `recent` is given, on a body that is slow among its like.
    pub(super) fn new(stall: Duration, recent: Option<&'a Recent>) -> Self {
        // The stall is a whole number of beats. The first may wait for many bytes at once, so it is never the last.
        let beats = u16::try_from(stall.as_millis().div_ceil(BEAT.as_millis())).unwrap_or(u16::MAX);
        let beats = beats.max(2);
        let beat = stall / u32::from(beats);
        Self {
            sleep: Box::pin(sleep(beat)),
            beat,
            beat_began: Instant::now(),
            beat_bytes: 0,
            slow_beats: 0,
            stall,
            beats: VecDeque::new(),
            beats_max: beats.into(),
            least: LEAST_PROGRESS,
            recent,
        }
    }

    /// With the answer to a change: S3 begins it at once and sends a blank now and then while it puts an object together,
    /// for minutes. Any byte shows that it is at work.
    pub(super) fn with_a_change(stall: Duration) -> Self {
        Self {
            least: 1,
            ..Self::new(stall.max(LONGEST_CHANGE), None)
        }
    }

    /// Waits for one read, of a body of which `left` bytes are still wanted.
    pub(super) async fn read(
        &mut self,
        left: u64,
        read: impl Future<Output = Result<usize, Failure>>,
    ) -> Result<usize, Failure> {
        let mut read = pin!(read);
        loop {
            if let Some(len) = self.read_for_a_beat(left, read.as_mut()).await? {
                return Ok(len);
            }
        }
    }

    /// As `read`, until the beat is over: then none. The read is dropped, and must lose nothing by that.
    pub(super) async fn read_for_a_beat(
        &mut self,
        left: u64,
        read: impl Future<Output = Result<usize, Failure>>,
    ) -> Result<Option<usize>, Failure> {
        tokio::select! {
            biased;
            result = read => {
                let len = result?;
                self.beat_bytes += len;
                Ok(Some(len))
            }
            () = &mut self.sleep => {
                self.look(left)?;
                Ok(None)
            }
        }
    }

    /// A beat is over, and a read still waits.
    fn look(&mut self, left: u64) -> Result<(), Failure> {
        let now = Instant::now();
        let passed = now.duration_since(self.beat_began);
        let bytes = std::mem::take(&mut self.beat_bytes);
        self.beat_began = now;
        self.sleep.as_mut().reset(now + self.beat);
        self.beats.push_back(bytes);
        if self.beats.len() >= self.beats_max {
            let progress = self.beats.iter().sum();
            if progress < self.least {
                return Err(self.stalled(progress));
            }
            self.beats.pop_front();
        }
        // A beat that ended late was spent elsewhere, by us and not by the network: it says nothing of the rate.
        let Some(recent) = self.recent.filter(|_| passed < 2 * self.beat) else {
            self.slow_beats = 0;
            return Ok(());
        };
        let rate = bytes as f64 / passed.as_secs_f64().max(1e-6);
        if !recent.is_slow(rate) {
            self.slow_beats = 0;
            return Ok(());
        }
        self.slow_beats += 1;
        if self.slow_beats >= SLOW_BEATS && recent.may_take_over(rate, left) {
            return Err(slow(rate));
        }
        Ok(())
    }

    fn stalled(&self, progress: usize) -> Failure {
        let why = format!(
            "the body stalled: {progress} bytes in {} ms",
            self.stall.as_millis()
        );
        Failure::new(ErrorKind::Unreachable, "stalled", why)
    }
}

fn slow(rate: f64) -> Failure {
    let why = format!(
        "the body came at {:.2} MB/s, less than a quarter of what others do",
        rate / 1e6
    );
    Failure::new(ErrorKind::Unreachable, "slow", why).promptly()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: Duration = Duration::from_secs(10);

    async fn drip(bytes: usize) -> Result<usize, Failure> {
        sleep(Duration::from_secs(3)).await;
        Ok(bytes)
    }

    async fn piece(bytes: usize) -> Result<usize, Failure> {
        sleep(Duration::from_millis(100)).await;
        Ok(bytes)
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_may_take_minutes_while_blanks_come_and_not_in_silence() {
        let blank = async || {
            sleep(Duration::from_secs(20)).await;
            Ok(1)
        };
        let mut patience = Patience::with_a_change(STALL);
        for _ in 0..60 {
            patience.read(0, blank()).await.unwrap();
        }
        let failure = patience.read(0, std::future::pending()).await.unwrap_err();
        assert_eq!(failure.cause, "stalled");
    }

    #[tokio::test(start_paused = true)]
    async fn a_drip_is_a_stall_and_a_slow_stream_is_none() {
        let mut patience = Patience::new(STALL, None);
        for _ in 0..100 {
            patience.read(9, drip(LEAST_PROGRESS / 2)).await.unwrap();
        }
        let mut patience = Patience::new(STALL, None);
        let mut reads = 0;
        let failure = loop {
            match patience.read(9, drip(1)).await {
                Ok(_) => reads += 1,
                Err(failure) => break failure,
            }
        };
        assert_eq!((reads, failure.cause), (3, "stalled"));
        assert!(
            failure.why.contains("3 bytes in 10000 ms"),
            "{}",
            failure.why
        );
    }

    #[tokio::test(start_paused = true)]
    async fn silence_counts_from_the_last_byte() {
        let mut patience = Patience::new(STALL, None);
        let began = Instant::now();
        for _ in 0..7 {
            let read = async {
                sleep(Duration::from_secs(1)).await;
                Ok(LEAST_PROGRESS)
            };
            patience.read(9, read).await.unwrap();
        }
        let silence = patience.read(9, std::future::pending()).await;
        assert_eq!(silence.unwrap_err().cause, "stalled");
        assert_eq!(began.elapsed().as_secs(), 7 + 10);
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_nobody_reads_is_no_stall() {
        for _ in 0..3 {
            let mut patience = Patience::new(STALL, None);
            patience.read(9, drip(1)).await.unwrap();
            sleep(Duration::from_secs(60)).await;
        }
        // Not even between two reads.
        let mut patience = Patience::new(STALL, None);
        for _ in 0..5 {
            patience.read(9, async { Ok(1) }).await.unwrap();
            sleep(Duration::from_secs(60)).await;
        }
    }

    /// After how many reads of 100 ms a body of 8 MB is given up, and why.
    async fn given_up(
        patience: &mut Patience<'_>,
        bytes: usize,
        pause: Duration,
    ) -> Option<(usize, &'static str)> {
        let mut left = 8_000_000_usize;
        for reads in 0.. {
            match patience.read(left as u64, piece(bytes)).await {
                Ok(len) if len < left => left -= len,
                Ok(_) => break,
                Err(failure) => return Some((reads, failure.cause)),
            }
            sleep(pause).await;
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_slow_among_its_like_is_given_up_after_a_second() {
        let recent = Recent::new(STALL);
        for _ in 0..20 {
            recent.read(8_000_000, Duration::from_millis(160));
        }
        let no_pause = Duration::ZERO;
        let mut patience = Patience::new(STALL, Some(&recent));
        // 1 MB/s where others bring 50.
        let outcome = given_up(&mut patience, 100_000, no_pause).await;
        assert!(matches!(outcome, Some((9..=11, "slow"))), "{outcome:?}");
        // 20 MB/s is not slow among them.
        let mut patience = Patience::new(STALL, Some(&recent));
        assert_eq!(given_up(&mut patience, 2_000_000, no_pause).await, None);
        // Nor is one that we read seldom: the pauses are ours.
        let mut patience = Patience::new(STALL, Some(&recent));
        let pause = Duration::from_secs(30);
        assert_eq!(given_up(&mut patience, 2_000_000, pause).await, None);
        // Without others to compare with, slow is slow.
        let nothing = Recent::new(STALL);
        let mut patience = Patience::new(STALL, Some(&nothing));
        let outcome = given_up(&mut patience, 100_000, no_pause).await;
        assert_eq!(outcome, None);
    }
}
