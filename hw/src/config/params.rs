//! The table of a hardware instance's parameters: every field of [`HwConfig`] with its unit, range, default and the
//! SystemVerilog parameter that it becomes.

use serde::{Deserialize, Serialize};

/// How much the performance counters keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counters {
    /// No counters but the cycle count.
    None,
    /// One counter a unit: busy cycles.
    Busy,
    /// One counter for each state of each unit.
    Causes,
}

/// Values that a parameter may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Legal {
    /// Any whole number from the first to the last.
    Range(u64, u64),
    /// Powers of two from the first to the last.
    PowerOfTwo(u64, u64),
    /// `true` or `false`.
    Flag,
    /// One of these words; the position is the value in hardware.
    Words(&'static [&'static str]),
}

impl std::fmt::Display for Legal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Legal::Range(lo, hi) => write!(f, "{lo} to {hi}"),
            Legal::PowerOfTwo(lo, hi) => write!(f, "a power of two, {lo} to {hi}"),
            Legal::Flag => write!(f, "true or false"),
            Legal::Words(words) => write!(f, "one of {}", words.join(", ")),
        }
    }
}

/// A value that can stand in the configuration file and as a SystemVerilog parameter.
pub(super) trait ParamValue: Sized {
    fn to_raw(&self) -> u64;
    fn from_toml(value: &toml::Value) -> Result<Self, String>;
}

impl ParamValue for u32 {
    fn to_raw(&self) -> u64 {
        u64::from(*self)
    }
    fn from_toml(value: &toml::Value) -> Result<Self, String> {
        let n = value.as_integer().ok_or_else(|| format!("is {}, not a whole number", value.type_str()))?;
        u32::try_from(n).map_err(|_| format!("is {n}, outside the range of a parameter"))
    }
}

impl ParamValue for bool {
    fn to_raw(&self) -> u64 {
        u64::from(*self)
    }
    fn from_toml(value: &toml::Value) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| format!("is {}, not true or false", value.type_str()))
    }
}

impl ParamValue for Counters {
    fn to_raw(&self) -> u64 {
        *self as u64
    }
    fn from_toml(value: &toml::Value) -> Result<Self, String> {
        value.clone().try_into().map_err(|_| format!("is {value}"))
    }
}

/// One row of the parameter table.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Key in the configuration file.
    pub key: &'static str,
    /// What it counts, or empty.
    pub unit: &'static str,
    /// Legal values.
    pub legal: Legal,
    /// SystemVerilog parameter of the top module.
    pub sv: &'static str,
    /// What it does, in one sentence.
    pub doc: &'static str,
    pub(super) get: fn(&HwConfig) -> u64,
    pub(super) set: fn(&mut HwConfig, &toml::Value) -> Result<(), String>,
}

impl Param {
    /// The parameter's value in `config` as the RTL receives it.
    pub fn value(&self, config: &HwConfig) -> u64 {
        (self.get)(config)
    }
}

macro_rules! params {
    ($($key:ident: $ty:ty = $default:expr, $unit:literal, $legal:expr, $sv:literal, $doc:literal;)*) => {
        /// One hardware instance: all that the RTL, the instruction set and the simulators derive their sizes from,
        /// and what the file says of its surroundings.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        pub struct HwConfig {
            /// Name for people; not part of the hardware.
            pub name: String,
            $(#[doc = $doc] pub $key: $ty,)*
            /// Clock and host: not hardware, outside the configuration hash.
            pub host: super::HostSection,
            /// Energy, where the file states it: not hardware, outside the configuration hash.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub energy: Option<super::EnergySection>,
            /// The DRAM model's defaults: not hardware, outside the configuration hash.
            pub dram: super::DramSection,
        }

        impl Default for HwConfig {
            fn default() -> Self {
                HwConfig {
                    name: "custom".into(),
                    $($key: $default,)*
                    host: Default::default(),
                    energy: None,
                    dram: Default::default(),
                }
            }
        }

        /// Every hardware parameter, in the order of the documentation.
        pub const PARAMS: &[Param] = &[$(Param {
            key: stringify!($key),
            unit: $unit,
            legal: $legal,
            sv: $sv,
            doc: $doc,
            get: |c| c.$key.to_raw(),
            set: |c, v| { c.$key = <$ty as ParamValue>::from_toml(v)?; Ok(()) },
        },)*];
    };
}

