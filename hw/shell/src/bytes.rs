//! Bundles of signals between the blocks of a shell.

use rust_hdl::prelude::*;

/// Bytes from the host: one in each cycle with `valid`, which cannot be refused.
#[derive(LogicInterface, Default)]
#[join = "LinkBytes"]
pub struct FromLink {
    pub valid: Signal<Out, Bit>,
    pub data: Signal<Out, Bits<8>>,
}

/// The other end of [`FromLink`].
#[derive(LogicInterface, Default)]
pub struct LinkBytes {
    pub valid: Signal<In, Bit>,
    pub data: Signal<In, Bits<8>>,
}

/// Bytes to the host: a byte with `valid` is held until the cycle with `ready`.
#[derive(LogicInterface, Default)]
#[join = "SentBytes"]
pub struct ToLink {
    pub valid: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    pub data: Signal<In, Bits<8>>,
}

/// The other end of [`ToLink`].
#[derive(LogicInterface, Default)]
pub struct SentBytes {
    pub valid: Signal<Out, Bit>,
    pub ready: Signal<In, Bit>,
    pub data: Signal<Out, Bits<8>>,
}

/// The body of a memory frame from the host, as the receiver forwards it.
#[derive(LogicInterface, Default)]
#[join = "BodyIn"]
pub struct ReceivedBody {
    /// The frame's kind; stable from its first byte to `commit`.
    pub kind: Signal<Out, Bits<3>>,
    /// `data` is a byte of the body in this cycle.
    pub valid: Signal<Out, Bit>,
    pub data: Signal<Out, Bits<8>>,
    /// The byte is the body's last.
    pub last: Signal<In, Bit>,
    /// The frame's CRC was correct.
    pub commit: Signal<Out, Bit>,
}

/// The memory's end of [`ReceivedBody`].
#[derive(LogicInterface, Default)]
pub struct BodyIn {
    pub kind: Signal<In, Bits<3>>,
    pub valid: Signal<In, Bit>,
    pub data: Signal<In, Bits<8>>,
    pub last: Signal<Out, Bit>,
    pub commit: Signal<In, Bit>,
}

/// A memory frame to the host, as the sender takes it from the memory.
#[derive(LogicInterface, Default)]
#[join = "BodyOut"]
pub struct SentBody {
    /// Outside a frame: the memory wants to send one. Inside a frame: the next byte of the body is available.
    pub valid: Signal<In, Bit>,
    /// The frame's kind, the low three bits of its code.
    pub kind: Signal<In, Bits<3>>,
    pub data: Signal<In, Bits<8>>,
    /// The byte is the body's last.
    pub last: Signal<In, Bit>,
    /// The byte is taken.
    pub take: Signal<Out, Bit>,
}

/// The memory's end of [`SentBody`].
#[derive(LogicInterface, Default)]
pub struct BodyOut {
    pub valid: Signal<Out, Bit>,
    pub kind: Signal<Out, Bits<3>>,
    pub data: Signal<Out, Bits<8>>,
    pub last: Signal<Out, Bit>,
    pub take: Signal<In, Bit>,
}

/// The core's end of its memory bus, with addresses widened to 40 bits.
#[derive(LogicInterface, Default)]
#[join = "MemoryBus"]
pub struct CoreBus<const BUS: usize, const BYTES: usize> {
    pub ar_valid: Signal<Out, Bit>,
    pub ar_ready: Signal<In, Bit>,
    pub ar_id: Signal<Out, Bit>,
    pub ar_addr: Signal<Out, Bits<40>>,
    pub ar_len: Signal<Out, Bits<8>>,
    pub r_valid: Signal<In, Bit>,
    pub r_id: Signal<In, Bit>,
    pub r_data: Signal<In, Bits<BUS>>,
    pub r_error: Signal<In, Bit>,
    pub r_last: Signal<In, Bit>,
    pub aw_valid: Signal<Out, Bit>,
    pub aw_ready: Signal<In, Bit>,
    pub aw_addr: Signal<Out, Bits<40>>,
    pub aw_len: Signal<Out, Bits<8>>,
    pub w_valid: Signal<Out, Bit>,
    pub w_ready: Signal<In, Bit>,
    pub w_data: Signal<Out, Bits<BUS>>,
    pub w_strb: Signal<Out, Bits<BYTES>>,
    pub w_last: Signal<Out, Bit>,
    pub b_valid: Signal<In, Bit>,
    pub b_error: Signal<In, Bit>,
}

