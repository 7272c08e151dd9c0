//! Frames from the host: accesses registers, forwards the bodies of memory frames, and resyncs after a run of zero
//! bytes.

use rust_hdl::prelude::*;
use tilewright_hw::config::HwConfig;
use tilewright_hw::link::{MemorySide, ToBoard, hello, resync_bytes};

use crate::bytes::{LinkBytes, ReceivedBody, RegisterPort};
use crate::crc::Crc;

#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum ReceiverState {
    Kind,
    Address,
    Value,
    Body,
    CrcLow,
    CrcHigh,
    Refused,
}

/// The receiver of frames.
#[derive(LogicBlock)]
pub struct Receiver {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub bytes: LinkBytes,
    pub regs: RegisterPort,
    pub body: ReceivedBody,
    /// A register was read: `word` is the first byte of its value, and `word_next` advances to the next. After a reset,
    /// `word` gives the body of `Hello`.
    pub value: Signal<Out, Bit>,
    pub word: Signal<Out, Bits<8>>,
    pub word_next: Signal<In, Bit>,
    /// A write to a register, or to memory on the board, is done.
    pub done: Signal<Out, Bit>,
    /// A frame was refused because of its kind or its CRC; all later bytes are ignored.
    pub refused: Signal<Out, Bit>,
    pub unknown_kind: Signal<Out, Bit>,
    /// The link resyncs.
    pub resync: Signal<Out, Bit>,
    state: DFF<ReceiverState>,
    kind: DFF<Bits<3>>,
    step: DFF<Bits<2>>,
    addr_low: DFF<Bits<8>>,
    addr_high: DFF<Bits<4>>,
    /// A register's value while it is received or sent; after a reset, the body of `Hello`.
    value_bits: DFF<Bits<32>>,
    low_wrong: DFF<Bit>,
    /// A register's frame was correct: the access takes place in this cycle, in which `kind` is still valid.
    access: DFF<Bit>,
    unknown: DFF<Bit>,
    zeros: DFF<Bits<16>>,
    crc: Crc,
    in_frame: Signal<Local, Bit>,
    is_small: Signal<Local, Bit>,
    low: Signal<Local, Bits<3>>,
    is_write: Signal<Local, Bit>,
    is_read: Signal<Local, Bit>,
    is_memory_write: Signal<Local, Bit>,
    right: Signal<Local, Bit>,
    write_reg: Constant<Bits<8>>,
    read_reg: Constant<Bits<8>>,
    /// The two kinds of memory frames that this memory accepts.
    first_memory: Constant<Bits<8>>,
    second_memory: Constant<Bits<8>>,
    answers_writes: Constant<Bit>,
    /// Mask of the counter of zeros; the run is a power of two.
    run_mask: Constant<Bits<16>>,
    /// The body of `Hello`.
    hello: Constant<Bits<32>>,
}

fn code(kind: ToBoard) -> Constant<Bits<8>> {
    Constant::new((kind as u64).into())
}

impl Receiver {
    pub fn new(config: &HwConfig, memory: MemorySide) -> Self {
        let run = resync_bytes(config) as u64;
        let (first, second) = match memory {
            MemorySide::Host => (ToBoard::ReadData, ToBoard::WriteDone),
            MemorySide::Board { .. } => (ToBoard::WriteMemory, ToBoard::ReadMemory),
        };
        Receiver {
            clock: Default::default(),
            reset: Default::default(),
            bytes: Default::default(),
            regs: Default::default(),
            body: Default::default(),
            value: Default::default(),
            word: Default::default(),
            word_next: Default::default(),
            done: Default::default(),
            refused: Default::default(),
            unknown_kind: Default::default(),
            resync: Default::default(),
            state: Default::default(),
            kind: Default::default(),
            step: Default::default(),
            addr_low: Default::default(),
            addr_high: Default::default(),
            value_bits: Default::default(),
            low_wrong: Default::default(),
            access: Default::default(),
            unknown: Default::default(),
            zeros: Default::default(),
            crc: Default::default(),
            in_frame: Default::default(),
            is_small: Default::default(),
            low: Default::default(),
            is_write: Default::default(),
            is_read: Default::default(),
            is_memory_write: Default::default(),
            right: Default::default(),
            write_reg: code(ToBoard::WriteReg),
            read_reg: code(ToBoard::ReadReg),
            first_memory: code(first),
            second_memory: code(second),
            answers_writes: Constant::new(memory != MemorySide::Host),
            run_mask: Constant::new((run - 1).into()),
            hello: Constant::new(u64::from(u32::from_le_bytes(hello(config, memory))).into()),
        }
    }
}

