//! A memory in an SDR SDRAM chip: serves bursts with one row open at a time.
//!
//! A row stays open until another is needed or a refresh is due, which can come between two words of a burst. Each word
//! is a separate read or write command, one per cycle; the chip's own bursts are not used. The chip's clock rises in
//! the middle of a cycle, half a cycle after the commands change. Its data is sampled at the next middle of a cycle
//! ([`Capture`]), which works for slow and fast clocks. Bytes that a write leaves out are masked; if the chip has no
//! masks, their word is read and written back.
//!
//! A reset ends the burst. The chip keeps its contents, and the state machine of the chip continues.

use rust_hdl::prelude::*;
use tilewright_hw::flow::sdram::{Cycles, Geometry, MODE_CYCLES, PIPELINE_CYCLES, START_REFRESHES};

use crate::board_memory::BoardMemory;
use crate::bytes::{BodyIn, BodyOut, BurstPort, MemoryBus, SdramPins, ServedPort};

/// Samples the data pins at the falling edges of the clock.
#[derive(LogicBlock, Default)]
struct Capture {
    pub clock: Signal<In, Clock>,
    pub d: Signal<In, Bits<32>>,
    pub q: Signal<Out, Bits<32>>,
}

impl Logic for Capture {
    fn update(&mut self) {
        if self.clock.neg_edge() {
            self.q.next = self.d.val();
        }
    }

    fn connect(&mut self) {
        self.q.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom("initial begin\n   q = 32'h0;\nend\n\nalways @(negedge clock) begin\n   q <= d;\nend".into())
    }
}

/// State of the chip, which decides the commands it accepts.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum ChipState {
    PowerUp,
    FirstPrecharge,
    FirstRefreshes,
    Mode,
    Closed,
    Open,
}

/// Most cycles of a beat from its request on, for a read and for a write. The worst case follows a row that was just
/// opened and written: a refresh, a row to open, and, without masks, each word to be read and written back.
pub fn most_beat_cycles(bus_bits: u32, geometry: Geometry, cycles: Cycles) -> [u32; 2] {
    let words = bus_bits / geometry.data_bits;
    let Cycles { cas, rcd, rp, ras, rfc, wr, .. } = cycles;
    let before = 1 + ras.max(wr).max(cas) + rp + rfc + rcd;
    let read = cas + PIPELINE_CYCLES + 1;
    let merged = if geometry.has_masks { 1 } else { read + 1 };
    [before + read + words, before + words * merged]
}

// The counter of refreshes at power-up has three bits.
const _: () = assert!(START_REFRESHES == 8);

