//! Talk with the person at the terminal, on standard error: lasting lines, one live line, bars.
//!
//! Where standard error is no terminal, live lines become plain lines and bars become a line every
//! few seconds. Standard output is left to the answers.

use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a long step says how far it is where no bar can be drawn.
const PLAIN_EVERY: Duration = Duration::from_secs(5);

/// The one voice of a command.
pub struct Talk {
    terminal: bool,
    quiet: bool,
    live: RefCell<Option<ProgressBar>>,
    step: RefCell<Option<Step>>,
}

/// See [`Talk::step_guard`].
pub struct StepGuard<'a>(&'a Talk);

impl Drop for StepGuard<'_> {
    fn drop(&mut self) {
        if let Some(bar) = self.0.step.borrow_mut().take().and_then(|step| step.bar) {
            bar.finish_and_clear();
        }
    }
}

/// A long step that reports progress.
struct Step {
    what: String,
    unit: String,
    total: Option<u64>,
    done: u64,
    began: Instant,
    last_said: Instant,
    bar: Option<ProgressBar>,
}

impl Talk {
    /// `quiet` leaves warnings only.
    pub fn new(quiet: bool) -> Talk {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let terminal = std::io::stderr().is_terminal() && !dumb;
        Talk { terminal, quiet, live: RefCell::new(None), step: RefCell::new(None) }
    }

    /// A line that stays.
    pub fn say(&self, line: &str) {
        if !self.quiet {
            self.print(line);
        }
    }

    /// A line that stays, also when quiet.
    pub fn warn(&self, line: &str) {
        self.print(&format!("warning: {line}"));
    }

    /// A line that the next one replaces; where that cannot be done it stays.
    pub fn live(&self, line: &str) {
        if self.quiet {
            return;
        }
        if !self.terminal {
            self.print(line);
            return;
        }
        let mut live = self.live.borrow_mut();
        let bar = live.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(style("{wide_msg}"));
            bar
        });
        bar.set_message(line.to_owned());
    }

    /// A line for the moment, of use only where it can be replaced.
    pub fn passing(&self, line: &str) {
        if self.terminal {
            self.live(line);
        }
    }

    /// Takes the live line away.
    pub fn clear(&self) {
        if let Some(bar) = self.live.borrow_mut().take() {
            bar.finish_and_clear();
        }
    }

    /// Takes away the bar of a step that did not come to its end when the guard goes.
    pub fn step_guard(&self) -> StepGuard<'_> {
        StepGuard(self)
    }

    fn print(&self, line: &str) {
        match &*self.live.borrow() {
            Some(bar) => bar.suspend(|| to_stderr(line)),
            None => to_stderr(line),
        }
    }
}

impl place::Progress for Talk {
    fn begin(&self, what: &str, unit: &str, total: Option<u64>) {
        if self.quiet {
            return;
        }
        self.clear();
        let bar = self.terminal.then(|| {
            let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
            bar.set_style(style(template(unit, total.is_some())));
            bar.set_message(what.to_owned());
            bar
        });
        if bar.is_none() {
            self.print(&format!("{what} ..."));
        }
        let now = Instant::now();
        *self.step.borrow_mut() = Some(Step {
            what: what.to_owned(),
            unit: unit.to_owned(),
            total,
            done: 0,
            began: now,
            last_said: now,
            bar,
        });
    }

    fn advance(&self, done: u64) {
        let mut step = self.step.borrow_mut();
        let Some(step) = step.as_mut() else { return };
        step.done = done;
        if let Some(bar) = &step.bar {
            bar.set_position(done);
        } else if step.last_said.elapsed() >= PLAIN_EVERY {
            step.last_said = Instant::now();
            to_stderr(&step.progress_line());
        }
    }

    fn end(&self) {
        let Some(step) = self.step.borrow_mut().take() else { return };
        if let Some(bar) = &step.bar {
            bar.finish_and_clear();
        }
        to_stderr(&format!("{}, done in {:.1} s", step.progress_line(), step.seconds()));
    }
}

impl Step {
    fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn progress_line(&self) -> String {
        if self.done == 0 {
            return self.what.clone();
        }
        let rate = self.done as f64 / self.seconds().max(0.001);
        let (done, rate) = if self.unit == "bytes" {
            (bytes(self.done as f64), format!("{}/s", bytes(rate)))
        } else {
            (format!("{} {}", self.done, self.unit), format!("{rate:.0} {}/s", self.unit))
        };
        match self.total {
            Some(total) if total > 0 => {
                let share = 100.0 * self.done as f64 / total as f64;
                format!("{}: {done} ({share:.0} %), {rate}", self.what)
            }
            _ => format!("{}: {done}, {rate}", self.what),
        }
    }
}

/// Bytes for people, in binary multiples.
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut scaled = value;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{scaled:.0} B") } else { format!("{scaled:.1} {}", UNITS[unit]) }
}

/// A span for people: `250ms`, `1.5s`, `4s`, `1m02s`, `3h05m`.
pub fn span(duration: Duration) -> String {
    if !duration.is_zero() && duration < Duration::from_secs(1) {
        return format!("{:.0}ms", (duration.as_secs_f64() * 1e3).ceil());
    }
    if duration < Duration::from_secs(10) && duration.subsec_millis() >= 50 {
        return format!("{:.1}s", duration.as_secs_f64());
    }
    let seconds = duration.as_secs_f64().round() as u64;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

fn template(unit: &str, total_known: bool) -> &'static str {
    match (unit, total_known) {
        ("bytes", true) => "{msg} [{wide_bar}] {binary_bytes}/{binary_total_bytes} {eta}",
        ("bytes", false) => "{msg} {spinner} {binary_bytes} {elapsed}",
        (_, true) => "{msg} [{wide_bar}] {human_pos}/{human_len} {per_sec} {eta}",
        (_, false) => "{msg} {spinner} {human_pos} {elapsed}",
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn to_stderr(line: &str) {
    // Talk that nobody can hear must not end a run.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_span_is_told_as_none() {
        let told = |ms: u64| span(Duration::from_millis(ms));
        let spans = [0, 1, 250, 1_000, 1_540, 9_960, 62_000, 11_100_000].map(told);
        assert_eq!(spans, ["0s", "1ms", "250ms", "1s", "1.5s", "10.0s", "1m02s", "3h05m"]);
        assert_eq!(span(Duration::from_micros(3)), "1ms");
    }
}
