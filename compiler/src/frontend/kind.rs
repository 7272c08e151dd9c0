//! What a file that is no model looks like, by its first bytes.

/// Files that begin with these bytes.
const BEGINNINGS: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "a picture (PNG)"),
    (b"\xff\xd8\xff", "a picture (JPEG)"),
    (b"GIF8", "a picture (GIF)"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes"),
    (b"GGUF", "a GGUF file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "a program of this system (ELF)"),
    (b"TILEWRGT", "a compiled artifact"),
    (b"TWSTREAM", "an instruction stream"),
];

/// What the bytes look like; nothing where they may be a model of a format without a mark, or anything.
pub(super) fn other(bytes: &[u8]) -> Option<&'static str> {
    if bytes.is_empty() {
        return Some("an empty file");
    }
    if let Some((_, kind)) = BEGINNINGS.iter().find(|(mark, _)| bytes.starts_with(mark)) {
        return Some(kind);
    }
    if bytes.starts_with(b"BM") && bytes.get(6..10) == Some(&[0; 4]) {
        return Some("a picture (BMP)");
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some("a picture (WebP)");
    }
    if bytes.starts_with(b"PK\x03\x04") {
        return Some(zip(bytes));
    }
    if is_safetensors(bytes) {
        return Some("a safetensors file");
    }
    // Protocols 2 to 5 of Python's pickle.
    if bytes[0] == 0x80 && bytes.get(1).is_some_and(|p| (2..=5).contains(p)) {
        return Some("a Python pickle, as PyTorch writes");
    }
    if !is_text(bytes) {
        return None;
    }
    let text = bytes.trim_ascii_start();
    Some(if bytes.starts_with(b"version https://git-lfs") {
        "a pointer of Git LFS, in place of a file that `git lfs pull` fetches"
    } else if text.starts_with(b"<") {
        "an HTML or XML document"
    } else if is_section(text) {
        "a text in sections, such as a configuration of Darknet"
    } else if text.starts_with(b"{") || text.starts_with(b"[") {
        "a JSON text"
    } else {
        "a text"
    })
}

/// Whether a text begins with a line that is a word in brackets.
fn is_section(text: &[u8]) -> bool {
    let line = text.split(|b| *b == b'\n').next().unwrap_or_default().trim_ascii();
    let name = line.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    name.is_some_and(|name| name.first().is_some_and(u8::is_ascii_alphabetic))
}

/// UTF-8 without control characters but those between lines and words.
fn is_text(bytes: &[u8]) -> bool {
    let plain = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t' | '\x0c');
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(plain))
}

fn zip(bytes: &[u8]) -> &'static str {
    let Ok(archive) = zip::ZipArchive::new(std::io::Cursor::new(bytes)) else {
        return "a zip archive that is damaged or cut short";
    };
    let names: Vec<String> = archive.file_names().map(str::to_owned).collect();
    let any = |end: &str| names.iter().any(|name| name.ends_with(end));
    if any("/data.pkl") || any("/constants.pkl") {
        "weights or a TorchScript module of PyTorch; write the module with torch.export.save"
    } else if any("model.weights.h5") {
        "a Keras file"
    } else if !names.is_empty() && names.iter().all(|name| name.ends_with(".npy")) {
        "NumPy arrays (.npz)"
    } else {
        "a zip archive"
    }
}

/// The length of a JSON object, then the object, then data.
fn is_safetensors(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else { return false };
    rest.first() == Some(&b'{') && u64::from_le_bytes(*length) <= rest.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_their_first_bytes() {
        let zipped = |name: &str| {
            let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
            zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.finish().unwrap().into_inner()
        };
        for (bytes, kind) in [
            (&b""[..], "an empty file"),
            (b"# Readme\n\nBMW\n", "a text"),
            (b"BMW builds cars.\n", "a text"),
            (b"BM\x36\0\0\0\0\0\0\0", "a picture (BMP)"),
            (b"<!doctype html>", "an HTML or XML document"),
            (b" {\"a\": 1}", "a JSON text"),
            (b"[\"a\"]\n", "a JSON text"),
            (b"[net]\nbatch=1\n", "a text in sections, such as a configuration of Darknet"),
            (b"\x89PNG\r\n\x1a\n\0\0", "a picture (PNG)"),
            (b"\x80\x02}q\0.", "a Python pickle, as PyTorch writes"),
            (b"\x02\0\0\0\0\0\0\0{}", "a safetensors file"),
            (b"GGUF\x03\0\0\0", "a GGUF file"),
            (
                &zipped("archive/data.pkl"),
                "weights or a TorchScript module of PyTorch; write the module with torch.export.save",
            ),
            (b"PK\x03\x04 and no end", "a zip archive that is damaged or cut short"),
            (&zipped("x.npy"), "NumPy arrays (.npz)"),
            (&zipped("notes"), "a zip archive"),
        ] {
            assert_eq!(other(bytes), Some(kind), "{bytes:?}");
        }
        assert!(other(b"version https://git-lfs.github.com/spec/v1\n").unwrap().contains("git lfs pull"));
        // What may be a message of ONNX, and what nobody knows.
        assert_eq!(other(b"\x08\x08\x12\x07pytorch"), None);
        assert_eq!(other(&[0xff, 0, 0xfe]), None);
    }
}