/// Serves bursts from the chip.
#[derive(LogicBlock)]
struct Controller<const BUS: usize, const BYTES: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub port: ServedPort<BUS, BYTES>,
    pub pins: SdramPins,
    /// The power-up sequence is done.
    pub up: Signal<Out, Bit>,
    capture: Capture,
    state: DFF<ChipState>,
    is_up: DFF<Bit>,
    /// Cycles until the next command of any kind, and until a precharge: since the row was opened, and since its last
    /// word.
    pause: DFF<Bits<16>>,
    row_pause: DFF<Bits<4>>,
    word_pause: DFF<Bits<4>>,
    start_refreshes: DFF<Bits<3>>,
    until_refresh: DFF<Bits<16>>,
    refresh_due: DFF<Bit>,
    /// The open row and its bank, as the high bits of a word's address.
    open: DFF<Bits<32>>,

    busy: DFF<Bit>,
    writes: DFF<Bit>,
    outside: DFF<Bit>,
    /// Words of a read are still to be requested.
    asking: DFF<Bit>,
    /// A word that is partly written was requested.
    merging: DFF<Bit>,
    /// The next word's address in the chip, and its index in its beat.
    word: DFF<Bits<32>>,
    at: DFF<Bits<6>>,
    /// Words to request or to write, and words still to arrive, minus one; for a burst outside the memory, beats.
    to_do: DFF<Bits<14>>,
    to_come: DFF<Bits<14>>,
    /// Reads in flight: bit n was requested n + 1 cycles ago.
    flight: DFF<Bits<8>>,
    came: DFF<Bits<32>>,
    beat: DFF<Bits<BUS>>,

    // State of the pins. RAS, CAS and WE are stored inverted, so that registers that start at zero start without a
    // command.
    strobes: DFF<Bits<3>>,
    a: DFF<Bits<13>>,
    ba: DFF<Bits<2>>,
    dqm: DFF<Bits<4>>,
    dq: DFF<Bits<32>>,
    drive: DFF<Bit>,

    row_is_open: Signal<Local, Bit>,
    wanted: Signal<Local, Bit>,
    arrived: Signal<Local, Bit>,
    next_beat: Signal<Local, Bits<BUS>>,
    bit_place: Signal<Local, Bits<16>>,
    byte_place: Signal<Local, Bits<16>>,
    /// The word to write, its strobes, and a mask of the bits that they select.
    data: Signal<Local, Bits<32>>,
    named: Signal<Local, Bits<4>>,
    named0: Signal<Local, Bits<32>>,
    named1: Signal<Local, Bits<32>>,
    named2: Signal<Local, Bits<32>>,
    named3: Signal<Local, Bits<32>>,
    named_bits: Signal<Local, Bits<32>>,
    reading: Signal<Local, Bit>,
    writing: Signal<Local, Bit>,
    /// The word is written, or none of its bytes is selected.
    written: Signal<Local, Bit>,
    beat_comes: Signal<Local, Bit>,
    beat_goes: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    ready: Signal<Local, Bit>,

    power_up_pause: Constant<Bits<16>>,
    mode_pause: Constant<Bits<16>>,
    precharge_pause: Constant<Bits<16>>,
    refresh_pause: Constant<Bits<16>>,
    activate_pause: Constant<Bits<16>>,
    row_pauses: Constant<Bits<4>>,
    read_pauses: Constant<Bits<4>>,
    write_pauses: Constant<Bits<4>>,
    refresh_interval: Constant<Bits<16>>,
    mode: Constant<Bits<13>>,
    /// The bit of `flight` whose word has arrived.
    landing: Constant<Bits<8>>,
    has_masks: Constant<Bit>,
    beyond: Constant<Bits<40>>,
    place_mask: Constant<Bits<32>>,
    column_mask: Constant<Bits<13>>,
    bank_mask: Constant<Bits<2>>,
    row_mask: Constant<Bits<13>>,
    /// Base-2 logarithms: bytes and bits of a word, words of a row and of all banks' rows, words of a beat.
    bytes_log: Constant<Bits<8>>,
    bits_log: Constant<Bits<8>>,
    columns_log: Constant<Bits<8>>,
    rows_log: Constant<Bits<8>>,
    beat_log: Constant<Bits<8>>,
    last_at: Constant<Bits<6>>,
    last_words: Constant<Bits<14>>,
    all_named: Constant<Bits<4>>,
    data_mask: Constant<Bits<32>>,
    data_bits: Constant<Bits<16>>,
    /// Bit position of the word that arrived last in its beat.
    top_word: Constant<Bits<16>>,
}

/// A constant for a size or a count, which fits.
fn constant<const N: usize>(value: u64) -> Constant<Bits<N>> {
    Constant::new(value.into())
}

