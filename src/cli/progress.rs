//! How far long work is, on a terminal; nothing in a pipe.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Work that takes less shows nothing, and lines are not redrawn more often.
const INTERVAL: Duration = Duration::from_millis(200);

/// Says what is being done, in place of what was said before; an empty text wipes it.
pub fn tell(what: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{what}");
        let _ = std::io::stderr().flush();
    }
}

/// A line on standard error that is redrawn.
pub struct Progress {
    what: String,
    total: usize,
    drawn: Instant,
    shown: bool,
    on: bool,
}

impl Progress {
    /// Work of `total` pieces.
    pub fn new(what: &str, total: usize) -> Progress {
        let on = std::io::stderr().is_terminal();
        Progress { what: what.to_string(), total, drawn: Instant::now(), shown: false, on }
    }

    /// `done` pieces are done.
    pub fn at(&mut self, done: usize) {
        if self.on && self.drawn.elapsed() >= INTERVAL {
            self.drawn = Instant::now();
            self.shown = true;
            eprint!("\r{} {done}/{} ", self.what, self.total);
            let _ = std::io::stderr().flush();
        }
    }

    /// Wipes the line.
    pub fn end(&mut self) {
        if self.shown {
            eprint!("\r\x1b[K");
            self.shown = false;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
