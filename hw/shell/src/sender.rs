//! Frames to the host: answers, the interrupt, and the memory's frames.

use rust_hdl::prelude::*;
use tilewright_hw::link::ToHost;

use crate::bytes::{SentBody, SentBytes};
use crate::crc::Crc;

#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum SenderState {
    Idle,
    Kind,
    Reason,
    Word,
    Body,
    CrcLow,
    CrcHigh,
}

/// The sender of frames.
#[derive(LogicBlock)]
pub struct Sender {
    pub clock: Signal<In, Clock>,
    /// After a reset the first frame is `Hello`.
    pub reset: Signal<In, Bit>,
    pub bytes: SentBytes,
    /// Requests a `Value` frame; its bytes come from `word`, as those of `Hello` do.
    pub value: Signal<In, Bit>,
    pub word: Signal<In, Bits<8>>,
    pub word_next: Signal<Out, Bit>,
    /// Requests a `Done` frame.
    pub done: Signal<In, Bit>,
    /// Requests a `Refused` frame; nothing follows it.
    pub refused: Signal<In, Bit>,
    pub unknown_kind: Signal<In, Bit>,
    /// The core's interrupt.
    pub irq: Signal<In, Bit>,
    pub body: SentBody,
    state: DFF<SenderState>,
    kind: DFF<Bits<4>>,
    step: DFF<Bits<2>>,
    hello_due: DFF<Bit>,
    value_due: DFF<Bit>,
    done_due: DFF<Bit>,
    irq_due: DFF<Bit>,
    irq_before: DFF<Bit>,
    refused_sent: DFF<Bit>,
    crc: Crc,
    data: Signal<Local, Bits<8>>,
    valid: Signal<Local, Bit>,
    is_hello: Signal<Local, Bit>,
    taken: Signal<Local, Bit>,
    kind_value: Constant<Bits<4>>,
    kind_done: Constant<Bits<4>>,
    kind_interrupt: Constant<Bits<4>>,
    kind_hello: Constant<Bits<4>>,
    kind_refused: Constant<Bits<4>>,
}

/// The low four bits of a kind's code; the high four are those of 0x80.
fn code(kind: ToHost) -> Constant<Bits<4>> {
    Constant::new((kind as u64 & 0xf).into())
}

impl Default for Sender {
    fn default() -> Self {
        Sender {
            clock: Default::default(),
            reset: Default::default(),
            bytes: Default::default(),
            value: Default::default(),
            word: Default::default(),
            word_next: Default::default(),
            done: Default::default(),
            refused: Default::default(),
            unknown_kind: Default::default(),
            irq: Default::default(),
            body: Default::default(),
            state: Default::default(),
            kind: Default::default(),
            step: Default::default(),
            hello_due: Default::default(),
            value_due: Default::default(),
            done_due: Default::default(),
            irq_due: Default::default(),
            irq_before: Default::default(),
            refused_sent: Default::default(),
            crc: Default::default(),
            data: Default::default(),
            valid: Default::default(),
            is_hello: Default::default(),
            taken: Default::default(),
            kind_value: code(ToHost::Value),
            kind_done: code(ToHost::Done),
            kind_interrupt: code(ToHost::Interrupt),
            kind_hello: code(ToHost::Hello),
            kind_refused: code(ToHost::Refused),
        }
    }
}

