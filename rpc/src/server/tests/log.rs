//! The log of the servers of these tests.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

/// The last lines of all servers.
static LINES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());
const MOST: usize = 10_000;

struct Line;

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == MOST {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(bytes).into_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps the lines from now on.
pub(super) fn keep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(|| Line).finish();
        tracing::subscriber::set_global_default(subscriber).expect("nobody else keeps them");
    });
}

/// Waits until a line has all of these texts, which tell it from those of other tests.
pub(super) fn has(texts: &[&str]) {
    let begun = Instant::now();
    let found = || {
        let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().any(|line| texts.iter().all(|text| line.contains(text)))
    };
    while !found() {
        assert!(begun.elapsed() < Duration::from_secs(5), "no line of the log has {texts:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
