//! The parts of TFLite's schema that the importer reads.

use super::flat::{Result, Table};
use super::names::type_name;
use super::sparsity;
use crate::frontend::packed_bits;
use crate::frontend::room::Room;
use std::borrow::Cow;

/// A tensor's element type, in the schema's numbering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    F32,
    F16,
    I32,
    U8,
    I64,
    Bool,
    I8,
    I16,
    U16,
    U32,
    U64,
    F64,
    /// A type that the importer does not read, by its number.
    Other(i8),
}

/// Quantization parameters, with the file's zero points for uint8 tensors.
#[derive(Debug, Clone)]
pub(super) struct Quantization {
    pub scale: Vec<f32>,
    pub zero_point: Vec<i64>,
    pub axis: usize,
}

#[derive(Debug, Clone)]
pub(super) struct TensorInfo<'a> {
    pub name: String,
    pub shape: Vec<usize>,
    /// For each size whether the file leaves it open; `shape` then has a number in its place.
    pub open: Vec<bool>,
    pub ty: Type,
    pub quantization: Option<Quantization>,
    /// Bytes of a constant; a sparse one is expanded.
    pub data: Option<Cow<'a, [u8]>>,
    /// True if its value is kept from one run to the next.
    pub variable: bool,
    /// True if an empty shape means a scalar; files can leave the shape out.
    pub has_rank: bool,
}

impl TensorInfo<'_> {
    /// Whether the file leaves sizes open.
    pub fn is_open(&self) -> bool {
        self.open.contains(&true)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Operator<'a> {
    pub code: i32,
    pub custom: String,
    /// Indices of tensors; `None` for an operand that is left out.
    pub inputs: Vec<Option<usize>>,
    pub outputs: Vec<usize>,
    /// The options; `options_kind` is the number of their table in the schema.
    pub options: Option<Table<'a>>,
    pub options_kind: i8,
}

/// A graph of the file.
#[derive(Debug)]
pub(super) struct Subgraph<'a> {
    pub name: String,
    pub tensors: Vec<TensorInfo<'a>>,
    pub operators: Vec<Operator<'a>>,
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
}

/// Limits that no network reaches; they keep small damaged files from asking for much memory.
const MOST_DIMENSIONS: usize = 8;
const MOST_OPERANDS: usize = 1024;
const MOST_ELEMENTS: usize = 1 << 31;

/// The last version of the schema with the identifier TFL3.
const VERSION: u32 = 3;
/// Number of fields of the tables in the schema; `docs/tflite.md` lists how each is handled.
const TENSOR_FIELDS: usize = 11;
const QUANTIZATION_FIELDS: usize = 7;

/// Reads the file's tables, the model's own graph first; copies are counted against `room`.
pub(super) fn read<'a>(bytes: &'a [u8], room: &mut Room) -> Result<Vec<Subgraph<'a>>> {
    let root = Table::root(bytes)?;
    let version = root.u32(0)?;
    if version > VERSION {
        return Err(format!("its schema version {version} is not supported; the maximum is {VERSION}"));
    }
    let mut codes = Vec::new();
    for t in root.tables(1)? {
        // Old files store the code in the byte, which is 127 if the number does not fit.
        let custom = t.string(1)?;
        room.take_for(custom.len(), "operator codes")?;
        codes.push((t.i32(3)?.max(i32::from(t.i8(0)?)), custom));
    }
    let mut buffers = Vec::new();
    for t in root.tables(4)? {
        buffers.push(buffer(bytes, &t)?);
    }
    let graphs: Vec<Subgraph> =
        root.tables(2)?.iter().map(|t| subgraph(t, &codes, &buffers, room)).collect::<Result<_>>()?;
    if graphs.is_empty() { Err("it has no subgraph".into()) } else { Ok(graphs) }
}

