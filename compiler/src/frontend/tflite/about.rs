//! Reads the description in a TFLite file: a nested FlatBuffers file in a named buffer (TensorFlow Lite Metadata,
//! `metadata_schema.fbs`), and files in a zip archive appended to the model.

use super::flat::{Result, Table};
use super::schema::{self, TensorInfo, Type};
use crate::frontend::room::Room;
use std::io::{Cursor, Read};
use tilewright_runtime::artifact::{About, Edge, Normalization};

/// The buffer's name.
const NAME: &str = "TFLITE_METADATA";
/// Number of `NormalizationOptions` among the kinds of process units.
const NORMALIZATION: i8 = 1;
/// Number of `TENSOR_AXIS_LABELS` among the kinds of associated files.
const AXIS_LABELS: i8 = 2;
/// Maximum number of bytes to read of a list of names.
const MOST_NAME_BYTES: u64 = 1 << 20;

/// The file's description; as much as can be read of a damaged one.
pub fn about(bytes: &[u8]) -> Option<About> {
    let mut room = Room::of(bytes.len(), super::ROOM);
    let model = schema::read(bytes, &mut room).ok()?.into_iter().next()?;
    let edges = |places: &[usize]| places.iter().map(|&t| edge(&model.tensors[t])).collect::<Vec<_>>();
    let mut found = About { inputs: edges(&model.inputs), outputs: edges(&model.outputs), class_names: Vec::new() };
    if let Ok(Some(description)) = description(bytes) {
        let _ = read(description, bytes, &mut found, &mut room);
    }
    Some(found)
}

/// Scale and zero point as the graph's input or output has them; it is uint8 if the file's is.
fn edge(info: &TensorInfo) -> Edge {
    let quantization = match (&info.quantization, info.ty) {
        (Some(q), Type::I8 | Type::U8) => q.scale.first().zip(q.zero_point.first()),
        _ => None,
    };
    let quantization = quantization.and_then(|(scale, zero)| Some((*scale, i32::try_from(*zero).ok()?)));
    Edge { quantization, ..Edge::default() }
}

/// The description's bytes.
fn description(bytes: &[u8]) -> Result<Option<&[u8]>> {
    let root = Table::root(bytes)?;
    for entry in root.tables(6)? {
        if entry.string(0)? == NAME {
            let buffers = root.tables(4)?;
            let Some(buffer) = buffers.get(entry.u32(1)? as usize) else { return Ok(None) };
            return Ok(Some(buffer.vector::<1>(0)?.raw()));
        }
    }
    Ok(None)
}

fn read(description: &[u8], file: &[u8], found: &mut About, room: &mut Room) -> Result<()> {
    let root = Table::root(description)?;
    let Some(subgraph) = root.tables(3)?.first().copied() else { return Ok(()) };
    for (tensor, edge) in subgraph.tables(2)?.iter().zip(&mut found.inputs) {
        for unit in tensor.tables(4)? {
            if let (NORMALIZATION, Some(options)) = (unit.i8(0)?, unit.table(1)?) {
                let mut floats = |field| -> Result<Vec<f32>> {
                    let numbers = options.vector::<4>(field)?;
                    room.take_for(4 * numbers.len(), "normalization")?;
                    Ok(numbers.words().map(f32::from_le_bytes).collect())
                };
                let (mean, scale) = (floats(0)?, floats(1)?);
                if !mean.is_empty() && !scale.is_empty() && scale.iter().all(|s| s.is_normal()) {
                    edge.normalization = Some(Normalization { mean, scale });
                }
            }
        }
    }
    if let Some(tensor) = subgraph.tables(3)?.first() {
        for labels in tensor.tables(6)? {
            if labels.i8(2)? == AXIS_LABELS {
                found.class_names = packed_names(file, &labels.string(0)?).unwrap_or_default();
            }
        }
    }
    Ok(())
}

/// The lines of a file in the archive appended to the model.
fn packed_names(file: &[u8], name: &str) -> Option<Vec<String>> {
    let mut archive = zip::ZipArchive::new(Cursor::new(file)).ok()?;
    let mut text = String::new();
    archive.by_name(name).ok()?.take(MOST_NAME_BYTES).read_to_string(&mut text).ok()?;
    Some(text.lines().map(|line| line.trim().to_string()).collect())
}
