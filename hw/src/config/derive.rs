//! Sizes that follow from a configuration. Nothing else computes one.

use super::{Counters, HwConfig};
use crate::isa::{
    INSN_BITS, INSN_BYTES, Opcode, PARAM_ROWS, TABLE_BYTES, TAP_STRIDE, VecOp, Width, WidthName, insn_bits,
};
use crate::regs::RING_ENTRIES;
use sha2::{Digest, Sha256};

/// A scratchpad or micro-op memory; the discriminant is its code in an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Mem {
    /// Input activations, int8 rows of batch x block_in.
    Inp = 0,
    /// Weights, int8 tiles of block_out x block_in.
    Wgt = 1,
    /// Accumulators, int32 rows of batch x block_out.
    Acc = 2,
    /// Results, int8 rows of batch x block_out.
    Out = 3,
    /// Per-channel parameters and descriptors; loads address rows of block_out bytes, [`PARAM_ROWS`] to an entry.
    Param = 4,
    /// Micro-ops of gemm.
    GemmUop = 5,
    /// Micro-ops of vector.
    VectorUop = 6,
}

impl Mem {
    /// All memories in code order.
    pub const ALL: [Mem; 7] = [Mem::Inp, Mem::Wgt, Mem::Acc, Mem::Out, Mem::Param, Mem::GemmUop, Mem::VectorUop];

    /// The name in assembly text.
    pub fn name(self) -> &'static str {
        ["inp", "wgt", "acc", "out", "param", "guop", "vuop"][self as usize]
    }
}

/// Boundary that no burst crosses (AXI's rule), and therefore the most bytes that a burst moves.
pub const PAGE_BYTES: u32 = 4096;

/// Beats of fetch's longest burst, if its buffer holds that many.
const FETCH_BURST_BEATS: u32 = 16;

/// Cycles of one pass through a serial requantize lane.
const SERIAL_PASS_CYCLES: u32 = 48;

/// Cycles per element in the serial vector unit: operations without constants, operations with bounds, requantization.
const SERIAL_ELEMENT_CYCLES: [u32; 3] = [14, 30, 135];

/// Field widths of the instruction set that depend on the configuration.
pub type Widths = [u32; WidthName::COUNT];

/// Bits that hold the numbers `0..n`; at least one.
pub const fn index_bits(n: u64) -> u32 {
    if n <= 2 { 1 } else { 64 - (n - 1).leading_zeros() }
}

impl HwConfig {
    /// Bytes of one beat.
    pub fn bus_bytes(&self) -> u32 {
        self.bus_bits / 8
    }

    /// The greatest DRAM address, base limit and offset.
    pub fn last_address(&self) -> u64 {
        (1 << self.offset_bits) - 1
    }

    /// Bytes of memory for a program's weights, instructions and tensors, limited by the host's memory and by the
    /// address width.
    pub fn memory_bytes(&self) -> u64 {
        (u64::from(self.host.memory_mib) << 20).min(1 << self.offset_bits)
    }

    /// Elements of an acc or out entry.
    pub fn row_elements(&self) -> u32 {
        self.batch * self.block_out
    }

    /// Multiply-accumulates of one gemm micro-op.
    pub fn macs_per_cycle(&self) -> u64 {
        u64::from(self.batch) * u64::from(self.block_in) * u64::from(self.block_out)
    }

    /// The channel block of activations in DRAM: the largest of block_in, block_out and dma_align, so that a row of a
    /// load or store can begin at every pixel.
    pub fn block(&self) -> u32 {
        self.block_in.max(self.block_out).max(self.dma_align)
    }

    /// Whether a pixel of a channel block is exactly one row of inp's entries and one row of out's.
    pub fn block_is_row(&self) -> bool {
        [self.block_in, self.block_out] == [self.block(); 2]
    }

    /// Whether vector reads and writes inp: only if its rows are as wide as out's.
    pub fn vector_reaches_inp(&self) -> bool {
        self.block_in == self.block_out
    }

    /// Bytes of one entry as loads and stores address it; for param, of one row.
    pub fn entry_bytes(&self, mem: Mem) -> u32 {
        match mem {
            Mem::Inp => self.batch * self.block_in,
            Mem::Wgt => self.block_out * self.block_in,
            Mem::Acc => self.row_elements() * 4,
            Mem::Out => self.row_elements(),
            Mem::Param => self.block_out,
            Mem::GemmUop => self.gemm_uop_bytes(),
            Mem::VectorUop => self.vector_uop_bytes(),
        }
    }

