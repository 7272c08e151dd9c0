//! How far long work is and how long it will take, on a terminal; nothing in a pipe or where quiet is asked for.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Whether results and errors alone are told.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Tells results and errors alone from here on.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether results and errors alone are told.
fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Says what was done, on standard error.
pub fn say(text: &str) {
    if !is_quiet() {
        eprintln!("{text}");
    }
}

/// Says what a person may want to know beside the result, on standard error.
pub fn note(text: &str) {
    if !is_quiet() {
        let bold = anstyle::Style::new().bold();
        anstream::eprintln!("{bold}note:{bold:#} {text}");
    }
}

fn shown() -> bool {
    std::io::stderr().is_terminal() && !is_quiet()
}

/// Says what is being done, in place of what was said before; an empty text wipes it.
pub fn tell(what: &str) {
    if shown() {
        eprint!("\r\x1b[K{what}");
        let _ = std::io::stderr().flush();
    }
}

/// A line on standard error that is redrawn: what is done, how much of it, and the time that is left.
pub struct Progress {
    bar: ProgressBar,
    what: String,
}

impl Progress {
    /// Work of `total` pieces.
    pub fn new(what: &str, total: usize) -> Progress {
        // A few times a second, and nothing of work that is done before.
        let target = if shown() { ProgressDrawTarget::stderr_with_hz(5) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:20} {pos}/{len} {elapsed} eta {eta}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_string());
        if shown() {
            // The times go on while a piece takes long.
            bar.enable_steady_tick(Duration::from_secs(1));
        }
        Progress { bar, what: what.to_string() }
    }

    /// `done` pieces are done.
    pub fn at(&self, done: usize) {
        self.bar.set_position(done as u64);
    }

    /// What comes next, with the pieces done and all that there are.
    pub fn step(&self, what: &str, done: usize, all: usize) {
        if self.bar.length() != Some(all as u64) {
            self.bar.set_length(all as u64);
        }
        self.bar.set_message(format!("{}: {what}", self.what));
        self.at(done);
    }

    /// Wipes the line.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
