//! Memory on the board: the core's reads and writes and the host's accesses share the memory's port, burst by burst.
//!
//! The host goes first, one beat at a time. Of the core's two sides, the one that was not served last goes next.

use rust_hdl::prelude::*;
use tilewright_hw::link::{ToBoard, ToHost};

use crate::bytes::{BodyIn, BodyOut, BurstPort, MemoryBus};

/// Owner of the burst in progress.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum Owner {
    Host,
    Read,
    Write,
}

/// Meaning of the next byte of the host's frame.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum HostState {
    Address,
    Beats,
    Data,
}

/// The arbiter. `LOG` is the base-2 logarithm of `BYTES`, the bytes of a beat.
#[derive(LogicBlock)]
pub struct BoardMemory<const BUS: usize, const BYTES: usize, const LOG: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub bus: MemoryBus<BUS, BYTES>,
    pub to_host: BodyOut,
    pub from_host: BodyIn,
    pub port: BurstPort<BUS, BYTES>,
    owner: DFF<Owner>,
    client: DFF<Bit>,
    acknowledge: DFF<Bit>,
    write_error: DFF<Bit>,
    host: DFF<HostState>,
    step: DFF<Bits<3>>,
    host_addr: DFF<Bits<40>>,
    host_beats: DFF<Bits<8>>,
    host_writes: DFF<Bit>,
    /// The host's beat is due to be written, or its next beat to be read.
    host_due: DFF<Bit>,
    /// `beat` holds a beat that was read for the host.
    beat_there: DFF<Bit>,
    beat: DFF<Bits<BUS>>,
    byte_of_beat: DFF<Bits<LOG>>,
    take_write: Signal<Local, Bit>,
    read_memory: Constant<Bits<8>>,
    memory_data: Constant<Bits<8>>,
    beat_bytes: Constant<Bits<40>>,
    top_byte: Constant<Bits<16>>,
    all_strobes: Constant<Bits<BYTES>>,
}

impl<const BUS: usize, const BYTES: usize, const LOG: usize> Default for BoardMemory<BUS, BYTES, LOG> {
    fn default() -> Self {
        BoardMemory {
            clock: Default::default(),
            reset: Default::default(),
            bus: Default::default(),
            to_host: Default::default(),
            from_host: Default::default(),
            port: Default::default(),
            owner: Default::default(),
            client: Default::default(),
            acknowledge: Default::default(),
            write_error: Default::default(),
            host: Default::default(),
            step: Default::default(),
            host_addr: Default::default(),
            host_beats: Default::default(),
            host_writes: Default::default(),
            host_due: Default::default(),
            beat_there: Default::default(),
            beat: Default::default(),
            byte_of_beat: Default::default(),
            take_write: Default::default(),
            read_memory: Constant::new((ToBoard::ReadMemory as u64).into()),
            memory_data: Constant::new((ToHost::MemoryData as u64).into()),
            beat_bytes: Constant::new((BYTES as u64).into()),
            top_byte: Constant::new((BUS as u64 - 8).into()),
            all_strobes: Constant::new(!Bits::<BYTES>::default()),
        }
    }
}