    /// Number of entries as loads and stores address them; for param, the rows of all entries.
    pub fn entries(&self, mem: Mem) -> u32 {
        match mem {
            Mem::Inp => self.inp_depth,
            Mem::Wgt => self.wgt_depth,
            Mem::Acc => self.acc_depth,
            Mem::Out => self.out_depth,
            Mem::Param => self.param_depth * PARAM_ROWS,
            Mem::GemmUop => self.gemm_uop_depth,
            Mem::VectorUop => self.vector_uop_depth,
        }
    }

    /// Rows per stored entry that loads address one by one: nine for param, unless its memory consists of rows; else 1.
    pub fn rows_of_entry(&self, mem: Mem) -> u32 {
        if mem == Mem::Param && !self.vector_serial() { PARAM_ROWS } else { 1 }
    }

    /// Bytes of a whole param entry.
    pub fn param_entry_bytes(&self) -> u32 {
        PARAM_ROWS * self.block_out
    }

    /// Banks of a memory; high address bits select one.
    pub fn banks(&self, mem: Mem) -> u32 {
        match mem {
            Mem::Inp => self.inp_banks,
            Mem::Acc => self.acc_banks,
            Mem::Out => self.out_banks,
            _ => 1,
        }
    }

    /// The bank of an entry.
    pub fn bank_of(&self, mem: Mem, entry: u32) -> u32 {
        entry / (self.entries(mem) / self.banks(mem))
    }

    /// Bytes that a load or store moves between the bus and `mem` per cycle: the smaller of beat and entry.
    pub fn chunk_bytes(&self, mem: Mem) -> u32 {
        self.bus_bytes().min(self.entry_bytes(mem))
    }

    /// Beats that fetch's buffer holds.
    pub fn fetch_buffer_beats(&self) -> u32 {
        self.fetch_buffer_insns * INSN_BYTES as u32 / self.bus_bytes()
    }

    /// Beats of fetch's longest burst.
    pub fn fetch_burst_beats(&self) -> u32 {
        self.fetch_buffer_beats().min(FETCH_BURST_BEATS)
    }

    /// Load rows that can be requested but not yet being written: at least as many as bursts in flight.
    pub fn load_rows(&self) -> u32 {
        if self.lean { 2 } else { self.outstanding.max(8) }
    }

    /// Load rows whose addresses are generated but that are not yet split into bursts.
    pub fn load_requests(&self) -> u32 {
        if self.lean { 1 } else { 4 }
    }

    /// Store rows whose addresses are generated but that are not yet being read.
    pub fn store_reads(&self) -> u32 {
        if self.lean { 1 } else { 4 }
    }

    /// Words in the registers at a buffer memory's output, for beats that were read and for chunks that store read.
    pub fn front_words(&self) -> u32 {
        if self.lean { 2 } else { 4 }
    }

    /// Words in the registers at the output of the memory of store's beats, which leave one per cycle.
    pub fn beat_words(&self) -> u32 {
        if self.lean { 3 } else { 4 }
    }

    /// Commands that the ring holds in addition to the running one.
    pub fn ring_entries(&self) -> u32 {
        if self.lean { 1 } else { RING_ENTRIES }
    }

    /// Store rows whose addresses are generated but that are not yet split into bursts: enough for rows of one beat to
    /// follow each other.
    pub fn store_rows(&self) -> u32 {
        if self.lean { 1 } else { self.outstanding.clamp(4, 16) }
    }

    /// Loads in flight between their start and the write of their first row.
    pub fn loads_under_way(&self) -> u32 {
        if self.lean { 1 } else { 2 * self.queue_depth }
    }

    /// Stores in flight between start and retirement.
    pub fn stores_under_way(&self) -> u32 {
        if self.lean { 2 } else { 2 * self.queue_depth }
    }

    /// Bits of an instruction that enter or leave a lean queue per cycle: one beat, but at most one instruction.
    pub fn insn_word_bits(&self) -> u32 {
        self.bus_bits.min(INSN_BITS)
    }

