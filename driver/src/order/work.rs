//! Approximate cycles of an instruction, by the rules of `hw/TIMING.md`.

use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::{INSN_BYTES, Load, Op, Store, Vector};

/// Cycles from the start of a load until its first beat, in addition to the latency of memory.
const LOAD_LEAD: u64 = 5;
/// Cycles from a load's last beat until it retires.
const LOAD_TAIL: u64 = 4;
/// Cycles from the start of a store until its first beat.
const STORE_LEAD: u64 = 10;
/// Cycles from the last issue of a gemm until it retires.
const GEMM_TAIL: u64 = 6;
/// Cycles from the last issue of a vector instruction until it retires.
const VECTOR_TAIL: u64 = 12;
/// Cycles in which the vector unit drains before an instruction with a descriptor.
const DRAIN: u64 = 19;

/// The time that an instruction takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Cycles from its start until the next instruction of its unit can start.
    pub busy: u64,
    /// Cycles from its start until its first beat is on the bus.
    pub lead: u64,
    /// Beats on the bus.
    pub beats: u64,
    /// Cycles in which its unit moves its data, at least `beats`.
    pub moves: u64,
    /// Cycles after that until it retires.
    pub tail: u64,
    /// Beats that its fetch takes.
    pub fetch: u64,
}

impl Work {
    /// The work of an instruction.
    pub fn of(op: &Op, config: &HwConfig) -> Work {
        let fetch = (INSN_BYTES as u64).div_ceil(config.bus_bytes().into());
        let work = match op {
            Op::Load(x) => load(x, config),
            Op::Store(x) => store(x, config),
            Op::Gemm(x) => {
                Work { busy: x.micro_ops(), tail: GEMM_TAIL + u64::from(config.mul_stages), ..Work::default() }
            }
            Op::Vector(x) => vector(x, config),
        };
        Work { fetch, ..work }
    }

    /// Cycles from its start until it retires, if the bus is free.
    pub fn span(&self) -> u64 {
        self.busy.max(self.lead + self.moves) + self.tail
    }
}

fn beats(offset: u64, row_bytes: u32, strides: [u64; 2], counts: [u32; 2], config: &HwConfig) -> u64 {
    let bus = u64::from(config.bus_bytes());
    let rows = u64::from(counts[0]) * u64::from(counts[1]);
    let even = strides.iter().zip(counts).all(|(stride, count)| count <= 1 || stride.is_multiple_of(bus));
    // Rows of different alignment take half a beat more on average.
    let at = if even { offset % bus } else { bus / 2 };
    rows * (at + u64::from(row_bytes)).div_ceil(bus)
}

fn load(x: &Load, config: &HwConfig) -> Work {
    let beats = beats(x.offset, x.row_bytes, [x.row_stride, x.plane_stride], [x.rows, x.planes], config);
    let [rows, planes] = [x.y_before + x.rows + x.y_after, x.z_before + x.planes + x.z_after].map(u64::from);
    let data = u64::from(x.rows) * u64::from(x.planes);
    let chunks = u64::from(x.row_bytes).div_ceil(config.chunk_bytes(x.mem).into());
    let pads = rows * planes * u64::from(x.x_before + x.x_after)
        + (rows * planes - data) * u64::from(x.row_bytes).div_ceil(config.entry_bytes(x.mem).into());
    Work {
        busy: rows * planes,
        lead: LOAD_LEAD + u64::from(config.dram.latency),
        beats,
        moves: beats.max(data * chunks) + pads,
        tail: LOAD_TAIL,
        fetch: 0,
    }
}

fn store(x: &Store, config: &HwConfig) -> Work {
    let beats = beats(x.offset, x.row_bytes, [x.row_stride, x.plane_stride], [x.rows, x.planes], config);
    let rows = u64::from(x.rows) * u64::from(x.planes);
    let chunks = rows * u64::from(x.row_bytes).div_ceil(config.chunk_bytes(x.mem).into());
    Work {
        busy: rows,
        lead: STORE_LEAD,
        beats,
        moves: beats.max(chunks),
        tail: u64::from(config.dram.latency),
        fetch: 0,
    }
}

fn vector(x: &Vector, config: &HwConfig) -> Work {
    let simple = config.row_elements().div_ceil(config.vector_lanes);
    let row = if x.op.is_deep() { config.deep_row_cycles(x.op.passes()) } else { simple };
    let descriptor = x.op.needs_descriptor(x.b);
    let start = if descriptor || x.op.is_deep() { DRAIN + u64::from(config.constant_entries(x.op)) } else { 1 };
    Work { busy: start + x.micro_ops() * u64::from(row), tail: VECTOR_TAIL, ..Work::default() }
}
