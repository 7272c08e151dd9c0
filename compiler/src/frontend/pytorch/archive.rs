//! The archive that `torch.export.save` writes: a zip with the program as JSON, and the weights.
//!
//! Up to torch 2.7, weights are a pickle in a zip of its own. torch 2.8 puts that into the present layout, and later versions
//! store the bytes of each weight as they are.

use super::pickle;
use super::schema::{Payloads, TensorMeta};
use crate::frontend::room::Room;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{Cursor, Read};
use zip::{CompressionMethod, ZipArchive};

/// The program, in archives of torch up to 2.7.
const OLD_PROGRAM: &str = "serialized_exported_program.json";

/// A zip file whose entries are read from memory.
struct Zip<'b> {
    bytes: &'b [u8],
    entries: ZipArchive<Cursor<&'b [u8]>>,
    places: HashMap<String, usize>,
}

impl<'b> Zip<'b> {
    /// Lists the entries. Names that lead outside the archive are refused, though nothing is written.
    fn open(bytes: &'b [u8]) -> Result<Zip<'b>, String> {
        let mut entries = ZipArchive::new(Cursor::new(bytes)).map_err(|e| format!("its archive is damaged: {e}"))?;
        let mut places = HashMap::new();
        for i in 0..entries.len() {
            let entry = entries.by_index_raw(i).map_err(|e| format!("its archive is damaged: {e}"))?;
            if entry.enclosed_name().is_none() {
                return Err(format!("its entry `{}` leads outside the archive", entry.name()));
            }
            places.insert(entry.name().to_owned(), i);
        }
        Ok(Zip { bytes, entries, places })
    }

    fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// The bytes of an entry: those of the file if they are stored as they are.
    fn read(&mut self, name: &str, room: &mut Room) -> Result<Cow<'b, [u8]>, String> {
        let place = *self.places.get(name).ok_or_else(|| format!("its archive has no entry `{name}`"))?;
        let damaged = |e: String| format!("its entry `{name}` is damaged: {e}");
        let mut entry = self.entries.by_index(place).map_err(|e| damaged(e.to_string()))?;
        let size = usize::try_from(entry.size()).map_err(|e| damaged(e.to_string()))?;
        if entry.compression() == CompressionMethod::Stored {
            let start = usize::try_from(entry.data_start()).ok();
            let end = start.and_then(|start| start.checked_add(size));
            let found = start.zip(end).and_then(|(start, end)| self.bytes.get(start..end));
            return Ok(Cow::Borrowed(found.ok_or_else(|| damaged("it passes the end of the file".into()))?));
        }
        room.take_for(size, name)?;
        let mut all = Vec::new();
        entry.by_ref().take(size as u64).read_to_end(&mut all).map_err(|e| damaged(e.to_string()))?;
        if all.len() == size { Ok(Cow::Owned(all)) } else { Err(damaged("it is too short".into())) }
    }
}

/// Where the bytes of a tensor are, and what tensor they are.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    /// Entry of the archive.
    entry: String,
    /// The zip within the archive that has the entry, if it is not the archive itself.
    within: Option<String>,
    pub meta: TensorMeta,
}

/// An archive that is open.
pub(super) struct Archive<'b> {
    zip: Zip<'b>,
    /// The zips within, which hold weights.
    inner: HashMap<String, Cow<'b, [u8]>>,
    /// Folder of all entries, with a slash at its end, or nothing.
    root: String,
    is_old: bool,
    /// The program's name.
    model: String,
    /// Whether numbers are big-endian.
    is_big_endian: bool,
}

/// Whether bytes are such an archive.
pub(super) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") && Zip::open(bytes).is_ok_and(|zip| zip.has(OLD_PROGRAM) || root(&zip).is_some())
}

/// The folder of the present layout's entries.
fn root(zip: &Zip) -> Option<String> {
    let of = |name: &String| name.strip_suffix("archive_format").map(str::to_owned);
    let folders = zip.places.keys().filter_map(of).filter(|root| root.is_empty() || root.ends_with('/'));
    // The outermost one, whatever other files are in the archive.
    folders.min_by_key(|root| (root.matches('/').count(), root.clone()))
}