impl<const BUS: usize, const BYTES: usize> Controller<BUS, BYTES> {
    fn new(geometry: Geometry, cycles: Cycles) -> Self {
        let log = |n: u32| u64::from(n.ilog2());
        let words = BUS as u64 / u64::from(geometry.data_bits);
        let banks_log = log(geometry.columns) + log(geometry.banks);
        // A pause of n cycles lets the next command through n cycles after the previous one.
        let pause = |cycles: u32| u64::from(cycles - 1);
        Controller {
            clock: Default::default(),
            reset: Default::default(),
            port: Default::default(),
            pins: Default::default(),
            up: Default::default(),
            capture: Default::default(),
            state: Default::default(),
            is_up: Default::default(),
            pause: Default::default(),
            row_pause: Default::default(),
            word_pause: Default::default(),
            start_refreshes: Default::default(),
            until_refresh: Default::default(),
            refresh_due: Default::default(),
            open: Default::default(),
            busy: Default::default(),
            writes: Default::default(),
            outside: Default::default(),
            asking: Default::default(),
            merging: Default::default(),
            word: Default::default(),
            at: Default::default(),
            to_do: Default::default(),
            to_come: Default::default(),
            flight: Default::default(),
            came: Default::default(),
            beat: Default::default(),
            strobes: Default::default(),
            a: Default::default(),
            ba: Default::default(),
            dqm: Default::default(),
            dq: Default::default(),
            drive: Default::default(),
            row_is_open: Default::default(),
            wanted: Default::default(),
            arrived: Default::default(),
            next_beat: Default::default(),
            bit_place: Default::default(),
            byte_place: Default::default(),
            data: Default::default(),
            named: Default::default(),
            named0: Default::default(),
            named1: Default::default(),
            named2: Default::default(),
            named3: Default::default(),
            named_bits: Default::default(),
            reading: Default::default(),
            writing: Default::default(),
            written: Default::default(),
            beat_comes: Default::default(),
            beat_goes: Default::default(),
            ends: Default::default(),
            ready: Default::default(),
            power_up_pause: constant(u64::from(cycles.power_up)),
            mode_pause: constant(pause(MODE_CYCLES)),
            precharge_pause: constant(pause(cycles.rp)),
            refresh_pause: constant(pause(cycles.rfc)),
            activate_pause: constant(pause(cycles.rcd)),
            row_pauses: constant(pause(cycles.ras)),
            // An earlier precharge would cut off the word.
            read_pauses: constant(pause(cycles.cas)),
            write_pauses: constant(pause(cycles.wr)),
            refresh_interval: constant(pause(cycles.refresh)),
            mode: constant(u64::from(cycles.cas) << 4),
            landing: constant(1 << (cycles.cas + PIPELINE_CYCLES - 1)),
            has_masks: Constant::new(geometry.has_masks),
            beyond: constant((1 << 40) - geometry.bytes()),
            place_mask: constant(geometry.bytes() / u64::from(geometry.data_bytes()) - 1),
            column_mask: constant(u64::from(geometry.columns) - 1),
            bank_mask: constant(u64::from(geometry.banks) - 1),
            row_mask: constant(u64::from(geometry.rows) - 1),
            bytes_log: constant(log(geometry.data_bytes())),
            bits_log: constant(log(geometry.data_bits)),
            columns_log: constant(log(geometry.columns)),
            rows_log: constant(banks_log),
            beat_log: constant(u64::from(words.ilog2())),
            last_at: constant(words - 1),
            last_words: constant(words - 1),
            all_named: constant((1 << geometry.data_bytes()) - 1),
            data_mask: constant(u64::from(u32::MAX >> (32 - geometry.data_bits))),
            data_bits: constant(u64::from(geometry.data_bits)),
            top_word: constant(BUS as u64 - u64::from(geometry.data_bits)),
        }
    }
}