    /// Cycles that an instruction with this opcode takes to enter a lean queue, and again to leave it for its unit.
    pub fn insn_words(&self, op: Opcode) -> u32 {
        insn_bits(op, self).div_ceil(self.insn_word_bits())
    }

    /// Bits of a row's place in a memory, as load and store compute it: in bytes if rows can be packed, else in
    /// entries. The extra bit covers places past the memory's end: an instruction can name one, and a stride can lead
    /// to one.
    pub fn place_bits(&self) -> u32 {
        let log = Mem::ALL.iter().map(|&m| self.entry_bytes(m).ilog2()).max().unwrap_or(0);
        self.width(WidthName::Entry) + 1 + if self.dma_pack { log } else { 0 }
    }

    /// Bits, including the sign, of the difference between the ordinal of an instruction in flight and the number of
    /// retired instructions. The number of instructions that a unit has in flight bounds it.
    pub fn flight_bits(&self) -> u32 {
        let loads = self.loads_under_way() + self.load_rows() + 4;
        index_bits(u64::from(loads.max(self.stores_under_way()).max(30)) + 1) + 1
    }

    /// Bits of a command's cycle counter, which wraps.
    pub fn cycle_bits(&self) -> u32 {
        if self.counters == Counters::None { 32 } else { 64 }
    }

    /// Bits of a chunk's index in its entry.
    pub fn chunk_index_bits(&self) -> u32 {
        let chunks = Mem::ALL.iter().map(|&m| self.entry_bytes(m) / self.chunk_bytes(m)).max();
        index_bits(chunks.unwrap_or(1).into())
    }

    /// Bits of the length of a row in a memory.
    pub fn row_bytes_bits(&self) -> u32 {
        let largest = Mem::ALL.iter().map(|&m| u64::from(self.entries(m)) * u64::from(self.entry_bytes(m))).max();
        index_bits(largest.unwrap_or(1) + 1).min(16)
    }

    /// Bits of an instruction count: enough for as many instructions as memory can hold.
    pub fn count_bits(&self) -> u32 {
        (self.offset_bits - INSN_BYTES.ilog2() + 1).min(32)
    }

    /// Bits of an acc, inp and wgt index of a gemm micro-op.
    pub fn gemm_index_bits(&self) -> [u32; 3] {
        [index_bits(self.acc_depth.into()), index_bits(self.inp_depth.into()), index_bits(self.wgt_depth.into())]
    }

    /// Bits of each of the three indices of a vector micro-op.
    pub fn vector_index_bits(&self) -> u32 {
        let taps = if self.vector_mac { TAP_STRIDE } else { 1 };
        let mut depth = self.acc_depth.max(self.out_depth).max(self.param_depth * taps);
        if self.vector_reaches_inp() {
            depth = depth.max(self.inp_depth);
        }
        index_bits(depth.into())
    }

    /// Bytes of a stored gemm micro-op, a power of two.
    pub fn gemm_uop_bytes(&self) -> u32 {
        self.gemm_index_bits().iter().sum::<u32>().div_ceil(8).next_power_of_two()
    }

    /// Bytes of a stored vector micro-op, a power of two.
    pub fn vector_uop_bytes(&self) -> u32 {
        (3 * self.vector_index_bits()).div_ceil(8).next_power_of_two()
    }

    /// Cycles from one pass through the requantize lanes to the next.
    pub fn pass_cycles(&self) -> u32 {
        match self.vector_serial() {
            true => self.serial_element_cycles(VecOp::Requant),
            false if self.requant_serial => SERIAL_PASS_CYCLES,
            false => 1,
        }
    }

    /// Whether the vector unit is the serial one, which handles one element at a time with one adder: if control is
    /// lean, there is one lane of each kind, and no optional operation is built.
    pub fn vector_serial(&self) -> bool {
        let optional = VecOp::ALL.iter().any(|op| op.parameter(self).is_some_and(|(_, built)| built));
        self.lean && self.requant_serial && self.vector_lanes == 1 && self.requant_lanes == 1 && !optional
    }

    /// Cycles per element of an operation in the serial vector unit.
    pub fn serial_element_cycles(&self, op: VecOp) -> u32 {
        SERIAL_ELEMENT_CYCLES[match op {
            VecOp::Requant => 2,
            VecOp::Clip => 1,
            _ => 0,
        }]
    }

