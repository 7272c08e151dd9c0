//! A memory in RAM inside the part: one beat per cycle, in bursts. After a write burst one cycle passes without a beat,
//! because the RAM has one port.

use rust_hdl::prelude::*;

use crate::board_memory::BoardMemory;
use crate::bytes::{BodyIn, BodyOut, BurstPort, MemoryBus, ServedPort};

/// The RAM: one port, read data one cycle after the address, a write enable per byte.
#[derive(LogicBlock)]
struct Ram<const BUS: usize, const BYTES: usize> {
    pub clock: Signal<In, Clock>,
    /// Reads or writes in this cycle.
    pub enable: Signal<In, Bit>,
    pub strobes: Signal<In, Bits<BYTES>>,
    /// Byte address; bits below a beat and above the memory are ignored.
    pub addr: Signal<In, Bits<40>>,
    pub wdata: Signal<In, Bits<BUS>>,
    pub rdata: Signal<Out, Bits<BUS>>,
    _bytes: u64,
    _style: &'static str,
    _cells: Vec<u8>,
}

impl<const BUS: usize, const BYTES: usize> Logic for Ram<BUS, BYTES> {
    fn update(&mut self) {
        if !(self.clock.pos_edge() && self.enable.val()) {
            return;
        }
        let at = (self.addr.val().to_u64() % self._bytes) as usize / BYTES * BYTES;
        let mut read: Bits<BUS> = 0.into();
        for byte in 0..BYTES {
            for bit in 0..8 {
                let cell = &mut self._cells[at + byte];
                read = read.replace_bit(byte * 8 + bit, *cell >> bit & 1 == 1);
                if self.strobes.val().get_bit(byte) {
                    *cell = *cell & !(1 << bit) | u8::from(self.wdata.val().get_bit(byte * 8 + bit)) << bit;
                }
            }
        }
        if !self.strobes.val().any() {
            self.rdata.next = read;
        }
    }

    fn connect(&mut self) {
        self.rdata.connect();
    }

    fn hdl(&self) -> Verilog {
        let (low, high) = (BYTES.ilog2(), self._bytes.ilog2() - 1);
        let writes: String = (0..BYTES)
            .map(|byte| {
                let (from, to) = (byte * 8, byte * 8 + 7);
                format!("        if (strobes[{byte}]) cells[addr[{high}:{low}]][{to}:{from}] <= wdata[{to}:{from}];\n")
            })
            .collect();
        Verilog::Custom(format!(
            "(* ram_style = \"{style}\" *)
reg [{top}:0] cells [0:{last}];
always @(posedge clock) begin
    if (enable) begin
{writes}        if (strobes == 0) rdata <= cells[addr[{high}:{low}]];
    end
end",
            style = self._style,
            top = BUS - 1,
            last = self._bytes / BYTES as u64 - 1,
        ))
    }
}

/// Serves bursts from the RAM.
#[derive(LogicBlock)]
struct BlockRam<const BUS: usize, const BYTES: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub port: ServedPort<BUS, BYTES>,
    ram: Ram<BUS, BYTES>,
    busy: DFF<Bit>,
    writes: DFF<Bit>,
    outside: DFF<Bit>,
    addr: DFF<Bits<40>>,
    left: DFF<Bits<8>>,
    last: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    beat_bytes: Constant<Bits<40>>,
    beyond: Constant<Bits<40>>,
}

impl<const BUS: usize, const BYTES: usize> BlockRam<BUS, BYTES> {
    fn new(bytes: u64, style: &'static str) -> Self {
        BlockRam {
            clock: Default::default(),
            reset: Default::default(),
            port: Default::default(),
            ram: Ram {
                clock: Default::default(),
                enable: Default::default(),
                strobes: Default::default(),
                addr: Default::default(),
                wdata: Default::default(),
                rdata: Default::default(),
                _bytes: bytes,
                _style: style,
                _cells: vec![0; bytes as usize],
            },
            busy: Default::default(),
            writes: Default::default(),
            outside: Default::default(),
            addr: Default::default(),
            left: Default::default(),
            last: Default::default(),
            take: Default::default(),
            beat_bytes: Constant::new((BYTES as u64).into()),
            beyond: Constant::new(((1 << 40) - bytes).into()),
        }
    }
}

