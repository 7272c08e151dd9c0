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

    /// The name in programs' text.
    pub fn name(self) -> &'static str {
        ["inp", "wgt", "acc", "out", "param", "guop", "vuop"][self as usize]
    }
}

/// Bytes that no burst crosses a multiple of: AXI's rule, and so the most that a burst moves.
pub const PAGE_BYTES: u32 = 4096;

/// Beats of fetch's longest burst where its buffer takes as many.
const FETCH_BURST_BEATS: u32 = 16;

/// Cycles of a pass through a serial requantize lane.
const SERIAL_PASS_CYCLES: u32 = 48;

/// Cycles of an element in the serial vector unit: of operations without constants, of those with bounds, and of a requantization.
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

    /// Bytes of memory that a program's weights, instructions and tensors may take: what there is and addresses reach.
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

    /// The channel block of activations in DRAM: the widest of block_in, block_out and dma_align, so that every pixel lies
    /// where a row of a load or store may begin.
    pub fn block(&self) -> u32 {
        self.block_in.max(self.block_out).max(self.dma_align)
    }

    /// Whether a pixel of a channel block is a row of inp's entries and one of out's.
    pub fn block_is_row(&self) -> bool {
        [self.block_in, self.block_out] == [self.block(); 2]
    }

    /// Whether vector reads and writes inp: where its rows are out's rows.
    pub fn vector_reaches_inp(&self) -> bool {
        self.block_in == self.block_out
    }

    /// Bytes of one entry as loads and stores address it; for param one of its rows.
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

    /// Entries as loads and stores address them; for param the rows of all its entries.
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

    /// Rows of an entry that loads address one by one where the hardware holds it as a whole.
    pub fn rows_of_entry(&self, mem: Mem) -> u32 {
        if mem == Mem::Param && !self.vector_serial() { PARAM_ROWS } else { 1 }
    }

    /// Bytes of a whole param entry.
    pub fn param_entry_bytes(&self) -> u32 {
        PARAM_ROWS * self.block_out
    }

    /// Banks of a memory, selected by high address bits.
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

    /// Bytes that a load or store moves between the bus and `mem` in a cycle: the smaller of beat and entry.
    pub fn chunk_bytes(&self, mem: Mem) -> u32 {
        self.bus_bytes().min(self.entry_bytes(mem))
    }

    /// Beats that fetch's buffer takes.
    pub fn fetch_buffer_beats(&self) -> u32 {
        self.fetch_buffer_insns * INSN_BYTES as u32 / self.bus_bytes()
    }

    /// Beats of fetch's longest burst.
    pub fn fetch_burst_beats(&self) -> u32 {
        self.fetch_buffer_beats().min(FETCH_BURST_BEATS)
    }

    /// Rows of loads that are requested and not yet being written: as many as bursts may be under way.
    pub fn load_rows(&self) -> u32 {
        if self.lean { 2 } else { self.outstanding.max(8) }
    }

    /// Rows of loads that are walked and not yet cut into bursts.
    pub fn load_requests(&self) -> u32 {
        if self.lean { 1 } else { 4 }
    }

    /// Rows of stores that are walked and not yet being read.
    pub fn store_reads(&self) -> u32 {
        if self.lean { 1 } else { 4 }
    }

    /// Words that stand behind a buffer's memory: of beats that were read, and of chunks that store read.
    pub fn front_words(&self) -> u32 {
        if self.lean { 2 } else { 4 }
    }

    /// Words that stand behind the memory of store's beats, which leave it one a cycle.
    pub fn beat_words(&self) -> u32 {
        if self.lean { 3 } else { 4 }
    }

    /// Commands that the ring holds beside the running one.
    pub fn ring_entries(&self) -> u32 {
        if self.lean { 1 } else { RING_ENTRIES }
    }

    /// Rows of stores that are walked and not yet cut into bursts: enough for rows of one beat to follow each other.
    pub fn store_rows(&self) -> u32 {
        if self.lean { 1 } else { self.outstanding.clamp(4, 16) }
    }

    /// Loads between their start and the writing of their first row.
    pub fn loads_under_way(&self) -> u32 {
        if self.lean { 1 } else { 2 * self.queue_depth }
    }

    /// Stores between start and retirement.
    pub fn stores_under_way(&self) -> u32 {
        if self.lean { 2 } else { 2 * self.queue_depth }
    }

    /// Bits of an instruction that enter a lean queue, and leave it, in a cycle: a beat's, as long as it is no longer.
    pub fn insn_word_bits(&self) -> u32 {
        self.bus_bits.min(INSN_BITS)
    }

    /// Cycles that an instruction with this opcode takes into a lean queue, and again from there to its unit.
    pub fn insn_words(&self, op: Opcode) -> u32 {
        insn_bits(op, self).div_ceil(self.insn_word_bits())
    }

    /// Bits of a row's place in a memory as load and store walk it: bytes where rows can be packed, else entries. A place that
    /// an instruction names may lie behind the memory, and a stride's length behind one that lies in it.
    pub fn place_bits(&self) -> u32 {
        let log = Mem::ALL.iter().map(|&m| self.entry_bytes(m).ilog2()).max().unwrap_or(0);
        self.width(WidthName::Entry) + 1 + if self.dma_pack { log } else { 0 }
    }

    /// Bits, sign included, of how far the ordinal of an instruction that has not retired is from the retired ones' number:
    /// units have no more under way.
    pub fn flight_bits(&self) -> u32 {
        let loads = self.loads_under_way() + self.load_rows() + 4;
        index_bits(u64::from(loads.max(self.stores_under_way()).max(30)) + 1) + 1
    }

    /// Bits of the number of a command's cycles, which wraps.
    pub fn cycle_bits(&self) -> u32 {
        if self.counters == Counters::None { 32 } else { 64 }
    }

    /// Bits of the number of a chunk in its entry.
    pub fn chunk_index_bits(&self) -> u32 {
        let chunks = Mem::ALL.iter().map(|&m| self.entry_bytes(m) / self.chunk_bytes(m)).max();
        index_bits(chunks.unwrap_or(1).into())
    }

    /// Bits of the length of a row that lies in a memory.
    pub fn row_bytes_bits(&self) -> u32 {
        let largest = Mem::ALL.iter().map(|&m| u64::from(self.entries(m)) * u64::from(self.entry_bytes(m))).max();
        index_bits(largest.unwrap_or(1) + 1).min(16)
    }

    /// Bits of a number of instructions: of as many as memory can hold.
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

    /// Whether the vector unit is the serial one, of one element at a time on one adder: where control is lean, there is one
    /// lane of each kind, and no operation is built that a part can do without.
    pub fn vector_serial(&self) -> bool {
        let optional = VecOp::ALL.iter().any(|op| op.parameter(self).is_some_and(|(_, built)| built));
        self.lean && self.requant_serial && self.vector_lanes == 1 && self.requant_lanes == 1 && !optional
    }

    /// Cycles of an element of this operation in the serial vector unit.
    pub fn serial_element_cycles(&self, op: VecOp) -> u32 {
        SERIAL_ELEMENT_CYCLES[match op {
            VecOp::Requant => 2,
            VecOp::Clip => 1,
            _ => 0,
        }]
    }

    /// Cycles that a row takes on the requantize lanes, where an operation needs so many passes.
    pub fn deep_row_cycles(&self, passes: u32) -> u32 {
        self.row_elements().div_ceil(self.requant_lanes) * passes * self.pass_cycles()
    }

    /// Cycles that reading a descriptor takes: one for each param entry that it covers.
    pub fn descriptor_entries(&self) -> u32 {
        (crate::isa::DESCRIPTOR_BYTES as u32).div_ceil(self.param_entry_bytes())
    }

    /// Param entries that the table of a lookup takes: 256 bytes, the first eight rows of each.
    pub fn table_entries(&self) -> u32 {
        (TABLE_BYTES as u32).div_ceil(self.table_entry_bytes())
    }

    /// Bytes of a table that a param entry holds.
    pub fn table_entry_bytes(&self) -> u32 {
        (PARAM_ROWS - 1) * self.block_out
    }

    /// Param entries that an operation reads before its first micro-op.
    pub fn constant_entries(&self, op: VecOp) -> u32 {
        if op == VecOp::Lut { self.table_entries() } else { self.descriptor_entries() }
    }

    /// The instruction set's widths for this configuration.
    pub fn width(&self, name: WidthName) -> u32 {
        let deepest = Mem::ALL.iter().map(|&m| self.entries(m)).max().unwrap_or(1);
        let pack_bytes = self.entry_bytes(Mem::Inp).max(self.entry_bytes(Mem::Out));
        let pack_memory = [Mem::Inp, Mem::Out].map(|m| u64::from(self.entries(m)) * u64::from(self.entry_bytes(m)));
        let [acc, inp, wgt] = self.gemm_index_bits();
        match name {
            WidthName::Base => index_bits(self.bases.into()),
            WidthName::Offset => self.offset_bits,
            WidthName::Stride => self.stride_bits,
            WidthName::Entry => index_bits(deepest.into()),
            WidthName::PackByte => index_bits(pack_bytes.into()),
            WidthName::PackStride => index_bits(pack_memory[0].max(pack_memory[1])),
            WidthName::Loop => index_bits(u64::from(self.acc_depth.max(self.inp_depth).max(self.out_depth))).min(11),
            WidthName::AccIndex => acc,
            WidthName::InpIndex => inp,
            WidthName::WgtIndex => wgt,
            WidthName::VecIndex => self.vector_index_bits(),
            WidthName::GemmUop => index_bits(self.gemm_uop_depth.into()),
            WidthName::GemmUopCount => index_bits(u64::from(self.gemm_uop_depth) + 1),
            WidthName::VecUop => index_bits(self.vector_uop_depth.into()),
            WidthName::VecUopCount => index_bits(u64::from(self.vector_uop_depth) + 1),
            WidthName::Descriptor => index_bits(self.param_depth.into()),
        }
    }

    /// A field's width, 0 where the configuration leaves the field out.
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

    /// Identifies the hardware: streams, artifacts and a register of the device carry it. Name, host and DRAM model
    /// do not change it.
    pub fn hash(&self) -> u64 {
        let mut sha = Sha256::new();
        sha.update(crate::isa::ISA_VERSION.to_le_bytes());
        // So that hardware that was made before an operation was there is not taken for one that has it.
        sha.update(VecOp::mask(|op| op.is_built(self)).to_le_bytes());
        for p in super::PARAMS {
            sha.update(p.key.as_bytes());
            sha.update(p.value(self).to_le_bytes());
        }
        u64::from_le_bytes(sha.finalize()[..8].try_into().unwrap_or_default())
    }
}
