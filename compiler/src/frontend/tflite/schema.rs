//! The parts of TFLite's schema that the importer reads.

use super::flat::{Result, Table};

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
    /// One that the importer does not read, by its number.
    Other(i8),
}

/// Quantisation parameters; uint8 tensors keep the file's zero points here.
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
    pub ty: Type,
    pub quantization: Option<Quantization>,
    /// Bytes of a constant.
    pub data: Option<&'a [u8]>,
}

#[derive(Debug, Clone)]
pub(super) struct Operator<'a> {
    pub code: i32,
    pub custom: String,
    /// Places of tensors, none for an operand left out.
    pub inputs: Vec<Option<usize>>,
    pub outputs: Vec<usize>,
    pub options: Option<Table<'a>>,
}

#[derive(Debug)]
pub(super) struct Model<'a> {
    pub name: String,
    pub tensors: Vec<TensorInfo<'a>>,
    pub operators: Vec<Operator<'a>>,
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
}

/// More dimensions, operands or parameters than any network has; keeps small damaged files from asking for much memory.
const MOST_DIMENSIONS: usize = 8;
const MOST_OPERANDS: usize = 1024;
const MOST_ELEMENTS: usize = 1 << 31;

/// Bytes that the import of a file may still make. Of many places in a file that point to one table each becomes a copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room(usize);

impl Room {
    /// Sixteen times the file's bytes, and some more, for what is made of shapes.
    pub fn of(file: &[u8]) -> Room {
        Room(file.len().saturating_mul(16).saturating_add(32 << 20))
    }

    /// Takes bytes of it.
    ///
    /// # Errors
    /// Where there are not so many, naming what needs them.
    pub fn take(&mut self, bytes: usize, what: &str) -> Result<()> {
        let left = self.0.checked_sub(bytes);
        self.0 = left.ok_or_else(|| format!("`{what}` needs {bytes} bytes, for which the file is too small"))?;
        Ok(())
    }
}

/// The file's tables; what is copied of them is taken from `room`.
pub(super) fn read<'a>(bytes: &'a [u8], room: &mut Room) -> Result<Model<'a>> {
    let root = Table::root(bytes)?;
    let mut codes = Vec::new();
    for t in root.tables(1)? {
        // The byte holds the codes of old files, and 127 where the number does not fit.
        let custom = t.string(1)?;
        room.take(custom.len(), "operator codes")?;
        codes.push((t.i32(3)?.max(i32::from(t.i8(0)?)), custom));
    }
    let mut buffers = Vec::new();
    for t in root.tables(4)? {
        if t.u64(1)? > 1 {
            return Err("its constants lie behind the model, which this reader does not take".into());
        }
        buffers.push(t.vector::<1>(0)?.raw());
    }
    let subgraph = *root.tables(2)?.first().ok_or("it has no subgraph")?;
    let mut tensors = Vec::new();
    for t in subgraph.tables(0)? {
        tensors.push(tensor(&t, &buffers, room)?);
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
        room.take(operands + custom.len(), "operators")?;
        let optional = |w| if i32::from_le_bytes(w) == -1 { Ok(None) } else { place(w).map(Some) };
        operators.push(Operator {
            code,
            custom,
            inputs: inputs.words().map(optional).collect::<Result<_>>()?,
            outputs: outputs.words().map(place).collect::<Result<_>>()?,
            options: t.table(4)?,
        });
    }
    Ok(Model {
        name: subgraph.string(4)?,
        inputs: subgraph.vector::<4>(1)?.words().map(place).collect::<Result<_>>()?,
        outputs: subgraph.vector::<4>(2)?.words().map(place).collect::<Result<_>>()?,
        tensors,
        operators,
    })
}

fn tensor<'a>(t: &Table<'a>, buffers: &[&'a [u8]], room: &mut Room) -> Result<TensorInfo<'a>> {
    let name = t.string(3)?;
    room.take(name.len(), "tensors")?;
    let dims = t.vector::<4>(0)?;
    if dims.len() > MOST_DIMENSIONS {
        return Err(format!("tensor `{name}` has more than {MOST_DIMENSIONS} dimensions"));
    }
    let size = |w| usize::try_from(i32::from_le_bytes(w)).map_err(|_| format!("tensor `{name}` has a negative size"));
    let shape = dims.words().map(size).collect::<Result<Vec<_>>>()?;
    // Sizes of 0 do not excuse the others.
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
        9 => Type::I8,
        other => Type::Other(other),
    };
    let index = t.u32(2)? as usize;
    let data = buffers.get(index).ok_or_else(|| format!("tensor `{name}`: there is no buffer {index}"))?;
    let mut quantization = None;
    if let Some(q) = t.table(4)? {
        let (scale, zero_point) = (q.vector::<4>(2)?, q.vector::<8>(3)?);
        let most = shape.iter().copied().max().unwrap_or(1).max(1);
        if scale.len() > most || zero_point.len() > most {
            return Err(format!("tensor `{name}` has more scales than elements along any dimension"));
        }
        room.take(4 * scale.len() + 8 * scale.len().max(zero_point.len()), &name)?;
        if scale.len() > 0 {
            let mut zero_point: Vec<i64> = zero_point.words().map(i64::from_le_bytes).collect();
            if zero_point.is_empty() {
                zero_point = vec![0];
            }
            if zero_point.len() == 1 {
                zero_point.resize(scale.len(), zero_point[0]);
            }
            quantization = Some(Quantization {
                scale: scale.words().map(f32::from_le_bytes).collect(),
                zero_point,
                axis: usize::try_from(q.i32(6)?).map_err(|_| format!("tensor `{name}` has a negative axis"))?,
            });
        }
    }
    let data = (!data.is_empty()).then_some(*data);
    Ok(TensorInfo { name, shape, ty, quantization, data })
}

