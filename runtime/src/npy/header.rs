//! The header of a `.npy` file: magic, version, length, and a Python dictionary of three known keys.

use crate::tensor::DType;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Data starts at a multiple of this many bytes.
const ALIGN: usize = 64;
/// Bytes up to and including the header's length.
pub(super) const FIXED: usize = 12;
/// The longest header that is read, far longer than that of any array of numbers.
const MAX_HEADER: usize = 1 << 16;
/// More axes than NumPy allows.
const MAX_AXES: usize = 64;

/// Contents of the header.
pub(super) struct Header {
    pub dtype: DType,
    pub big_endian: bool,
    pub fortran_order: bool,
    pub shape: Vec<usize>,
}

pub(super) fn encode(dtype: DType, shape: &[usize]) -> Vec<u8> {
    let axes: String = shape.iter().map(|axis| format!("{axis}, ")).collect();
    let axes = if shape.len() > 1 { axes.trim_end_matches(", ") } else { axes.trim_end() };
    let mut text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({axes}), }}", dtype.to_npy());
    let fixed = MAGIC.len() + 4;
    while !(fixed + text.len() + 1).is_multiple_of(ALIGN) {
        text.push(' ');
    }
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&[1, 0]);
    bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// Offset of the data, from the first [`FIXED`] bytes.
pub(super) fn data_start(bytes: &[u8]) -> Result<usize, String> {
    let (len, start) = extent(bytes)?;
    Ok(start + len)
}

/// Length of the header's text, and its offset.
fn extent(bytes: &[u8]) -> Result<(usize, usize), String> {
    if !bytes.starts_with(MAGIC) {
        return Err("it does not start with NumPy's magic bytes".to_string());
    }
    let cut = || "it ends inside its header".to_string();
    let major = *bytes.get(6).ok_or_else(cut)?;
    let (len, start) = match major {
        1 => (usize::from(u16::from_le_bytes([*bytes.get(8).ok_or_else(cut)?, *bytes.get(9).ok_or_else(cut)?])), 10),
        2 | 3 => {
            let field: [u8; 4] = bytes.get(8..12).ok_or_else(cut)?.try_into().map_err(|_| cut())?;
            (u32::from_le_bytes(field) as usize, 12)
        }
        other => return Err(format!("its format version is {other}, but only 1 to 3 are supported")),
    };
    if len > MAX_HEADER {
        return Err(format!("its header has {len} bytes, more than {MAX_HEADER}"));
    }
    Ok((len, start))
}

pub(super) fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), String> {
    let (len, start) = extent(bytes)?;
    let text = bytes.get(start..start + len).ok_or("it ends inside its header")?;
    let text = std::str::from_utf8(text).map_err(|_| "its header is not text".to_string())?;
    Ok((parse_dictionary(text)?, &bytes[start + len..]))
}

fn parse_dictionary(text: &str) -> Result<Header, String> {
    let value = |key: &str| -> Result<&str, String> {
        let quoted = format!("'{key}':");
        let at = text.find(&quoted).ok_or_else(|| format!("its header has no {key}"))?;
        Ok(text[at + quoted.len()..].trim_start())
    };
    let descr = value("descr")?;
    let Some(descr) = descr.strip_prefix('\'').and_then(|rest| rest.split('\'').next()) else {
        return Err("its elements are records, but must be numbers".to_string());
    };
    let mut letters = descr.chars();
    let order = letters.next().unwrap_or(' ');
    let kind = letters.next().unwrap_or(' ');
    let dtype = letters
        .as_str()
        .parse()
        .ok()
        .filter(|_| "<>|=".contains(order))
        // NumPy writes types that it does not know, such as bfloat16 and 8-bit floats, as their bytes.
        .and_then(|size| match (kind, size) {
            ('V' | 'f', 1) => Some(DType::U8),
            ('V', 2) => Some(DType::U16),
            _ => DType::from_kind(kind, size),
        })
        .ok_or_else(|| format!("its element type is '{descr}', but must be an integer, a float or bool"))?;
    let fortran_order = match value("fortran_order")? {
        v if v.starts_with("True") => true,
        v if v.starts_with("False") => false,
        _ => return Err("its fortran_order is neither True nor False".to_string()),
    };
    let shape = value("shape")?;
    let axes = shape.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(axes, _)| axes);
    let axes = axes.ok_or("its shape is not a tuple")?;
    let shape = axes
        .split(',')
        .map(str::trim)
        .filter(|axis| !axis.is_empty())
        .map(|axis| axis.parse().map_err(|_| format!("its shape has the axis '{axis}'")))
        .collect::<Result<Vec<usize>, String>>()?;
    if shape.len() > MAX_AXES {
        return Err(format!("it has {} axes, more than {MAX_AXES}", shape.len()));
    }
    Ok(Header { dtype, big_endian: order == '>', fortran_order, shape })
}