impl<'b> Archive<'b> {
    pub fn open(bytes: &'b [u8], room: &mut Room) -> Result<Archive<'b>, String> {
        let mut zip = Zip::open(bytes)?;
        let is_old = zip.has(OLD_PROGRAM);
        let root = if is_old { String::new() } else { root(&zip).ok_or("it has no entry `archive_format`")? };
        let order = format!("{root}byteorder");
        let is_big_endian = zip.has(&order) && zip.read(&order, room)?.starts_with(b"big");
        Ok(Archive { zip, inner: HashMap::new(), root, is_old, model: "model".into(), is_big_endian })
    }

    /// The program's text.
    pub fn program(&mut self, room: &mut Room) -> Result<Cow<'b, [u8]>, String> {
        if self.is_old {
            return self.zip.read(OLD_PROGRAM, room);
        }
        let folder = format!("{}models/", self.root);
        let is_program = |name: &&String| name.starts_with(&folder) && name.ends_with(".json");
        let mut names: Vec<String> = self.zip.places.keys().filter(is_program).cloned().collect();
        names.sort();
        match names.as_slice() {
            [one] => {
                let model = one.strip_prefix(&folder).and_then(|name| name.strip_suffix(".json"));
                self.model = model.unwrap_or("model").to_owned();
                self.zip.read(one, room)
            }
            [] => Err("it has no program: no entry in `models/`".into()),
            many => Err(format!("it has {} programs ({}); save one", many.len(), many.join(", "))),
        }
    }

    /// The weights (parameters and buffers) and the constants, by name.
    pub fn payloads(&mut self, room: &mut Room) -> Result<[HashMap<String, Stored>; 2], String> {
        if self.is_old {
            let weights = self.pickled("serialized_state_dict.pt", room)?;
            return Ok([weights, self.pickled("serialized_constants.pt", room)?]);
        }
        Ok([self.listed("weights", room)?, self.listed("constants", room)?])
    }

    /// The tensors that a list of the present layout names.
    fn listed(&mut self, kind: &str, room: &mut Room) -> Result<HashMap<String, Stored>, String> {
        let folder = format!("{}data/{kind}/", self.root);
        let pickled = format!("{folder}{}.pt", self.model);
        if self.zip.has(&pickled) {
            return self.pickled(&pickled, room);
        }
        let list = format!("{folder}{}_{kind}_config.json", self.model);
        if !self.zip.has(&list) {
            return Ok(HashMap::new());
        }
        let text = self.zip.read(&list, room)?;
        let list: Payloads = serde_json::from_slice(&text).map_err(|e| format!("its list `{list}` is damaged: {e}"))?;
        let mut all = HashMap::new();
        for (name, payload) in list.config {
            // What is not a tensor is refused where it is used.
            let Some(meta) = payload.tensor_meta.filter(|_| !payload.use_pickle) else { continue };
            all.insert(name, Stored { entry: format!("{folder}{}", payload.path_name), within: None, meta });
        }
        Ok(all)
    }

    /// The tensors of a pickle in a zip within the archive.
    fn pickled(&mut self, name: &str, room: &mut Room) -> Result<HashMap<String, Stored>, String> {
        if !self.zip.has(name) {
            return Ok(HashMap::new());
        }
        let bytes = self.zip.read(name, room)?;
        if bytes.is_empty() {
            return Ok(HashMap::new());
        }
        let within = |e: String| format!("its entry `{name}`: {e}");
        let mut zip = Zip::open(&bytes).map_err(within)?;
        let of = |name: &String| name.strip_suffix("data.pkl").map(str::to_owned);
        let root = zip.places.keys().find_map(of).ok_or_else(|| within("it has no `data.pkl`".into()))?;
        let text = zip.read(&format!("{root}data.pkl"), room).map_err(within)?;
        let tensors = pickle::tensors(&text, room).map_err(within)?;
        let stored = |(key, (storage, meta))| {
            (key, Stored { entry: format!("{root}data/{storage}"), within: Some(name.to_owned()), meta })
        };
        let all = tensors.into_iter().map(stored).collect();
        self.inner.insert(name.to_owned(), bytes);
        Ok(all)
    }

    /// Reads the storage of a tensor, little-endian.
    pub fn storage(&mut self, of: &Stored, room: &mut Room) -> Result<Cow<'_, [u8]>, String> {
        let bytes: Cow<[u8]> = match &of.within {
            None => self.zip.read(&of.entry, room)?,
            Some(name) => {
                let inner = self.inner.get(name).ok_or_else(|| format!("its archive has no entry `{name}`"))?;
                Zip::open(inner)?.read(&of.entry, room)?
            }
        };
        let width = of.meta.dtype.size_bytes();
        if !self.is_big_endian || width == 1 {
            return Ok(bytes);
        }
        room.take_for(bytes.len(), &of.entry)?;
        let mut bytes = bytes.into_owned();
        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        Ok(Cow::Owned(bytes))
    }
}