    /// Cycles that a row takes on the requantize lanes for an operation of `passes` passes.
    pub fn deep_row_cycles(&self, passes: u32) -> u32 {
        self.row_elements().div_ceil(self.requant_lanes) * passes * self.pass_cycles()
    }

    /// Cycles to read a descriptor: one for each param entry that it covers.
    pub fn descriptor_entries(&self) -> u32 {
        (crate::isa::DESCRIPTOR_BYTES as u32).div_ceil(self.param_entry_bytes())
    }

    /// Param entries of a lookup table: 256 bytes, in the first eight rows of each entry.
    pub fn table_entries(&self) -> u32 {
        (TABLE_BYTES as u32).div_ceil(self.table_entry_bytes())
    }

    /// Bytes of a lookup table in one param entry.
    pub fn table_entry_bytes(&self) -> u32 {
        (PARAM_ROWS - 1) * self.block_out
    }

    /// Param entries that an operation reads before its first micro-op.
    pub fn constant_entries(&self, op: VecOp) -> u32 {
        if op == VecOp::Lut { self.table_entries() } else { self.descriptor_entries() }
    }

    /// Bits of a named width in this configuration.
    pub fn width(&self, name: WidthName) -> u32 {
        // Every instruction asks for the widths of all its fields, so each computes only what it needs.
        let gemm_index = |operand: usize| self.gemm_index_bits()[operand];
        match name {
            WidthName::Base => index_bits(self.bases.into()),
            WidthName::Offset => self.offset_bits,
            WidthName::Stride => self.stride_bits,
            WidthName::Entry => index_bits(Mem::ALL.iter().map(|&m| self.entries(m)).max().unwrap_or(1).into()),
            WidthName::PackByte => index_bits(self.entry_bytes(Mem::Inp).max(self.entry_bytes(Mem::Out)).into()),
            WidthName::PackStride => {
                let bytes = |m| u64::from(self.entries(m)) * u64::from(self.entry_bytes(m));
                index_bits(bytes(Mem::Inp).max(bytes(Mem::Out)))
            }
            WidthName::Loop => index_bits(u64::from(self.acc_depth.max(self.inp_depth).max(self.out_depth))).min(11),
            WidthName::AccIndex => gemm_index(0),
            WidthName::InpIndex => gemm_index(1),
            WidthName::WgtIndex => gemm_index(2),
            WidthName::VecIndex => self.vector_index_bits(),
            WidthName::GemmUop => index_bits(self.gemm_uop_depth.into()),
            WidthName::GemmUopCount => index_bits(u64::from(self.gemm_uop_depth) + 1),
            WidthName::VecUop => index_bits(self.vector_uop_depth.into()),
            WidthName::VecUopCount => index_bits(u64::from(self.vector_uop_depth) + 1),
            WidthName::Descriptor => index_bits(self.param_depth.into()),
        }
    }

    /// Bits of a field; 0 if the configuration leaves the field out.
    pub fn field_width(&self, width: Width) -> u32 {
        match width {
            Width::Bits(n) => n,
            Width::Named(name) => self.width(name),
            Width::Pad(n) => {
                if self.dma_pad {
                    n
                } else {
                    0
                }
            }
            Width::Pack(None) => u32::from(self.dma_pack),
            Width::Pack(Some(name)) => {
                if self.dma_pack {
                    self.width(name)
                } else {
                    0
                }
            }
            Width::WgtZp(n) => {
                if self.wgt_zp {
                    n
                } else {
                    0
                }
            }
            Width::Loop3(name) => {
                if self.loops >= 3 {
                    self.width(name)
                } else {
                    0
                }
            }
        }
    }

    /// Hash that identifies the hardware: streams, artifacts and a register of the device carry it. Name, host, DRAM
    /// model and energy do not change it.
    pub fn hash(&self) -> u64 {
        let mut sha = Sha256::new();
        sha.update(crate::isa::ISA_VERSION.to_le_bytes());
        // Hardware that was built before an operation existed must not pass for hardware that has it.
        sha.update(VecOp::mask(|op| op.is_built(self)).to_le_bytes());
        for p in super::PARAMS {
            sha.update(p.key.as_bytes());
            sha.update(p.value(self).to_le_bytes());
        }
        u64::from_le_bytes(sha.finalize()[..8].try_into().unwrap_or_default())
    }
}
