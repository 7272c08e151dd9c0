//! Progress and remaining time of long work, on a terminal; nothing in a pipe or with `--quiet`.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Whether only results and errors are printed.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on prints only results and errors.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether only results and errors are printed.
fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints what was done, on standard error.
pub fn say(text: &str) {
    if !is_quiet() {
        eprintln!("{text}");
    }
}

/// Prints a note in addition to the result, on standard error.
pub fn note(text: &str) {
    if !is_quiet() {
        let bold = anstyle::Style::new().bold();
        anstream::eprintln!("{bold}note:{bold:#} {text}");
    }
}

fn shown() -> bool {
    std::io::stderr().is_terminal() && !is_quiet()
}

/// Shows the current activity on a terminal, replacing the previous one; an empty text clears the line.
pub fn tell(what: &str) {
    if shown() {
        eprint!("\r\x1b[K{what}");
        let _ = std::io::stderr().flush();
    }
}

/// A progress line on standard error: activity, pieces done, elapsed and remaining time.
pub struct Progress {
    bar: ProgressBar,
    what: String,
}

impl Progress {
    /// Starts a progress line for `total` pieces of work.
    pub fn new(what: &str, total: usize) -> Progress {
        // Redraws a few times a second; work that finishes sooner shows nothing.
        let target = if shown() { ProgressDrawTarget::stderr_with_hz(5) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:20} {pos}/{len} {elapsed} eta {eta}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_string());
        if shown() {
            // The times keep updating during a long piece.
            bar.enable_steady_tick(Duration::from_secs(1));
        }
        Progress { bar, what: what.to_string() }
    }

    /// Sets the number of pieces done.
    pub fn at(&self, done: usize) {
        self.bar.set_position(done as u64);
    }

    /// Sets the next activity, the number of pieces done and the total.
    pub fn step(&self, what: &str, done: usize, all: usize) {
        if self.bar.length() != Some(all as u64) {
            self.bar.set_length(all as u64);
        }
        self.bar.set_message(format!("{}: {what}", self.what));
        self.at(done);
    }

    /// Clears the line.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