params! {
    batch: u32 = 1, "rows", Legal::PowerOfTwo(1, 16), "Batch",
        "Rows per entry of inp, acc and out: pixels or inputs that are computed at once.";
    block_in: u32 = 16, "elements", Legal::PowerOfTwo(2, 64), "BlockIn",
        "Input channels per gemm micro-op.";
    block_out: u32 = 16, "elements", Legal::PowerOfTwo(2, 64), "BlockOut",
        "Output channels per gemm micro-op.";
    inp_depth: u32 = 2048, "entries", Legal::PowerOfTwo(16, 65536), "InpDepth",
        "Entries of the inp scratchpad, batch x block_in bytes each.";
    wgt_depth: u32 = 1024, "entries", Legal::PowerOfTwo(16, 65536), "WgtDepth",
        "Entries of the wgt scratchpad, block_out x block_in bytes each.";
    acc_depth: u32 = 2048, "entries", Legal::PowerOfTwo(16, 65536), "AccDepth",
        "Entries of the acc scratchpad, batch x block_out 32-bit sums each.";
    out_depth: u32 = 2048, "entries", Legal::PowerOfTwo(16, 65536), "OutDepth",
        "Entries of the out scratchpad, batch x block_out bytes each.";
    param_depth: u32 = 256, "entries", Legal::PowerOfTwo(8, 4096), "ParamDepth",
        "Entries of the param scratchpad, nine rows of block_out bytes each.";
    gemm_uop_depth: u32 = 1024, "micro-ops", Legal::PowerOfTwo(16, 8192), "GemmUopDepth",
        "Micro-ops that the gemm unit's memory holds.";
    vector_uop_depth: u32 = 512, "micro-ops", Legal::PowerOfTwo(16, 8192), "VectorUopDepth",
        "Micro-ops that the vector unit's memory holds.";
    inp_banks: u32 = 2, "banks", Legal::PowerOfTwo(1, 8), "InpBanks",
        "Banks of inp, selected by high address bits; each has one read and one write port.";
    acc_banks: u32 = 4, "banks", Legal::PowerOfTwo(1, 8), "AccBanks",
        "Banks of acc, selected by high address bits; each has one read and one write port.";
    out_banks: u32 = 2, "banks", Legal::PowerOfTwo(1, 8), "OutBanks",
        "Banks of out, selected by high address bits; each has one read and one write port.";
    bus_bits: u32 = 64, "bits", Legal::PowerOfTwo(16, 512), "BusBits",
        "Width of the memory bus.";
    offset_bits: u32 = 40, "bits", Legal::Range(20, 40), "OffsetBits",
        "Width of DRAM addresses, offsets, bases and limits.";
    stride_bits: u32 = 24, "bits", Legal::Range(12, 32), "StrideBits",
        "Width of a DMA stride.";
    bases: u32 = 16, "registers", Legal::PowerOfTwo(4, 16), "Bases",
        "Base registers, each with a limit.";
    loops: u32 = 3, "loops", Legal::Range(2, 3), "Loops",
        "Affine loops around a range of micro-ops.";
    dma_align: u32 = 1, "bytes", Legal::PowerOfTwo(1, 64), "DmaAlign",
        "Alignment of offsets and strides of loads and stores, at most the bus width. The compiler's channel blocks \
         are at least this wide.";
    dma_pad: bool = true, "", Legal::Flag, "DmaPad",
        "Loads can add padding: entries around a row, rows around a plane, planes around all planes.";
    dma_pack: bool = true, "", Legal::Flag, "DmaPack",
        "Rows of loads and stores can start at any byte of inp and out.";
    max_burst_beats: u32 = 32, "beats", Legal::PowerOfTwo(1, 256), "MaxBurstBeats",
        "Longest burst of the load and store units.";
    outstanding: u32 = 32, "bursts", Legal::PowerOfTwo(2, 128), "Outstanding",
        "Bursts that the load unit can have in flight, and as many for the store unit.";
    load_buffer_beats: u32 = 256, "beats", Legal::PowerOfTwo(4, 4096), "LoadBufferBeats",
        "Beats that the load buffer holds; the load unit reserves space before it requests a read.";
    store_buffer_beats: u32 = 128, "beats", Legal::PowerOfTwo(4, 4096), "StoreBufferBeats",
        "Beats that the store buffer holds.";
    fetch_buffer_insns: u32 = 16, "instructions", Legal::PowerOfTwo(4, 64), "FetchBufferInsns",
        "Instructions that the fetch unit holds or has requested.";
    queue_depth: u32 = 8, "instructions", Legal::PowerOfTwo(2, 32), "QueueDepth",
        "Instructions that can wait in each unit's queue.";
    lean: bool = false, "", Legal::Flag, "Lean",
        "Smaller and slower control, for small parts: instructions move into queues and units word by word, and units \
         work ahead by few rows.";
    token_bits: u32 = 10, "bits", Legal::Range(3, 16), "TokenBits",
        "Width of a dependency-token counter.";
    vector_lanes: u32 = 16, "lanes", Legal::PowerOfTwo(1, 1024), "VectorLanes",
        "Elements per cycle of the simple vector operations; must divide batch x block_out.";
    requant_lanes: u32 = 8, "lanes", Legal::PowerOfTwo(1, 1024), "RequantLanes",
        "Elements per cycle of requantize, mul and quantized add; must divide batch x block_out.";
    requant_serial: bool = false, "", Legal::Flag, "RequantSerial",
        "The requantize lanes multiply by two bits per cycle: a tenth of the logic, but 48 cycles per pass instead of one.";
    vector_shift: bool = true, "", Legal::Flag, "VectorShift",
        "Builds the shift operations.";
    vector_mul: bool = true, "", Legal::Flag, "VectorMul",
        "Builds the quantized multiplication.";
    vector_qadd: bool = true, "", Legal::Flag, "VectorQadd",
        "Builds the quantized addition.";
    vector_mac: bool = true, "", Legal::Flag, "VectorMac",
        "Builds the multiply-accumulate of rows with taps from param, for depthwise convolutions.";
    vector_lut: bool = true, "", Legal::Flag, "VectorLut",
        "Builds the lookup in a table of 256 bytes, for functions of one int8 operand.";
    wgt_zp: bool = true, "", Legal::Flag, "WgtZp",
        "Builds the subtraction of a zero point from the weights in gemm.";
    mul_stages: u32 = 0, "registers", Legal::Range(0, 3), "MulStages",
        "Pipeline registers between gemm's operands and its adder trees. 0: none, for simulation; 1: after the \
         products, for FPGA clocks; 2: also before them; 3: also inside the multiplication.";
    vector_stages: u32 = 0, "registers", Legal::Range(0, 2), "VectorStages",
        "Pipeline registers between vector's operands and its lanes, except in the serial unit. 0: none, for \
         simulation; 1: one, for FPGA clocks; 2: one more before deep operations scale.";
    counters: Counters = Counters::Causes, "", Legal::Words(&["none", "busy", "causes"]), "CounterLevel",
        "What the performance counters count. none: only the cycles of a command; busy: also the busy cycles of each \
         unit; causes: also the cycles of each unit in each state.";
}
