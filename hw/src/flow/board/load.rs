//! Reads boards from their folders.

use super::Board;
use super::check::check_text;
use crate::flow::FlowError;
use include_dir::{Dir, include_dir};
use std::path::{Path, PathBuf};

pub(super) static BOARDS: Dir = include_dir!("$CARGO_MANIFEST_DIR/boards");
pub(super) const FILE: &str = "board.toml";

impl Board {
    /// Returns the names of the boards that are compiled in, sorted.
    pub fn names() -> Vec<String> {
        let mut names: Vec<String> = BOARDS.dirs().map(|dir| dir.path().display().to_string()).collect();
        names.sort();
        names
    }

    /// Reads a board by its name, or by the path of its folder or file. A path has a separator in it, or is `.` or
    /// `..`.
    ///
    /// # Errors
    /// [`FlowError::UnknownBoard`], [`FlowError::Board`], [`FlowError::Io`].
    pub fn load(name_or_path: &str) -> Result<Board, FlowError> {
        // A word without a separator is a name, even if the current folder has a folder of that name.
        let is_path = name_or_path.contains(std::path::MAIN_SEPARATOR) || matches!(name_or_path, "." | "..");
        if is_path {
            let given = Path::new(name_or_path);
            let folder = if given.ends_with(FILE) { given.parent().unwrap_or(given) } else { given };
            let file = folder.join(FILE);
            let text = std::fs::read_to_string(&file).map_err(|error| FlowError::io(&file, &error))?;
            // `.` and `..` become the names of their folders.
            let whole = std::fs::canonicalize(folder).map_err(|error| FlowError::io(&file, &error))?;
            let Some(name) = whole.file_name().map(|name| name.to_string_lossy().into_owned()) else {
                let reason = "a board in the root of the file system has no name; put it into a folder".into();
                return Err(FlowError::Board { file: file.display().to_string(), reason });
            };
            let board = Board::parse(&name, &file.display().to_string(), &text)?;
            return Ok(Board { folder: Some(folder.into()), ..board });
        }
        let file = format!("{name_or_path}/{FILE}");
        match BOARDS.get_file(&file).and_then(|file| file.contents_utf8()) {
            Some(text) => Board::parse(name_or_path, &file, text),
            None => Err(FlowError::UnknownBoard { name: name_or_path.into(), boards: Board::names() }),
        }
    }

    /// Parses and checks a board. `file` is its name in errors.
    ///
    /// # Errors
    /// [`FlowError::Board`].
    pub fn parse(name: &str, file: &str, text: &str) -> Result<Board, FlowError> {
        let bad = |reason: String| FlowError::Board { file: file.into(), reason };
        let board: Board = toml::from_str(text).map_err(|error| bad(error.to_string()))?;
        let values: toml::Table = toml::from_str(text).map_err(|error| bad(error.to_string()))?;
        check_text("", &toml::Value::Table(values)).map_err(bad)?;
        let board = Board { name: name.into(), ..board };
        board.check().map_err(bad)?;
        Ok(board)
    }

    /// Returns the path of its file, for errors.
    pub(super) fn file(&self) -> String {
        self.folder.as_ref().unwrap_or(&PathBuf::from(&self.name)).join(FILE).display().to_string()
    }

    /// Returns the same board with its link of another kind as `host`.
    ///
    /// # Errors
    /// [`FlowError::Board`] if it has no link of this kind. The error lists the kinds that it has.
    pub fn with_host(&self, kind: &str) -> Result<Board, FlowError> {
        let found = self.all_hosts().find(|(_, host)| host.kind() == kind);
        let Some((_, host)) = found else {
            let kinds: Vec<&str> = self.all_hosts().map(|(_, host)| host.kind()).collect();
            let reason = format!("it has no host of kind {kind}; use {}", kinds.join(" or "));
            return Err(FlowError::Board { file: self.file(), reason });
        };
        let others = self.all_hosts().filter(|(_, other)| other.kind() != kind).map(|(_, other)| other.clone());
        Ok(Board { host: host.clone(), hosts: others.collect(), ..self.clone() })
    }
}