impl<const BUS: usize, const BYTES: usize, const LOG: usize> Logic for BoardMemory<BUS, BYTES, LOG> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            owner,
            client,
            acknowledge,
            write_error,
            host,
            step,
            host_addr,
            host_beats,
            host_writes,
            host_due,
            beat_there,
            beat,
            byte_of_beat
        );

        // Select who is next.
        self.take_write.next =
            self.bus.aw_valid.val() && (!self.bus.ar_valid.val() || (self.owner.q.val() != Owner::Write));
        self.port.request.next = self.host_due.q.val() || self.bus.ar_valid.val() || self.bus.aw_valid.val();
        self.bus.ar_ready.next = false;
        self.bus.aw_ready.next = false;
        if self.host_due.q.val() {
            self.port.write.next = self.host_writes.q.val();
            self.port.addr.next = self.host_addr.q.val();
            self.port.len.next = 0.into();
            if self.port.ready.val() {
                self.owner.d.next = Owner::Host;
                self.host_due.d.next = false;
                self.host_addr.d.next = self.host_addr.q.val() + self.beat_bytes.val();
            }
        } else if self.take_write.val() {
            self.port.write.next = true;
            self.port.addr.next = self.bus.aw_addr.val();
            self.port.len.next = self.bus.aw_len.val();
            self.bus.aw_ready.next = self.port.ready.val();
            if self.port.ready.val() {
                self.owner.d.next = Owner::Write;
            }
        } else {
            self.port.write.next = false;
            self.port.addr.next = self.bus.ar_addr.val();
            self.port.len.next = self.bus.ar_len.val();
            self.bus.ar_ready.next = self.port.ready.val() && self.bus.ar_valid.val();
            if self.port.ready.val() && self.bus.ar_valid.val() {
                self.owner.d.next = Owner::Read;
                self.client.d.next = self.bus.ar_id.val();
            }
        }

        // The core's beats.
        self.bus.r_valid.next = self.port.r_valid.val() && (self.owner.q.val() == Owner::Read);
        self.bus.r_id.next = self.client.q.val();
        self.bus.r_data.next = self.port.r_data.val();
        self.bus.r_error.next = self.port.error.val();
        self.bus.r_last.next = self.port.last.val();
        self.port.w_valid.next = true;
        self.port.w_data.next = self.beat.q.val();
        self.port.w_strb.next = self.all_strobes.val();
        if self.owner.q.val() == Owner::Write {
            self.port.w_valid.next = self.bus.w_valid.val();
            self.port.w_data.next = self.bus.w_data.val();
            self.port.w_strb.next = self.bus.w_strb.val();
        }
        self.bus.w_ready.next = self.port.w_take.val() && (self.owner.q.val() == Owner::Write);
        self.acknowledge.d.next =
            self.port.w_take.val() && self.port.last.val() && (self.owner.q.val() == Owner::Write);
        self.write_error.d.next = self.port.error.val();
        self.bus.b_valid.next = self.acknowledge.q.val();
        self.bus.b_error.next = self.write_error.q.val();

        // The host's frames.
        self.from_host.last.next = false;
        if self.from_host.valid.val() {
            match self.host.q.val() {
                HostState::Address => {
                    self.host_addr.d.next =
                        (self.host_addr.q.val() >> 8) | (bit_cast::<40, 8>(self.from_host.data.val()) << 32);
                    self.step.d.next = self.step.q.val() + 1;
                    if self.step.q.val() == 4 {
                        self.step.d.next = 0.into();
                        self.host.d.next = HostState::Beats;
                    }
                }
                HostState::Beats => {
                    self.host_beats.d.next = self.from_host.data.val();
                    self.byte_of_beat.d.next = 0.into();
                    self.host_writes.d.next = true;
                    self.host.d.next = HostState::Data;
                    if self.from_host.kind.val() == bit_cast::<3, 8>(self.read_memory.val()) {
                        self.host_writes.d.next = false;
                        self.from_host.last.next = true;
                        self.host.d.next = HostState::Address;
                    }
                }
                _ => {
                    self.beat.d.next = (self.beat.q.val() >> 8)
                        | (bit_cast::<BUS, 8>(self.from_host.data.val()) << self.top_byte.val());
                    self.byte_of_beat.d.next = self.byte_of_beat.q.val() + 1;
                    if self.byte_of_beat.q.val().all() {
                        self.host_due.d.next = true;
                        self.host_beats.d.next = self.host_beats.q.val() - 1;
                        if self.host_beats.q.val() == 0 {
                            self.from_host.last.next = true;
                            self.host.d.next = HostState::Address;
                        }
                    }
                }
            }
        }
        if self.from_host.commit.val() && !self.host_writes.q.val() {
            self.host_due.d.next = true;
        }
        if self.port.r_valid.val() && (self.owner.q.val() == Owner::Host) {
            self.beat.d.next = self.port.r_data.val();
            self.beat_there.d.next = true;
        }
        self.to_host.valid.next = self.beat_there.q.val();
        self.to_host.kind.next = bit_cast::<3, 8>(self.memory_data.val());
        self.to_host.data.next = bit_cast::<8, BUS>(self.beat.q.val());
        self.to_host.last.next = self.byte_of_beat.q.val().all() && (self.host_beats.q.val() == 0);
        if self.to_host.take.val() {
            self.beat.d.next = self.beat.q.val() >> 8;
            self.byte_of_beat.d.next = self.byte_of_beat.q.val() + 1;
            if self.byte_of_beat.q.val().all() {
                self.beat_there.d.next = false;
                self.host_beats.d.next = self.host_beats.q.val() - 1;
                self.host_due.d.next = self.host_beats.q.val() != 0;
            }
        }

        if self.reset.val() {
            self.owner.d.next = Owner::Host;
            self.acknowledge.d.next = false;
            self.host.d.next = HostState::Address;
            self.step.d.next = 0.into();
            self.host_due.d.next = false;
            self.beat_there.d.next = false;
            self.port.request.next = false;
        }
    }
}

#[cfg(test)]
#[path = "board_memory/tests.rs"]
mod tests;