impl<const BUS: usize, const BYTES: usize> Logic for BlockRam<BUS, BYTES> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, busy, writes, outside, addr, left);
        clock!(self, clock, ram);
        self.take.next = self.busy.q.val() && self.writes.q.val() && self.port.w_valid.val();
        self.last.next = (self.left.q.val() == 0) && (self.take.val() || (self.busy.q.val() && !self.writes.q.val()));
        self.port.ready.next = !self.busy.q.val() || (self.last.val() && !self.writes.q.val());
        self.port.r_valid.next = self.busy.q.val() && !self.writes.q.val();
        self.port.r_data.next = self.ram.rdata.val();
        self.port.w_take.next = self.take.val();
        self.port.last.next = self.last.val();
        self.port.error.next = self.outside.q.val();

        self.ram.enable.next = self.busy.q.val() && !self.outside.q.val();
        self.ram.addr.next = self.addr.q.val();
        self.ram.wdata.next = self.port.w_data.val();
        self.ram.strobes.next = 0.into();
        if self.take.val() {
            self.ram.strobes.next = self.port.w_strb.val();
        }
        if self.take.val() || (self.busy.q.val() && !self.writes.q.val()) {
            self.addr.d.next = self.addr.q.val() + self.beat_bytes.val();
            self.left.d.next = self.left.q.val() - 1;
        }
        if self.last.val() {
            self.busy.d.next = false;
        }
        if self.port.request.val() && self.port.ready.val() {
            self.busy.d.next = true;
            self.writes.d.next = self.port.write.val();
            self.outside.d.next = (self.port.addr.val() & self.beyond.val()) != 0;
            self.left.d.next = self.port.len.val();
            self.addr.d.next = self.port.addr.val();
            if !self.port.write.val() {
                // Fetch a read's first beat at once.
                self.addr.d.next = self.port.addr.val() + self.beat_bytes.val();
                self.ram.enable.next = true;
                self.ram.addr.next = self.port.addr.val();
            }
        }
        if self.reset.val() {
            self.busy.d.next = false;
        }
    }
}

/// The block RAM with its arbiter.
#[derive(LogicBlock)]
pub struct BlockMemory<const BUS: usize, const BYTES: usize, const LOG: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Always high: the memory needs no time after power-up.
    pub up: Signal<Out, Bit>,
    pub bus: MemoryBus<BUS, BYTES>,
    pub to_host: BodyOut,
    pub from_host: BodyIn,
    arbiter: BoardMemory<BUS, BYTES, LOG>,
    memory: BlockRam<BUS, BYTES>,
}

impl<const BUS: usize, const BYTES: usize, const LOG: usize> BlockMemory<BUS, BYTES, LOG> {
    /// A memory of `bytes` bytes, a power of two, of the kind that synthesis knows as `ram_style` `style`.
    pub fn new(bytes: u64, style: &'static str) -> Self {
        BlockMemory {
            clock: Default::default(),
            reset: Default::default(),
            up: Default::default(),
            bus: Default::default(),
            to_host: Default::default(),
            from_host: Default::default(),
            arbiter: Default::default(),
            memory: BlockRam::new(bytes, style),
        }
    }
}

impl<const BUS: usize, const BYTES: usize, const LOG: usize> Logic for BlockMemory<BUS, BYTES, LOG> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, arbiter, memory);
        self.up.next = true;
        self.arbiter.reset.next = self.reset.val();
        self.memory.reset.next = self.reset.val();
        MemoryBus::<BUS, BYTES>::link(&mut self.bus, &mut self.arbiter.bus);
        BodyOut::link(&mut self.to_host, &mut self.arbiter.to_host);
        BodyIn::link(&mut self.from_host, &mut self.arbiter.from_host);
        BurstPort::<BUS, BYTES>::join(&mut self.arbiter.port, &mut self.memory.port);
    }
}