/// Reads a graph, with the file's codes of operators and its buffers.
fn subgraph<'a>(
    subgraph: &Table<'a>,
    codes: &[(i32, String)],
    buffers: &[&'a [u8]],
    room: &mut Room,
) -> Result<Subgraph<'a>> {
    let mut tensors = Vec::new();
    for t in subgraph.tables(0)? {
        tensors.push(tensor(&t, buffers, room)?);
    }
    let place = |w: [u8; 4]| {
        let i = i32::from_le_bytes(w);
        usize::try_from(i).ok().filter(|&i| i < tensors.len()).ok_or_else(|| format!("there is no tensor {i}"))
    };
    let mut operators = Vec::new();
    for t in subgraph.tables(3)? {
        let index = t.u32(0)? as usize;
        let (code, custom) = codes.get(index).cloned().ok_or_else(|| format!("there is no operator code {index}"))?;
        let (inputs, outputs) = (t.vector::<4>(1)?, t.vector::<4>(2)?);
        if inputs.len() > MOST_OPERANDS || outputs.len() > MOST_OPERANDS {
            return Err(format!("an operator has more than {MOST_OPERANDS} operands"));
        }
        let operands = 16 * (inputs.len() + outputs.len());
        room.take_for(operands + custom.len(), "operators")?;
        let optional = |w| if i32::from_le_bytes(w) == -1 { Ok(None) } else { place(w).map(Some) };
        operators.push(Operator {
            code,
            custom,
            inputs: inputs.words().map(optional).collect::<Result<_>>()?,
            outputs: outputs.words().map(place).collect::<Result<_>>()?,
            options: t.table(4)?,
            options_kind: t.i8(3)?,
        });
    }
    Ok(Subgraph {
        name: subgraph.string(4)?,
        inputs: subgraph.vector::<4>(1)?.words().map(place).collect::<Result<_>>()?,
        outputs: subgraph.vector::<4>(2)?.words().map(place).collect::<Result<_>>()?,
        tensors,
        operators,
    })
}

fn tensor<'a>(t: &Table<'a>, buffers: &[&'a [u8]], room: &mut Room) -> Result<TensorInfo<'a>> {
    let name = t.string(3)?;
    room.take_for(name.len(), "tensors")?;
    let dims = t.vector::<4>(0)?;
    if dims.len() > MOST_DIMENSIONS {
        return Err(format!("tensor `{name}` has more than {MOST_DIMENSIONS} dimensions"));
    }
    let size = |w| usize::try_from(i32::from_le_bytes(w)).map_err(|_| format!("tensor `{name}` has a negative size"));
    let shape = dims.words().map(size).collect::<Result<Vec<_>>>()?;
    // Sizes of 0 count as 1, so that the others are still checked.
    let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d.max(1)));
    if count.is_none_or(|n| n > MOST_ELEMENTS) {
        return Err(format!(
            "tensor `{name}` has the shape {shape:?}; more than {MOST_ELEMENTS} elements are not supported"
        ));
    }
    let ty = match t.i8(1)? {
        0 => Type::F32,
        1 => Type::F16,
        2 => Type::I32,
        3 => Type::U8,
        4 => Type::I64,
        6 => Type::Bool,
        7 => Type::I16,
        9 => Type::I8,
        10 => Type::F64,
        12 => Type::U64,
        15 => Type::U32,
        16 => Type::U16,
        other => Type::Other(other),
    };
    let wrong = |reason: String| format!("tensor `{name}`: {reason}");
    t.only_fields_below(TENSOR_FIELDS).map_err(wrong)?;
    if t.u32(10)? != 0 {
        let remedy = "write them into the model";
        return Err(wrong(format!("its data are in another file (external_buffer), which is not supported; {remedy}")));
    }
    let quantization = match t.table(4)? {
        Some(q) => quantization(&q, &name, &shape, room)?,
        None => None,
    };
    let index = t.u32(2)? as usize;
    let data = *buffers.get(index).ok_or_else(|| wrong(format!("there is no buffer {index}")))?;
    // Buffer 0 means that there is none.
    let mut data = (index > 0 && !data.is_empty()).then_some(Cow::Borrowed(data));
    if let Some(sparsity) = t.table(6)?.filter(|_| index > 0) {
        // Nothing is stored if all elements are zero.
        let stored = data.as_deref().unwrap_or(&[]);
        let width = match ty {
            Type::F32 | Type::I32 => 4,
            Type::F16 => 2,
            Type::I8 => 1,
            _ => {
                let found = t.i8(1)?;
                let types = "FLOAT32, FLOAT16, INT32 or INT8";
                return Err(wrong(format!(
                    "it is sparse and of type {}; sparse tensors must be {types}",
                    type_name(found)
                )));
            }
        };
        room.take_for(sparsity::needed(&shape, width), &name)?;
        let dense = sparsity.only_fields_below(3).and_then(|()| sparsity::expand(&sparsity, &shape, width, stored));
        data = Some(Cow::Owned(dense.map_err(|e| wrong(format!("its sparsity tables are damaged: {e}")))?));
    }
    let ty = match (ty, &data) {
        // Constants of 4 bits become bytes of the same values.
        (Type::Other(INT4), Some(packed)) => {
            data = Some(Cow::Owned(fours(packed, &shape).map_err(wrong)?));
            Type::I8
        }
        _ => ty,
    };
    let (variable, has_rank) = (t.i8(5)? != 0, t.i8(8)? != 0);
    let mut open: Vec<bool> = t.vector::<4>(7)?.words().map(|size| i32::from_le_bytes(size) < 0).collect();
    open.resize(shape.len(), false);
    Ok(TensorInfo { name, shape, open, ty, quantization, data, variable, has_rank })
}

