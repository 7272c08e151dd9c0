//! Writes a shell with its core to files.

use std::path::{Path, PathBuf};

use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::config_package;
use tilewright_hw::rtl::SOURCES;
use tilewright_shell::{ShellConfig, generate};

/// The crate's folder.
pub fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A configuration for the smallest parts.
pub fn small() -> HwConfig {
    HwConfig::parse("small.toml", include_str!("../small.toml")).expect("it is legal")
}

/// Writes a shell with its core and returns the files, packages first, the shell last.
pub fn write(config: &HwConfig, shell: &ShellConfig, dir: &Path) -> Vec<PathBuf> {
    let mut texts = vec![("tw_cfg_pkg.sv", config_package(config))];
    texts.extend(SOURCES.iter().map(|(name, text)| (name.rsplit('/').next().unwrap_or(name), text.to_string())));
    texts.push(("tw_shell.v", generate(config, shell).expect("the shell is legal")));
    let mut files = Vec::new();
    for (name, text) in texts {
        let path = dir.join(name);
        std::fs::write(&path, text).expect("the folder can be written");
        if !name.ends_with(".svh") {
            files.push(path);
        }
    }
    files
}