impl<const BUS: usize, const BYTES: usize> Logic for Controller<BUS, BYTES> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            state,
            is_up,
            pause,
            row_pause,
            word_pause,
            start_refreshes,
            until_refresh,
            refresh_due,
            open,
            busy,
            writes,
            outside,
            asking,
            merging,
            word,
            at,
            to_do,
            to_come,
            flight,
            came,
            beat,
            strobes,
            a,
            ba,
            dqm,
            dq,
            drive
        );
        clock!(self, clock, capture);
        self.up.next = self.is_up.q.val();
        self.pins.ras_n.next = !self.strobes.q.val().get_bit(2);
        self.pins.cas_n.next = !self.strobes.q.val().get_bit(1);
        self.pins.we_n.next = !self.strobes.q.val().get_bit(0);
        self.pins.a.next = self.a.q.val();
        self.pins.ba.next = self.ba.q.val();
        self.pins.dqm.next = self.dqm.q.val();
        self.pins.dq_o.next = self.dq.q.val();
        self.pins.dq_oe.next = self.drive.q.val();
        self.capture.d.next = self.pins.dq_i.val();

        // Arriving words.
        self.came.d.next = self.capture.q.val() & self.data_mask.val();
        self.arrived.next = (self.flight.q.val() & self.landing.val()) != 0;
        self.next_beat.next = (self.beat.q.val() >> self.data_bits.val())
            | (bit_cast::<BUS, 32>(self.came.q.val()) << self.top_word.val());

        // The word to write.
        self.bit_place.next = bit_cast::<16, 6>(self.at.q.val()) << self.bits_log.val();
        self.byte_place.next = bit_cast::<16, 6>(self.at.q.val()) << self.bytes_log.val();
        self.data.next = bit_cast::<32, BUS>(self.port.w_data.val() >> self.bit_place.val());
        self.named.next = bit_cast::<4, BYTES>(self.port.w_strb.val() >> self.byte_place.val()) & self.all_named.val();
        self.named0.next = 0.into();
        self.named1.next = 0.into();
        self.named2.next = 0.into();
        self.named3.next = 0.into();
        if self.named.val().get_bit(0) {
            self.named0.next = 0xff.into();
        }
        if self.named.val().get_bit(1) {
            self.named1.next = 0xff.into();
        }
        if self.named.val().get_bit(2) {
            self.named2.next = 0xff.into();
        }
        if self.named.val().get_bit(3) {
            self.named3.next = 0xff.into();
        }
        self.named_bits.next =
            self.named0.val() | (self.named1.val() << 8) | (self.named2.val() << 16) | (self.named3.val() << 24);

        // Commands.
        self.row_is_open.next = (self.word.q.val() >> self.columns_log.val()) == self.open.q.val();
        self.wanted.next = self.asking.q.val()
            || (self.busy.q.val() && self.writes.q.val() && !self.outside.q.val() && self.port.w_valid.val());
        self.reading.next = false;
        self.writing.next = false;
        self.written.next = false;
        self.strobes.d.next = 0.into();
        if self.row_pause.q.val() != 0 {
            self.row_pause.d.next = self.row_pause.q.val() - 1;
        }
        if self.word_pause.q.val() != 0 {
            self.word_pause.d.next = self.word_pause.q.val() - 1;
        }
        if self.pause.q.val() != 0 {
            self.pause.d.next = self.pause.q.val() - 1;
        } else {
            match self.state.q.val() {
                ChipState::PowerUp => {
                    self.pause.d.next = self.power_up_pause.val();
                    self.state.d.next = ChipState::FirstPrecharge;
                }
                ChipState::FirstPrecharge => {
                    // Precharge all banks.
                    self.strobes.d.next = 5.into();
                    self.a.d.next = 0x400.into();
                    self.pause.d.next = self.precharge_pause.val();
                    self.state.d.next = ChipState::FirstRefreshes;
                }
                ChipState::FirstRefreshes => {
                    self.strobes.d.next = 6.into();
                    self.pause.d.next = self.refresh_pause.val();
                    self.start_refreshes.d.next = self.start_refreshes.q.val() + 1;
                    if self.start_refreshes.q.val().all() {
                        self.state.d.next = ChipState::Mode;
                    }
                }
                ChipState::Mode => {
                    self.strobes.d.next = 7.into();
                    self.a.d.next = self.mode.val();
                    self.ba.d.next = 0.into();
                    self.pause.d.next = self.mode_pause.val();
                    self.state.d.next = ChipState::Closed;
                    self.is_up.d.next = true;
                }
                ChipState::Closed => {
                    if self.refresh_due.q.val() {
                        self.strobes.d.next = 6.into();
                        self.pause.d.next = self.refresh_pause.val();
                        self.refresh_due.d.next = false;
                    } else if self.wanted.val() {
                        // Activate the row.
                        self.strobes.d.next = 4.into();
                        self.a.d.next =
                            bit_cast::<13, 32>(self.word.q.val() >> self.rows_log.val()) & self.row_mask.val();
                        self.ba.d.next =
                            bit_cast::<2, 32>(self.word.q.val() >> self.columns_log.val()) & self.bank_mask.val();
                        self.open.d.next = self.word.q.val() >> self.columns_log.val();
                        self.pause.d.next = self.activate_pause.val();
                        self.row_pause.d.next = self.row_pauses.val();
                        self.state.d.next = ChipState::Open;
                    }
                }
                _ => {
                    if self.merging.q.val() {
                        self.writing.next = self.arrived.val();
                        self.written.next = self.arrived.val();
                        self.merging.d.next = !self.arrived.val();
                    } else if self.refresh_due.q.val() || (self.wanted.val() && !self.row_is_open.val()) {
                        if (self.row_pause.q.val() == 0) && (self.word_pause.q.val() == 0) {
                            self.strobes.d.next = 5.into();
                            self.a.d.next = 0x400.into();
                            self.pause.d.next = self.precharge_pause.val();
                            self.state.d.next = ChipState::Closed;
                        }
                    } else if self.asking.q.val() {
                        self.reading.next = true;
                    } else if self.wanted.val() {
                        self.writing.next = (self.named.val() != 0)
                            && (self.has_masks.val() || (self.named.val() == self.all_named.val()));
                        self.written.next = self.writing.val() || (self.named.val() == 0);
                        self.reading.next = !self.written.val();
                        self.merging.d.next = !self.written.val();
                    }
                }
            }
        }
        self.drive.d.next = self.writing.val();
        self.dq.d.next = (self.data.val() & self.named_bits.val()) | (self.came.q.val() & !self.named_bits.val());
        self.dqm.d.next = 0.into();
        if !self.is_up.q.val() {
            self.dqm.d.next = self.all_named.val();
        }
        self.flight.d.next = self.flight.q.val() << 1;
        if self.reading.val() || self.writing.val() {
            self.a.d.next = bit_cast::<13, 32>(self.word.q.val()) & self.column_mask.val();
            self.ba.d.next = bit_cast::<2, 32>(self.word.q.val() >> self.columns_log.val()) & self.bank_mask.val();
        }
        if self.reading.val() {
            self.strobes.d.next = 2.into();
            self.flight.d.next = (self.flight.q.val() << 1) | 1;
            if self.word_pause.q.val() <= self.read_pauses.val() {
                self.word_pause.d.next = self.read_pauses.val();
            }
        }
        if self.writing.val() {
            self.strobes.d.next = 3.into();
            self.dqm.d.next = self.named.val() ^ self.all_named.val();
            if self.word_pause.q.val() <= self.write_pauses.val() {
                self.word_pause.d.next = self.write_pauses.val();
            }
        }

        // The burst.
        if (self.reading.val() && self.asking.q.val()) || self.written.val() {
            self.word.d.next = (self.word.q.val() + 1) & self.place_mask.val();
            self.at.d.next = (self.at.q.val() + 1) & self.last_at.val();
            self.to_do.d.next = self.to_do.q.val() - 1;
            self.asking.d.next = self.asking.q.val() && (self.to_do.q.val() != 0);
        }
        self.beat_comes.next =
            (self.arrived.val() && !self.merging.q.val() && ((self.to_come.q.val() & self.last_words.val()) == 0))
                || (self.busy.q.val() && self.outside.q.val() && !self.writes.q.val());
        self.beat_goes.next = (self.written.val() && (self.at.q.val() == self.last_at.val()))
            || (self.busy.q.val() && self.outside.q.val() && self.writes.q.val() && self.port.w_valid.val());
        if self.arrived.val() && !self.merging.q.val() {
            self.beat.d.next = self.next_beat.val();
        }
        if (self.arrived.val() && !self.merging.q.val())
            || (self.outside.q.val() && (self.beat_comes.val() || self.beat_goes.val()))
        {
            self.to_come.d.next = self.to_come.q.val() - 1;
        }
        self.ends.next = (self.written.val() && (self.to_do.q.val() == 0))
            || ((self.to_come.q.val() == 0)
                && (self.beat_comes.val() || (self.outside.q.val() && self.beat_goes.val())));
        self.port.r_valid.next = self.beat_comes.val();
        self.port.r_data.next = self.next_beat.val();
        self.port.w_take.next = self.beat_goes.val();
        self.port.last.next = self.ends.val();
        self.port.error.next = self.outside.q.val();
        if self.ends.val() {
            self.busy.d.next = false;
        }
        self.ready.next = self.is_up.q.val() && (!self.busy.q.val() || (self.ends.val() && !self.writes.q.val()));
        self.port.ready.next = self.ready.val();
        if self.port.request.val() && self.ready.val() {
            self.busy.d.next = true;
            self.writes.d.next = self.port.write.val();
            self.outside.d.next = (self.port.addr.val() & self.beyond.val()) != 0;
            self.asking.d.next = !self.port.write.val() && ((self.port.addr.val() & self.beyond.val()) == 0);
            self.word.d.next = bit_cast::<32, 40>(self.port.addr.val() >> self.bytes_log.val()) & self.place_mask.val();
            self.at.d.next = 0.into();
            self.to_do.d.next = (bit_cast::<14, 8>(self.port.len.val()) << self.beat_log.val()) | self.last_words.val();
            self.to_come.d.next =
                (bit_cast::<14, 8>(self.port.len.val()) << self.beat_log.val()) | self.last_words.val();
            if (self.port.addr.val() & self.beyond.val()) != 0 {
                self.to_come.d.next = bit_cast::<14, 8>(self.port.len.val());
            }
        }

        // Refreshes, from power-up on.
        self.until_refresh.d.next = self.until_refresh.q.val() - 1;
        if !self.is_up.q.val() {
            self.until_refresh.d.next = self.refresh_interval.val();
        } else if self.until_refresh.q.val() == 0 {
            self.until_refresh.d.next = self.refresh_interval.val();
            self.refresh_due.d.next = true;
        }
        if self.reset.val() {
            self.busy.d.next = false;
            self.asking.d.next = false;
            self.merging.d.next = false;
            self.flight.d.next = 0.into();
        }
    }
}