/// The number of the type of integers of 4 bits.
const INT4: i8 = 17;

/// The integers of 4 bits as bytes.
fn fours(packed: &[u8], shape: &[usize]) -> Result<Vec<u8>> {
    let count: usize = shape.iter().product();
    if !packed_bits::fill(packed, 4, count) {
        return Err(format!("{} bytes do not fit {count} elements of 4 bits", packed.len()));
    }
    Ok((0..count).map(|i| packed_bits::signed(packed, 4, i).cast_unsigned()).collect())
}

/// A buffer's bytes, which can be outside the tables.
fn buffer<'a>(file: &'a [u8], t: &Table<'a>) -> Result<&'a [u8]> {
    let (offset, size) = (t.u64(1)?, t.u64(2)?);
    if offset <= 1 {
        return Ok(t.vector::<1>(0)?.raw());
    }
    let range = usize::try_from(offset).ok().zip(usize::try_from(offset.saturating_add(size)).ok());
    let found = range.and_then(|(first, end)| file.get(first..end));
    found.ok_or_else(|| format!("a buffer of {size} bytes at offset {offset} passes the end of the file"))
}

fn quantization(q: &Table, name: &str, shape: &[usize], room: &mut Room) -> Result<Option<Quantization>> {
    let wrong = |reason: String| format!("tensor `{name}`: {reason}");
    q.only_fields_below(QUANTIZATION_FIELDS).map_err(wrong)?;
    let details = q.i8(4)?;
    if details != 0 {
        let names = ["CustomQuantization", "BlockwiseQuantization", "MultiAxisQuantization"];
        let found = usize::try_from(details).ok().and_then(|i| names.get(i.checked_sub(1)?));
        let found = found.map_or_else(|| format!("details of kind {details}"), |n| (*n).to_owned());
        return Err(wrong(format!("it is quantized by {found}; use scales and zero points of the tensor")));
    }
    let (scale, zero_point) = (q.vector::<4>(2)?, q.vector::<8>(3)?);
    let most = shape.iter().copied().max().unwrap_or(1).max(1);
    if scale.len() > most || zero_point.len() > most {
        return Err(format!("tensor `{name}` has more scales than elements along any dimension"));
    }
    room.take_for(4 * scale.len() + 8 * scale.len().max(zero_point.len()), name)?;
    if scale.len() == 0 {
        return Ok(None);
    }
    let mut zero_point: Vec<i64> = zero_point.words().map(i64::from_le_bytes).collect();
    if zero_point.is_empty() {
        zero_point = vec![0];
    }
    if zero_point.len() == 1 {
        zero_point.resize(scale.len(), zero_point[0]);
    }
    if zero_point.len() != scale.len() {
        return Err(wrong(format!("it has {} zero points for {} scales", zero_point.len(), scale.len())));
    }
    Ok(Some(Quantization {
        scale: scale.words().map(f32::from_le_bytes).collect(),
        zero_point,
        axis: usize::try_from(q.i32(6)?).map_err(|_| format!("tensor `{name}` has a negative axis"))?,
    }))
}