impl Logic for Receiver {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, kind, step, addr_low, addr_high, value_bits, low_wrong, access, unknown, zeros);
        clock!(self, clock, crc);

        self.is_write.next = self.kind.q.val() == bit_cast::<3, 8>(self.write_reg.val());
        self.is_read.next = self.kind.q.val() == bit_cast::<3, 8>(self.read_reg.val());
        self.is_memory_write.next =
            self.answers_writes.val() && (self.kind.q.val() == bit_cast::<3, 8>(self.first_memory.val()));
        // All kinds have codes of three bits.
        self.is_small.next = (self.bytes.data.val() >> 3) == 0;
        self.low.next = bit_cast::<3, 8>(self.bytes.data.val());
        self.in_frame.next = (self.state.q.val() == ReceiverState::Kind)
            || (self.state.q.val() == ReceiverState::Address)
            || (self.state.q.val() == ReceiverState::Value)
            || (self.state.q.val() == ReceiverState::Body);
        // Two bytes never arrive in adjacent cycles.
        self.crc.clear.next = (self.state.q.val() == ReceiverState::Kind) && !self.bytes.valid.val();
        self.crc.feed.next = self.bytes.valid.val() && self.in_frame.val();
        self.crc.data.next = self.bytes.data.val();
        self.right.next =
            !self.low_wrong.q.val() && (self.bytes.data.val() == bit_cast::<8, 16>(self.crc.value.val() >> 8));

        self.regs.valid.next = self.access.q.val();
        self.regs.write.next = self.is_write.val();
        self.regs.addr.next =
            (bit_cast::<12, 4>(self.addr_high.q.val()) << 8) | bit_cast::<12, 8>(self.addr_low.q.val());
        self.regs.wdata.next = self.value_bits.q.val();
        self.body.kind.next = self.kind.q.val();
        self.body.valid.next = self.bytes.valid.val() && (self.state.q.val() == ReceiverState::Body);
        self.body.data.next = self.bytes.data.val();
        self.body.commit.next = false;
        self.word.next = bit_cast::<8, 32>(self.value_bits.q.val());
        self.value.next = self.access.q.val() && self.is_read.val();
        self.done.next = self.access.q.val() && self.is_write.val();
        self.access.d.next = false;
        self.refused.next = self.state.q.val() == ReceiverState::Refused;
        self.unknown_kind.next = self.unknown.q.val();

        if self.word_next.val() || (self.bytes.valid.val() && (self.state.q.val() == ReceiverState::Value)) {
            self.value_bits.d.next = (self.value_bits.q.val() >> 8) | (bit_cast::<32, 8>(self.bytes.data.val()) << 24);
        }
        if self.access.q.val() && self.is_read.val() {
            self.value_bits.d.next = self.regs.rdata.val();
        }
        if self.state.q.val() == ReceiverState::Kind {
            self.kind.d.next = bit_cast::<3, 8>(self.bytes.data.val());
            self.step.d.next = 0.into();
        }
        if self.bytes.valid.val() {
            match self.state.q.val() {
                ReceiverState::Kind => {
                    if self.is_small.val()
                        && ((self.low.val() == bit_cast::<3, 8>(self.write_reg.val()))
                            || (self.low.val() == bit_cast::<3, 8>(self.read_reg.val())))
                    {
                        self.state.d.next = ReceiverState::Address;
                    } else if self.is_small.val()
                        && ((self.low.val() == bit_cast::<3, 8>(self.first_memory.val()))
                            || (self.low.val() == bit_cast::<3, 8>(self.second_memory.val())))
                    {
                        self.state.d.next = ReceiverState::Body;
                    } else if (self.bytes.data.val() != 0) && !self.bytes.data.val().all() {
                        self.state.d.next = ReceiverState::Refused;
                        self.unknown.d.next = true;
                    }
                }
                ReceiverState::Address => {
                    self.step.d.next = self.step.q.val() ^ 1;
                    if self.step.q.val() == 0 {
                        self.addr_low.d.next = self.bytes.data.val();
                    } else {
                        self.addr_high.d.next = bit_cast::<4, 8>(self.bytes.data.val());
                        self.state.d.next = ReceiverState::CrcLow;
                        if self.is_write.val() {
                            self.state.d.next = ReceiverState::Value;
                        }
                    }
                }
                ReceiverState::Value => {
                    self.step.d.next = self.step.q.val() + 1;
                    if self.step.q.val().all() {
                        self.state.d.next = ReceiverState::CrcLow;
                    }
                }
                ReceiverState::Body => {
                    if self.body.last.val() {
                        self.state.d.next = ReceiverState::CrcLow;
                    }
                }
                ReceiverState::CrcLow => {
                    self.low_wrong.d.next = self.bytes.data.val() != bit_cast::<8, 16>(self.crc.value.val());
                    self.state.d.next = ReceiverState::CrcHigh;
                }
                ReceiverState::CrcHigh => {
                    self.state.d.next = ReceiverState::Refused;
                    self.unknown.d.next = false;
                    if self.right.val() {
                        self.state.d.next = ReceiverState::Kind;
                        self.access.d.next = self.is_write.val() || self.is_read.val();
                        self.body.commit.next = !self.is_write.val() && !self.is_read.val();
                        if self.is_memory_write.val() {
                            self.done.next = true;
                        }
                    }
                }
                _ => {}
            }
        }

        // The counter keeps counting through the reset, so that each run of this length resets once.
        self.resync.next = false;
        if self.bytes.valid.val() {
            self.zeros.d.next = 0.into();
            if self.bytes.data.val() == 0 {
                self.zeros.d.next = (self.zeros.q.val() + 1) & self.run_mask.val();
                self.resync.next = self.zeros.q.val() == self.run_mask.val();
            }
        }
        if self.reset.val() {
            self.state.d.next = ReceiverState::Kind;
            self.access.d.next = false;
            self.value_bits.d.next = self.hello.val();
        }
    }
}
