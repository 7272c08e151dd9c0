//! Memory at the host: turns the core's bus requests into frames, and the host's frames into answers.
//!
//! A request is accepted from the core in the cycle in which it is seen, and only when the previous frame is done: the
//! core may replace a waiting request with another client's.

use rust_hdl::prelude::*;
use tilewright_hw::config::HwConfig;
use tilewright_hw::link::{ToBoard, ToHost, longest_burst, strobe_bytes};

use crate::bytes::{BodyIn, BodyOut, MemoryBus};

/// Meaning of the next byte to the host.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum RequestState {
    Idle,
    Client,
    Address,
    Beats,
    FirstStrobes,
    Data,
    LastStrobes,
}

/// Meaning of the next byte of read data.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum AnswerState {
    Client,
    Beats,
    Status,
    Data,
}

/// The bridge between bus and frames. `LOG` is the base-2 logarithm of `BYTES`, the bytes of a beat.
#[derive(LogicBlock)]
pub struct HostMemory<const BUS: usize, const BYTES: usize, const LOG: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Always high: the memory needs no time after power-up.
    pub up: Signal<Out, Bit>,
    pub bus: MemoryBus<BUS, BYTES>,
    pub to_host: BodyOut,
    pub from_host: BodyIn,
    request: DFF<RequestState>,
    is_write: DFF<Bit>,
    client: DFF<Bit>,
    addr: DFF<Bits<40>>,
    len: DFF<Bits<8>>,
    /// Bytes sent so far of the address, of strobes or of a beat.
    sent: DFF<Bits<LOG>>,
    addr_step: DFF<Bits<3>>,
    answer: DFF<AnswerState>,
    answer_client: DFF<Bit>,
    answer_error: DFF<Bit>,
    beats_left: DFF<Bits<8>>,
    received: DFF<Bits<LOG>>,
    beat: DFF<Bits<BUS>>,
    next_beat: Signal<Local, Bits<BUS>>,
    place: Signal<Local, Bits<16>>,
    read_request: Constant<Bits<8>>,
    write_request: Constant<Bits<8>>,
    write_done: Constant<Bits<8>>,
    last_strobes: Constant<Bits<LOG>>,
    top_byte: Constant<Bits<16>>,
    /// Mask of the bits that the beats of the longest burst, minus one, need.
    longest: Constant<Bits<8>>,
}

impl<const BUS: usize, const BYTES: usize, const LOG: usize> HostMemory<BUS, BYTES, LOG> {
    pub fn new(config: &HwConfig) -> Self {
        HostMemory {
            clock: Default::default(),
            reset: Default::default(),
            up: Default::default(),
            bus: Default::default(),
            to_host: Default::default(),
            from_host: Default::default(),
            request: Default::default(),
            is_write: Default::default(),
            client: Default::default(),
            addr: Default::default(),
            len: Default::default(),
            sent: Default::default(),
            addr_step: Default::default(),
            answer: Default::default(),
            answer_client: Default::default(),
            answer_error: Default::default(),
            beats_left: Default::default(),
            received: Default::default(),
            beat: Default::default(),
            next_beat: Default::default(),
            place: Default::default(),
            read_request: Constant::new((ToHost::ReadRequest as u64).into()),
            write_request: Constant::new((ToHost::WriteRequest as u64).into()),
            write_done: Constant::new((ToBoard::WriteDone as u64).into()),
            last_strobes: Constant::new((strobe_bytes(config) as u64 - 1).into()),
            top_byte: Constant::new((BUS as u64 - 8).into()),
            longest: Constant::new(u64::from(longest_burst(config).next_power_of_two() - 1).into()),
        }
    }
}