/// The memory's end of [`CoreBus`].
#[derive(LogicInterface, Default)]
pub struct MemoryBus<const BUS: usize, const BYTES: usize> {
    pub ar_valid: Signal<In, Bit>,
    pub ar_ready: Signal<Out, Bit>,
    pub ar_id: Signal<In, Bit>,
    pub ar_addr: Signal<In, Bits<40>>,
    pub ar_len: Signal<In, Bits<8>>,
    pub r_valid: Signal<Out, Bit>,
    pub r_id: Signal<Out, Bit>,
    pub r_data: Signal<Out, Bits<BUS>>,
    pub r_error: Signal<Out, Bit>,
    pub r_last: Signal<Out, Bit>,
    pub aw_valid: Signal<In, Bit>,
    pub aw_ready: Signal<Out, Bit>,
    pub aw_addr: Signal<In, Bits<40>>,
    pub aw_len: Signal<In, Bits<8>>,
    pub w_valid: Signal<In, Bit>,
    pub w_ready: Signal<Out, Bit>,
    pub w_data: Signal<In, Bits<BUS>>,
    pub w_strb: Signal<In, Bits<BYTES>>,
    pub w_last: Signal<In, Bit>,
    pub b_valid: Signal<Out, Bit>,
    pub b_error: Signal<Out, Bit>,
}

/// The core's register port, driven by the receiver: an access takes place in the cycle with `valid`, and a read is
/// answered in the same cycle.
#[derive(LogicInterface, Default)]
#[join = "CoreRegisters"]
pub struct RegisterPort {
    pub valid: Signal<Out, Bit>,
    pub write: Signal<Out, Bit>,
    pub addr: Signal<Out, Bits<12>>,
    pub wdata: Signal<Out, Bits<32>>,
    pub rdata: Signal<In, Bits<32>>,
}

/// The core's end of [`RegisterPort`].
#[derive(LogicInterface, Default)]
pub struct CoreRegisters {
    pub valid: Signal<In, Bit>,
    pub write: Signal<In, Bit>,
    pub addr: Signal<In, Bits<12>>,
    pub wdata: Signal<In, Bits<32>>,
    pub rdata: Signal<Out, Bits<32>>,
}

/// The single port of a memory on the board: bursts, one after the other.
///
/// A request is accepted in a cycle with `request` and `ready`. A read's beats follow, each in a cycle with `r_valid`,
/// and cannot be refused. A write's beats are accepted in cycles with `w_valid` and `w_take`. `last` comes with the
/// last beat of either, `error` with every beat of a burst outside the memory.
#[derive(LogicInterface, Default)]
#[join = "ServedPort"]
pub struct BurstPort<const BUS: usize, const BYTES: usize> {
    pub request: Signal<Out, Bit>,
    pub ready: Signal<In, Bit>,
    pub write: Signal<Out, Bit>,
    pub addr: Signal<Out, Bits<40>>,
    /// Number of beats minus one.
    pub len: Signal<Out, Bits<8>>,
    pub r_valid: Signal<In, Bit>,
    pub r_data: Signal<In, Bits<BUS>>,
    pub w_valid: Signal<Out, Bit>,
    pub w_data: Signal<Out, Bits<BUS>>,
    pub w_strb: Signal<Out, Bits<BYTES>>,
    pub w_take: Signal<In, Bit>,
    pub last: Signal<In, Bit>,
    pub error: Signal<In, Bit>,
}

/// The memory's end of [`BurstPort`].
#[derive(LogicInterface, Default)]
pub struct ServedPort<const BUS: usize, const BYTES: usize> {
    pub request: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    pub write: Signal<In, Bit>,
    pub addr: Signal<In, Bits<40>>,
    pub len: Signal<In, Bits<8>>,
    pub r_valid: Signal<Out, Bit>,
    pub r_data: Signal<Out, Bits<BUS>>,
    pub w_valid: Signal<In, Bit>,
    pub w_data: Signal<In, Bits<BUS>>,
    pub w_strb: Signal<In, Bits<BYTES>>,
    pub w_take: Signal<Out, Bit>,
    pub last: Signal<Out, Bit>,
    pub error: Signal<Out, Bit>,
}

/// The pins of an SDRAM chip at their greatest widths, with separate data input and output.
#[derive(LogicInterface, Default)]
pub struct SdramPins {
    pub ras_n: Signal<Out, Bit>,
    pub cas_n: Signal<Out, Bit>,
    pub we_n: Signal<Out, Bit>,
    pub a: Signal<Out, Bits<13>>,
    pub ba: Signal<Out, Bits<2>>,
    pub dqm: Signal<Out, Bits<4>>,
    pub dq_o: Signal<Out, Bits<32>>,
    /// The shell drives the data pins.
    pub dq_oe: Signal<Out, Bit>,
    pub dq_i: Signal<In, Bits<32>>,
}