/// The schema's name of an element type that the importer does not read.
pub(super) fn type_name(code: i8) -> String {
    let names = [
        (5, "STRING"),
        (7, "INT16"),
        (8, "COMPLEX64"),
        (10, "FLOAT64"),
        (11, "COMPLEX128"),
        (12, "UINT64"),
        (13, "RESOURCE"),
        (14, "VARIANT"),
        (15, "UINT32"),
        (16, "UINT16"),
        (17, "INT4"),
    ];
    names.iter().find(|n| n.0 == code).map_or_else(|| format!("number {code}"), |n| n.1.to_owned())
}

/// Names of the schema's operators by their code.
pub(super) fn operator_name(code: i32, custom: &str) -> String {
    if code == 32 {
        return format!("CUSTOM `{custom}`");
    }
    let name = usize::try_from(code).ok().and_then(|i| NAMES.get(i));
    name.map_or_else(|| format!("operator number {code}"), |n| (*n).to_owned())
}

const NAMES: &[&str] = &[
    "ADD",
    "AVERAGE_POOL_2D",
    "CONCATENATION",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "DEPTH_TO_SPACE",
    "DEQUANTIZE",
    "EMBEDDING_LOOKUP",
    "FLOOR",
    "FULLY_CONNECTED",
    "HASHTABLE_LOOKUP",
    "L2_NORMALIZATION",
    "L2_POOL_2D",
    "LOCAL_RESPONSE_NORMALIZATION",
    "LOGISTIC",
    "LSH_PROJECTION",
    "LSTM",
    "MAX_POOL_2D",
    "MUL",
    "RELU",
    "RELU_N1_TO_1",
    "RELU6",
    "RESHAPE",
    "RESIZE_BILINEAR",
    "RNN",
    "SOFTMAX",
    "SPACE_TO_DEPTH",
    "SVDF",
    "TANH",
    "CONCAT_EMBEDDINGS",
    "SKIP_GRAM",
    "CALL",
    "CUSTOM",
    "EMBEDDING_LOOKUP_SPARSE",
    "PAD",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
    "GATHER",
    "BATCH_TO_SPACE_ND",
    "SPACE_TO_BATCH_ND",
    "TRANSPOSE",
    "MEAN",
    "SUB",
    "DIV",
    "SQUEEZE",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "STRIDED_SLICE",
    "BIDIRECTIONAL_SEQUENCE_RNN",
    "EXP",
    "TOPK_V2",
    "SPLIT",
    "LOG_SOFTMAX",
    "DELEGATE",
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    "CAST",
    "PRELU",
    "MAXIMUM",
    "ARG_MAX",
    "MINIMUM",
    "LESS",
    "NEG",
    "PADV2",
    "GREATER",
    "GREATER_EQUAL",
    "LESS_EQUAL",
    "SELECT",
    "SLICE",
    "SIN",
    "TRANSPOSE_CONV",
    "SPARSE_TO_DENSE",
    "TILE",
    "EXPAND_DIMS",
    "EQUAL",
    "NOT_EQUAL",
    "LOG",
    "SUM",
    "SQRT",
    "RSQRT",
    "SHAPE",
    "POW",
    "ARG_MIN",
    "FAKE_QUANT",
    "REDUCE_PROD",
    "REDUCE_MAX",
    "PACK",
    "LOGICAL_OR",
    "ONE_HOT",
    "LOGICAL_AND",
    "LOGICAL_NOT",
    "UNPACK",
    "REDUCE_MIN",
    "FLOOR_DIV",
    "REDUCE_ANY",
    "SQUARE",
    "ZEROS_LIKE",
    "FILL",
    "FLOOR_MOD",
    "RANGE",
    "RESIZE_NEAREST_NEIGHBOR",
    "LEAKY_RELU",
    "SQUARED_DIFFERENCE",
    "MIRROR_PAD",
    "ABS",
    "SPLIT_V",
    "UNIQUE",
    "CEIL",
    "REVERSE_V2",
    "ADD_N",
    "GATHER_ND",
    "COS",
    "WHERE",
    "RANK",
    "ELU",
    "REVERSE_SEQUENCE",
    "MATRIX_DIAG",
    "QUANTIZE",
    "MATRIX_SET_DIAG",
    "ROUND",
    "HARD_SWISH",
    "IF",
    "WHILE",
    "NON_MAX_SUPPRESSION_V4",
    "NON_MAX_SUPPRESSION_V5",
    "SCATTER_ND",
    "SELECT_V2",
    "DENSIFY",
    "SEGMENT_SUM",
    "BATCH_MATMUL",
    "PLACEHOLDER_FOR_GREATER_OP_CODES",
    "CUMSUM",
    "CALL_ONCE",
    "BROADCAST_TO",
    "RFFT2D",
    "CONV_3D",
    "IMAG",
    "REAL",
    "COMPLEX_ABS",
    "HASHTABLE",
    "HASHTABLE_FIND",
    "HASHTABLE_IMPORT",
    "HASHTABLE_SIZE",
    "REDUCE_ALL",
    "CONV_3D_TRANSPOSE",
    "VAR_HANDLE",
    "READ_VARIABLE",
    "ASSIGN_VARIABLE",
    "BROADCAST_ARGS",
    "RANDOM_STANDARD_NORMAL",
    "BUCKETIZE",
    "RANDOM_UNIFORM",
    "MULTINOMIAL",
    "GELU",
];