impl Logic for Sender {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, kind, step, hello_due, value_due, done_due, irq_due, irq_before, refused_sent);
        clock!(self, clock, crc);

        match self.state.q.val() {
            SenderState::Kind => {
                self.data.next = bit_cast::<8, 4>(self.kind.q.val()) | 0x80;
            }
            SenderState::Reason => {
                self.data.next = 1.into();
                if self.unknown_kind.val() {
                    self.data.next = 2.into();
                }
            }
            SenderState::Word => {
                self.data.next = self.word.val();
            }
            SenderState::CrcLow => {
                self.data.next = bit_cast::<8, 16>(self.crc.value.val());
            }
            SenderState::CrcHigh => {
                self.data.next = bit_cast::<8, 16>(self.crc.value.val() >> 8);
            }
            _ => {
                self.data.next = self.body.data.val();
            }
        }
        self.is_hello.next = self.kind.q.val() == self.kind_hello.val();
        self.valid.next = (self.state.q.val() != SenderState::Idle)
            && ((self.state.q.val() != SenderState::Body) || self.body.valid.val());
        self.taken.next = self.valid.val() && self.bytes.ready.val();
        self.bytes.valid.next = self.valid.val();
        self.bytes.data.next = self.data.val();
        self.body.take.next = self.taken.val() && (self.state.q.val() == SenderState::Body);
        self.word_next.next = self.taken.val() && (self.state.q.val() == SenderState::Word);
        self.crc.clear.next = self.state.q.val() == SenderState::Idle;
        self.crc.feed.next = self.taken.val() && (self.state.q.val() != SenderState::CrcLow);
        self.crc.data.next = self.data.val();

        if self.state.q.val() == SenderState::Idle {
            self.step.d.next = 0.into();
            if self.hello_due.q.val() {
                self.state.d.next = SenderState::Kind;
                self.kind.d.next = self.kind_hello.val();
                self.hello_due.d.next = false;
            } else if self.refused_sent.q.val() {
                self.state.d.next = SenderState::Idle;
            } else if self.refused.val() {
                self.state.d.next = SenderState::Kind;
                self.kind.d.next = self.kind_refused.val();
                self.refused_sent.d.next = true;
            } else if self.value_due.q.val() {
                self.state.d.next = SenderState::Kind;
                self.kind.d.next = self.kind_value.val();
                self.value_due.d.next = false;
            } else if self.done_due.q.val() {
                self.state.d.next = SenderState::Kind;
                self.kind.d.next = self.kind_done.val();
                self.done_due.d.next = false;
            } else if self.irq_due.q.val() {
                self.state.d.next = SenderState::Kind;
                self.kind.d.next = self.kind_interrupt.val();
                self.irq_due.d.next = false;
            } else if self.body.valid.val() {
                self.state.d.next = SenderState::Kind;
                self.kind.d.next = bit_cast::<4, 3>(self.body.kind.val());
            }
        }
        if self.taken.val() {
            match self.state.q.val() {
                SenderState::Kind => {
                    self.state.d.next = SenderState::Body;
                    if (self.kind.q.val() == self.kind_value.val()) || self.is_hello.val() {
                        self.state.d.next = SenderState::Word;
                    } else if self.kind.q.val() == self.kind_refused.val() {
                        self.state.d.next = SenderState::Reason;
                    } else if (self.kind.q.val() == self.kind_done.val())
                        || (self.kind.q.val() == self.kind_interrupt.val())
                    {
                        self.state.d.next = SenderState::CrcLow;
                    }
                }
                SenderState::Reason => {
                    self.state.d.next = SenderState::CrcLow;
                }
                SenderState::Word => {
                    self.step.d.next = self.step.q.val() + 1;
                    if self.step.q.val().all() {
                        self.state.d.next = SenderState::CrcLow;
                    }
                }
                SenderState::Body => {
                    if self.body.last.val() {
                        self.state.d.next = SenderState::CrcLow;
                    }
                }
                SenderState::CrcLow => {
                    self.state.d.next = SenderState::CrcHigh;
                }
                _ => {
                    self.state.d.next = SenderState::Idle;
                }
            }
        }

        if self.value.val() {
            self.value_due.d.next = true;
        }
        if self.done.val() {
            self.done_due.d.next = true;
        }
        self.irq_before.d.next = self.irq.val();
        if self.irq.val() && !self.irq_before.q.val() {
            self.irq_due.d.next = true;
        }
        if self.reset.val() {
            self.state.d.next = SenderState::Idle;
            self.hello_due.d.next = true;
            self.value_due.d.next = false;
            self.done_due.d.next = false;
            self.irq_due.d.next = false;
            self.irq_before.d.next = false;
            self.refused_sent.d.next = false;
        }
    }
}
