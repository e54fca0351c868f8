//! The only one that draws on stderr: hidden where stderr is no terminal, with `--quiet` and with
//! `--json`.
//!
//! Bars carry no colour, so `NO_COLOR` has nothing to turn off here.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use onecopy::sync::spawn;

/// How often a bar moves by itself.
const TICK: Duration = Duration::from_millis(200);

/// Makes bars, or bars that nobody sees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    is_hidden: bool,
}

impl Progress {
    pub(crate) const fn new(is_hidden: bool) -> Self {
        Self { is_hidden }
    }

    /// Counts samples up to `total`, or on and on.
    pub(crate) fn samples(&self, doing: &'static str, total: Option<u64>) -> Bar {
        let template = match total {
            Some(_) => "{msg} {bar:30} {human_pos} of {human_len} samples, {per_sec} {elapsed}",
            None => "{msg} {spinner} {human_pos} samples, {per_sec} {elapsed}",
        };
        self.bar(doing, total, template)
    }

    /// Counts shards, up to a total that is told later.
    pub(crate) fn shards(&self, doing: &'static str) -> Bar {
        let template = "{msg} {bar:30} {human_pos} of {human_len} shards, {per_sec} {elapsed}";
        self.bar(doing, Some(0), template)
    }

    /// Counts bytes.
    pub(crate) fn bytes(&self, doing: &'static str) -> Bar {
        let template = "{msg} {spinner} {binary_bytes}, {decimal_bytes_per_sec} {elapsed}";
        self.bar(doing, None, template)
    }

    fn bar(&self, doing: &'static str, total: Option<u64>, template: &str) -> Bar {
        let target = if self.is_hidden {
            ProgressDrawTarget::hidden()
        } else {
            // Draws on terminals only, ten times a second.
            ProgressDrawTarget::stderr_with_hz(10)
        };
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_malformed| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(total, target)
            .with_style(style)
            .with_message(doing);
        if !bar.is_hidden() {
            tick(&bar);
        }
        Bar(bar)
    }
}

/// Lets the bar move while nothing is counted, on a thread that ends with it. indicatif's own would panic where there is
/// none to be had; without one the bar moves with its counts.
fn tick(bar: &ProgressBar) {
    let bar = bar.downgrade();
    let _moves_with_its_counts = spawn("progress", move || {
        while let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
            bar.tick();
            drop(bar);
            std::thread::sleep(TICK);
        }
    });
}

/// A bar; it goes away when dropped.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn add(&self, count: u64) {
        self.0.inc(count);
    }

    /// Tells how many there are.
    pub(crate) fn of(&self, total: u64) {
        self.0.set_length(total);
    }

    /// Runs `print` with the bar out of the way.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
