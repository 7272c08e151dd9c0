//! `completions` and `manual`: completion scripts and man pages, generated from the argument definitions.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap_complete::Shell;
use tilewright_runtime::files;

use super::{Verdict, write_or_print};

/// Arguments of `completions`.
#[derive(clap::Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Prints the completion script for a command line.
    pub fn run(self, mut of: clap::Command) -> Result<Verdict> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut of, "tilewright", &mut text);
        write_or_print(None, &text)?;
        Ok(Verdict::Fine)
    }
}

/// Arguments of `manual`.
#[derive(clap::Args)]
pub struct Manual {
    /// Folder for tilewright.1 and a page for each command; created if missing
    folder: PathBuf,
}

impl Manual {
    /// Writes the man pages of a command line.
    pub fn run(self, command: &clap::Command) -> Result<Verdict> {
        let at = || format!("cannot write to {}", self.folder.display());
        std::fs::create_dir_all(&self.folder).with_context(at)?;
        let mut pages = vec![(self.folder.join("tilewright.1"), page(command.clone())?)];
        for sub in command.get_subcommands() {
            // The title of a man page must be one word.
            let name: &'static str = Box::leak(format!("tilewright-{}", sub.get_name()).into_boxed_str());
            pages.push((self.folder.join(format!("{name}.1")), page(sub.clone().name(name))?));
        }
        files::write_together(&pages)
            .map_err(|(path, error)| anyhow::Error::new(error).context(format!("cannot write {}", path.display())))?;
        write_or_print(None, format!("{}: {} pages\n", self.folder.display(), pages.len()).as_bytes())?;
        Ok(Verdict::Fine)
    }
}

fn page(command: clap::Command) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok(text)
}