impl<const BUS: usize, const BYTES: usize, const LOG: usize> Logic for HostMemory<BUS, BYTES, LOG> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            request,
            is_write,
            client,
            addr,
            len,
            sent,
            addr_step,
            answer,
            answer_client,
            answer_error,
            beats_left,
            received,
            beat
        );

        self.up.next = true;
        // Requests.
        self.bus.aw_ready.next = self.request.q.val() == RequestState::Idle;
        self.bus.ar_ready.next = (self.request.q.val() == RequestState::Idle) && !self.bus.aw_valid.val();
        self.bus.w_ready.next = false;
        if self.request.q.val() == RequestState::Idle {
            self.is_write.d.next = self.bus.aw_valid.val();
            self.client.d.next = self.bus.ar_id.val();
            self.sent.d.next = 0.into();
            self.addr_step.d.next = 0.into();
            self.addr.d.next = self.bus.ar_addr.val();
            self.len.d.next = self.bus.ar_len.val() & self.longest.val();
            if self.bus.aw_valid.val() {
                self.addr.d.next = self.bus.aw_addr.val();
                self.len.d.next = self.bus.aw_len.val() & self.longest.val();
                self.request.d.next = RequestState::Address;
            } else if self.bus.ar_valid.val() {
                self.request.d.next = RequestState::Client;
            }
        }
        self.place.next = bit_cast::<16, LOG>(self.sent.q.val()) << 3;
        self.to_host.valid.next = self.request.q.val() != RequestState::Idle;
        self.to_host.kind.next = bit_cast::<3, 8>(self.read_request.val());
        if self.is_write.q.val() {
            self.to_host.kind.next = bit_cast::<3, 8>(self.write_request.val());
        }
        self.to_host.data.next = bit_cast::<8, BUS>(self.bus.w_data.val() >> self.place.val());
        self.to_host.last.next = false;
        match self.request.q.val() {
            RequestState::Client => {
                self.to_host.data.next = bit_cast::<8, 1>(self.client.q.val().into());
                if self.to_host.take.val() {
                    self.request.d.next = RequestState::Address;
                }
            }
            RequestState::Address => {
                self.to_host.data.next = bit_cast::<8, 40>(self.addr.q.val());
                if self.to_host.take.val() {
                    self.addr.d.next = self.addr.q.val() >> 8;
                    self.addr_step.d.next = self.addr_step.q.val() + 1;
                    if self.addr_step.q.val() == 4 {
                        self.request.d.next = RequestState::Beats;
                    }
                }
            }
            RequestState::Beats => {
                self.to_host.data.next = self.len.q.val();
                self.to_host.last.next = !self.is_write.q.val();
                if self.to_host.take.val() {
                    self.request.d.next = RequestState::Idle;
                    if self.is_write.q.val() {
                        self.request.d.next = RequestState::FirstStrobes;
                    }
                }
            }
            RequestState::FirstStrobes => {
                self.to_host.valid.next = self.bus.w_valid.val();
                self.to_host.data.next = bit_cast::<8, BYTES>(self.bus.w_strb.val() >> self.place.val());
                if self.to_host.take.val() {
                    self.sent.d.next = self.sent.q.val() + 1;
                    if self.sent.q.val() == self.last_strobes.val() {
                        self.sent.d.next = 0.into();
                        self.request.d.next = RequestState::Data;
                    }
                }
            }
            RequestState::Data => {
                self.to_host.valid.next = self.bus.w_valid.val();
                if self.to_host.take.val() {
                    self.sent.d.next = self.sent.q.val() + 1;
                    if self.sent.q.val().all() {
                        // The last beat is kept for its strobes.
                        self.bus.w_ready.next = !self.bus.w_last.val();
                        if self.bus.w_last.val() {
                            self.request.d.next = RequestState::LastStrobes;
                        }
                    }
                }
            }
            RequestState::LastStrobes => {
                self.to_host.data.next = bit_cast::<8, BYTES>(self.bus.w_strb.val() >> self.place.val());
                self.to_host.last.next = self.sent.q.val() == self.last_strobes.val();
                if self.to_host.take.val() {
                    self.sent.d.next = self.sent.q.val() + 1;
                    if self.sent.q.val() == self.last_strobes.val() {
                        self.bus.w_ready.next = true;
                        self.request.d.next = RequestState::Idle;
                    }
                }
            }
            _ => {}
        }

        // Answers.
        self.next_beat.next =
            (self.beat.q.val() >> 8) | (bit_cast::<BUS, 8>(self.from_host.data.val()) << self.top_byte.val());
        self.from_host.last.next = false;
        self.bus.r_valid.next = false;
        self.bus.r_id.next = self.answer_client.q.val();
        self.bus.r_data.next = self.next_beat.val();
        self.bus.r_error.next = self.answer_error.q.val();
        self.bus.r_last.next = self.beats_left.q.val() == 0;
        self.bus.b_valid.next = false;
        self.bus.b_error.next = self.answer_error.q.val();
        if self.from_host.commit.val() {
            self.bus.b_valid.next = self.from_host.kind.val() == bit_cast::<3, 8>(self.write_done.val());
        }
        if self.from_host.kind.val() == bit_cast::<3, 8>(self.write_done.val()) {
            self.from_host.last.next = true;
            if self.from_host.valid.val() {
                self.answer_error.d.next = self.from_host.data.val().get_bit(0);
            }
        } else if self.from_host.valid.val() {
            match self.answer.q.val() {
                AnswerState::Client => {
                    self.answer_client.d.next = self.from_host.data.val().get_bit(0);
                    self.answer.d.next = AnswerState::Beats;
                }
                AnswerState::Beats => {
                    self.beats_left.d.next = self.from_host.data.val() & self.longest.val();
                    self.answer.d.next = AnswerState::Status;
                }
                AnswerState::Status => {
                    self.answer_error.d.next = self.from_host.data.val().get_bit(0);
                    self.received.d.next = 0.into();
                    self.answer.d.next = AnswerState::Data;
                }
                _ => {
                    self.beat.d.next = self.next_beat.val();
                    self.received.d.next = self.received.q.val() + 1;
                    if self.received.q.val().all() {
                        self.bus.r_valid.next = true;
                        self.beats_left.d.next = (self.beats_left.q.val() - 1) & self.longest.val();
                        if self.beats_left.q.val() == 0 {
                            self.from_host.last.next = true;
                            self.answer.d.next = AnswerState::Client;
                        }
                    }
                }
            }
        }
        if self.reset.val() {
            self.request.d.next = RequestState::Idle;
            self.answer.d.next = AnswerState::Client;
        }
    }
}
