//! The option `--tuned`.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use tilewright::model::plans::Tuned;
use tilewright_compiler::records::Replay;

use super::note;

/// The option `--tuned`.
#[derive(clap::Args, Clone)]
pub struct TunedOption {
    /// Use the plans of a log that `tilewright tune` wrote, at levels 2 and 3; none: no plans found earlier, not even
    /// those that this program brings along
    #[arg(long = "tuned", value_name = "FILE|none")]
    tuned_log: Option<PathBuf>,
}

impl TunedOption {
    /// Whether it was given.
    pub fn is_given(&self) -> bool {
        self.tuned_log.is_some()
    }

    /// Reads the log.
    pub fn read(&self) -> Result<Tuned> {
        match &self.tuned_log {
            None => Ok(Tuned::Shipped),
            Some(name) if name.as_os_str() == "none" => Ok(Tuned::Nothing),
            Some(path) => Ok(Tuned::read(path)?),
        }
    }

    /// Notes how the records of a given log were used.
    pub fn tell(&self, replay: &Replay, skipped: impl IntoIterator<Item = (String, usize)>) {
        let Some(path) = self.tuned_log.as_ref().filter(|path| path.as_os_str() != "none") else { return };
        let Replay { used, unknown, refused } = replay;
        let all = used + unknown + refused.values().sum::<usize>();
        let mut text = match all {
            0 => format!("{}: no layer uses a record", path.display()),
            _ => format!("{}: {used} of {all} layers use a record, of this log or built in", path.display()),
        };
        for (reason, n) in refused {
            let _ = write!(text, "; {n} cannot: {reason}");
        }
        for (reason, n) in skipped {
            let _ = write!(text, "; {n} line(s) skipped: {reason}");
        }
        note(&text);
    }
}