/// The chip with its arbiter.
#[derive(LogicBlock)]
pub struct SdramMemory<const BUS: usize, const BYTES: usize, const LOG: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub up: Signal<Out, Bit>,
    pub bus: MemoryBus<BUS, BYTES>,
    pub to_host: BodyOut,
    pub from_host: BodyIn,
    pub pins: SdramPins,
    arbiter: BoardMemory<BUS, BYTES, LOG>,
    controller: Controller<BUS, BYTES>,
}

impl<const BUS: usize, const BYTES: usize, const LOG: usize> SdramMemory<BUS, BYTES, LOG> {
    /// A chip whose words are at most as wide as the bus.
    pub fn new(geometry: Geometry, cycles: Cycles) -> Self {
        SdramMemory {
            clock: Default::default(),
            reset: Default::default(),
            up: Default::default(),
            bus: Default::default(),
            to_host: Default::default(),
            from_host: Default::default(),
            pins: Default::default(),
            arbiter: Default::default(),
            controller: Controller::new(geometry, cycles),
        }
    }
}

impl<const BUS: usize, const BYTES: usize, const LOG: usize> Logic for SdramMemory<BUS, BYTES, LOG> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, arbiter, controller);
        self.arbiter.reset.next = self.reset.val();
        self.controller.reset.next = self.reset.val();
        self.up.next = self.controller.up.val();
        MemoryBus::<BUS, BYTES>::link(&mut self.bus, &mut self.arbiter.bus);
        BodyOut::link(&mut self.to_host, &mut self.arbiter.to_host);
        BodyIn::link(&mut self.from_host, &mut self.arbiter.from_host);
        BurstPort::<BUS, BYTES>::join(&mut self.arbiter.port, &mut self.controller.port);
        SdramPins::link(&mut self.pins, &mut self.controller.pins);
    }
}

#[cfg(test)]
#[path = "sdram/tests.rs"]
mod tests;
