//! A Yosys netlist as gates, registers and memories.

use serde::Deserialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// The number of a net.
pub type Net = u32;
/// The constant nets: always low, and always high.
pub(super) const LOW: Net = 0;
pub(super) const HIGH: Net = 1;

/// Why a netlist cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum NetlistError {
    /// It is not a netlist in JSON.
    #[error("the netlist cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A module or port that a board's design needs is missing.
    #[error("the netlist has no {0}")]
    Missing(String),
    /// A cell of an unsupported type.
    #[error("cell {cell} of the netlist has type {kind}, which the simulator does not support")]
    Unknown {
        /// The cell.
        cell: String,
        /// Its type.
        kind: String,
    },
    /// A cell that is used in an unsupported way.
    #[error("cell {cell} of the netlist: {reason}")]
    Unfit {
        /// The cell.
        cell: String,
        /// What is wrong.
        reason: String,
    },
    /// An internal net with a tristate buffer.
    #[error("{0} of the netlist is driven by a tristate buffer, but is not a bidirectional pin")]
    Inside(String),
    /// A combinational loop.
    #[error("the netlist has a combinational loop through the gate that drives {0}")]
    Ring(String),
}

/// A combinational element: a table of up to four inputs, or a memory's read port.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gate {
    pub(super) inputs: [Net; 4],
    pub(super) kind: GateKind,
    /// One more than the largest depth among the gates that it reads.
    pub(super) depth: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum GateKind {
    Table { table: u16, output: Net },
    Read(u32),
}

/// An asynchronous reset.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reset {
    pub(super) net: Net,
    pub(super) level: bool,
    pub(super) value: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Register {
    pub(super) d: Net,
    pub(super) q: Net,
    /// Whether it takes its data on the rising edge of the clock.
    pub(super) edge: bool,
    pub(super) reset: Option<Reset>,
    pub(super) begins: bool,
}

#[derive(Debug, Clone)]
pub(super) struct ReadPort {
    pub(super) memory: u32,
    pub(super) address: Vec<Net>,
    pub(super) data: Vec<Net>,
}

#[derive(Debug, Clone)]
pub(super) struct WritePort {
    pub(super) memory: u32,
    pub(super) address: Vec<Net>,
    pub(super) data: Vec<Net>,
    pub(super) enable: Vec<Net>,
    pub(super) edge: bool,
}

#[derive(Debug, Clone)]
pub(super) struct MemoryArray {
    first: u64,
    words: u64,
    pub(super) begins: Vec<bool>,
    /// The gates of its read ports.
    pub(super) readers: Vec<u32>,
}

impl MemoryArray {
    /// Returns the word at an address, if there is one.
    pub(super) fn place(&self, address: u64) -> Option<usize> {
        address.checked_sub(self.first).filter(|word| *word < self.words).map(|word| word as usize)
    }
}

/// The driver of a bidirectional pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Driver {
    /// The level it drives.
    pub value: Net,
    /// High while it drives the pin.
    pub enable: Net,
}

/// An element that reads a net.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reader {
    Gate(u32),
    Register(u32),
    Write(u32),
}

/// A design with one clock.
#[derive(Debug, Clone)]
pub struct Circuit {
    pub(super) nets: usize,
    pub(super) gates: Vec<Gate>,
    pub(super) depths: usize,
    pub(super) registers: Vec<Register>,
    pub(super) memories: Vec<MemoryArray>,
    pub(super) reads: Vec<ReadPort>,
    pub(super) writes: Vec<WritePort>,
    pub(super) clock: Net,
    /// Drivers of the bidirectional pins, by net.
    drivers: HashMap<Net, Driver>,
    /// For each net, the start of its readers in `readers`. They end where those of the next net start.
    begins: Vec<u32>,
    readers: Vec<Reader>,
    ports: HashMap<String, Vec<Net>>,
}

#[derive(Deserialize)]
struct Design {
    modules: HashMap<String, Module>,
}

#[derive(Deserialize)]
struct Module {
    ports: BTreeMap<String, NetlistPort>,
    cells: BTreeMap<String, Cell>,
    netnames: BTreeMap<String, Name>,
}

#[derive(Deserialize)]
struct NetlistPort {
    #[serde(default)]
    direction: String,
    bits: Vec<Bit>,
}

#[derive(Deserialize)]
struct Cell {
    r#type: String,
    parameters: HashMap<String, String>,
    connections: HashMap<String, Vec<Bit>>,
}

#[derive(Deserialize)]
struct Name {
    bits: Vec<Bit>,
    #[serde(default)]
    attributes: HashMap<String, String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Bit {
    Net(u32),
    Constant(String),
}

impl Bit {
    /// Returns the net. Values other than 0 and 1 count as low.
    fn net(&self) -> Net {
        match self {
            Bit::Net(net) => *net,
            Bit::Constant(text) if text == "1" => HIGH,
            Bit::Constant(_) => LOW,
        }
    }
}

/// Truth tables of Yosys's gates over their inputs A, B and S. A is the lowest bit of the table's index.
pub(super) const GATES: &[(&str, &[&str], u16)] = &[
    ("$_BUF_", &["A"], 0xaaaa),
    ("$_NOT_", &["A"], 0x5555),
    ("$_AND_", &["A", "B"], 0x8888),
    ("$_NAND_", &["A", "B"], 0x7777),
    ("$_OR_", &["A", "B"], 0xeeee),
    ("$_NOR_", &["A", "B"], 0x1111),
    ("$_XOR_", &["A", "B"], 0x6666),
    ("$_XNOR_", &["A", "B"], 0x9999),
    ("$_ANDNOT_", &["A", "B"], 0x2222),
    ("$_ORNOT_", &["A", "B"], 0xbbbb),
    ("$_MUX_", &["A", "B", "S"], 0xcaca),
    ("$_NMUX_", &["A", "B", "S"], 0x3535),
];

/// A cell being read, with its name for error messages.
struct At<'a> {
    name: &'a str,
    cell: &'a Cell,
}

impl At<'_> {
    fn unfit(&self, reason: impl Into<String>) -> NetlistError {
        NetlistError::Unfit { cell: self.name.into(), reason: reason.into() }
    }

    fn nets(&self, port: &str) -> Result<Vec<Net>, NetlistError> {
        let bits = self.cell.connections.get(port).ok_or_else(|| self.unfit(format!("it has no port {port}")))?;
        Ok(bits.iter().map(Bit::net).collect())
    }

    fn net(&self, port: &str) -> Result<Net, NetlistError> {
        match self.nets(port)?[..] {
            [net] => Ok(net),
            _ => Err(self.unfit(format!("port {port} is not 1 bit wide"))),
        }
    }

    /// Returns the bits of a parameter, lowest first.
    fn bits(&self, parameter: &str) -> Result<Vec<bool>, NetlistError> {
        let text = self.cell.parameters.get(parameter);
        let text = text.ok_or_else(|| self.unfit(format!("it has no parameter {parameter}")))?;
        Ok(text.bytes().rev().map(|bit| bit == b'1').collect())
    }

    fn number(&self, parameter: &str) -> Result<u64, NetlistError> {
        let bits = self.bits(parameter)?;
        if bits.iter().skip(63).any(|bit| *bit) {
            return Err(self.unfit(format!("{parameter} is too large")));
        }
        Ok(bits.iter().take(63).rev().fold(0, |number, bit| number << 1 | u64::from(*bit)))
    }
}

impl Circuit {
    /// Reads the JSON that Yosys writes for a flat design of gates, tables of up to four inputs, plain registers,
    /// memories, and tristate buffers at bidirectional pins. All registers and memories must use the clock at port
    /// `clock`.
    ///
    /// # Errors
    /// [`NetlistError`] if the netlist cannot be read or has unsupported parts.
    pub fn read(json: &[u8], top: &str, clock: &str) -> Result<Circuit, NetlistError> {
        let mut design: Design = serde_json::from_slice(json)?;
        let module = design.modules.remove(top).ok_or_else(|| NetlistError::Missing(format!("module {top}")))?;
        let nets = |bits: &[Bit]| bits.iter().map(Bit::net).collect::<Vec<Net>>();
        let ports: HashMap<String, Vec<Net>> =
            module.ports.iter().map(|(name, port)| (name.clone(), nets(&port.bits))).collect();
        let clock = match ports.get(clock).map(Vec::as_slice) {
            Some([net]) => *net,
            _ => return Err(NetlistError::Missing(format!("1-bit port {clock}"))),
        };
        let mut circuit = Circuit {
            nets: 2,
            gates: Vec::new(),
            depths: 0,
            registers: Vec::new(),
            memories: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            clock,
            drivers: HashMap::new(),
            begins: Vec::new(),
            readers: Vec::new(),
            ports,
        };
        let begins = module.netnames.values().filter_map(|name| Some((&name.bits, name.attributes.get("init")?)));
        let begins: HashMap<Net, bool> = begins
            .flat_map(|(bits, init)| bits.iter().map(Bit::net).zip(init.bytes().rev().map(|b| b == b'1')))
            .collect();
        // Inverters, to find inverted clocks.
        let mut inverted = HashMap::new();
        for (name, cell) in module.cells.iter().filter(|(_, cell)| cell.r#type == "$_NOT_") {
            let at = At { name, cell };
            inverted.insert(at.net("Y")?, at.net("A")?);
        }
        for (name, cell) in &module.cells {
            circuit.add(&At { name, cell }, &begins, &inverted)?;
        }
        let pins = module.ports.values().filter(|port| port.direction == "inout");
        let pins: HashSet<Net> = pins.flat_map(|port| port.bits.iter().map(Bit::net)).collect();
        if let Some(inside) = circuit.drivers.keys().find(|net| !pins.contains(net)) {
            let named = module.netnames.iter().find(|(_, name)| name.bits.iter().any(|bit| bit.net() == *inside));
            return Err(NetlistError::Inside(named.map_or_else(|| format!("net {inside}"), |(name, _)| name.clone())));
        }
        let all = circuit.gates.iter().flat_map(|gate| gate.inputs);
        let all = all.chain(module.netnames.values().flat_map(|name| name.bits.iter().map(Bit::net)));
        let all = all.chain(circuit.ports.values().flatten().copied()).chain(circuit.registers.iter().map(|r| r.q));
        let all = all.chain(module.cells.values().flat_map(|c| c.connections.values().flatten().map(Bit::net)));
        circuit.nets = all.max().map_or(2, |net| net as usize + 1).max(2);
        circuit.order().map_err(|net| {
            let named = module.netnames.iter().find(|(_, name)| name.bits.iter().any(|bit| bit.net() == net));
            NetlistError::Ring(named.map_or_else(|| format!("net {net}"), |(name, _)| name.clone()))
        })?;
        circuit.connect();
        Ok(circuit)
    }

    /// Returns the nets of a port, lowest bit first.
    pub fn port(&self, name: &str) -> Option<&[Net]> {
        self.ports.get(name).map(Vec::as_slice)
    }

    /// Returns the driver of a bidirectional pin, if the net is one. The caller must set the level that the design
    /// reads there.
    pub fn driver(&self, pin: Net) -> Option<Driver> {
        self.drivers.get(&pin).copied()
    }

    /// Returns the numbers of gates and of registers.
    pub fn cells(&self) -> (usize, usize) {
        (self.gates.len(), self.registers.len())
    }

    fn add(&mut self, at: &At, begins: &HashMap<Net, bool>, inverted: &HashMap<Net, Net>) -> Result<(), NetlistError> {
        let kind = at.cell.r#type.as_str();
        if let Some((_, names, table)) = GATES.iter().find(|(name, _, _)| *name == kind) {
            let mut inputs = [LOW; 4];
            for (input, name) in inputs.iter_mut().zip(*names) {
                *input = at.net(name)?;
            }
            self.table(inputs, *table, at.net("Y")?);
            return Ok(());
        }
        // The edge at which an element with this clock takes its data.
        let own = self.clock;
        let edge = |clock: Net, rising: bool| match inverted.get(&clock) {
            _ if clock == own => Ok(rising),
            Some(clock) if *clock == own => Ok(!rising),
            _ => Err(at.unfit("its clock is not the design's")),
        };
        let letters: Option<&[u8]> = kind.strip_prefix("$_DFF_").and_then(|k| k.strip_suffix('_')).map(str::as_bytes);
        match (kind, letters) {
            ("$lut", _) => {
                let (nets, mut bits) = (at.nets("A")?, at.bits("LUT")?);
                if nets.len() > 4 {
                    return Err(at.unfit(format!("it has {} inputs, but at most 4 are supported", nets.len())));
                }
                let mut inputs = [LOW; 4];
                inputs[..nets.len()].copy_from_slice(&nets);
                // Unused inputs are low, so the upper table entries do not matter.
                bits.resize(16, false);
                let table = bits.iter().rev().fold(0, |table, bit| table << 1 | u16::from(*bit));
                self.table(inputs, table, at.net("Y")?);
            }
            ("$mem_v2", _) => self.memory(at, &edge)?,
            ("$_TBUF_", _) => {
                let driver = Driver { value: at.net("A")?, enable: at.net("E")? };
                if self.drivers.insert(at.net("Y")?, driver).is_some() {
                    return Err(at.unfit("another cell drives the same pin"));
                }
            }
            (_, Some([clock, reset @ ..])) if matches!(reset.len(), 0 | 2) => {
                let reset = match reset {
                    [level, value] => Some(Reset { net: at.net("R")?, level: *level == b'P', value: *value == b'1' }),
                    _ => None,
                };
                let (d, q) = (at.net("D")?, at.net("Q")?);
                let edge = edge(at.net("C")?, *clock == b'P')?;
                let begins = begins.get(&q).copied().unwrap_or(false);
                self.registers.push(Register { d, q, edge, reset, begins });
            }
            _ => return Err(NetlistError::Unknown { cell: at.name.into(), kind: kind.into() }),
        }
        Ok(())
    }

    /// Adds a table without the inputs that it does not depend on. This matters because the router lets a table that
    /// gives a constant read its own output.
    fn table(&mut self, mut inputs: [Net; 4], mut table: u16, output: Net) {
        for (at, input) in inputs.iter_mut().enumerate() {
            // Table entries where the input is low.
            let (low, step) = ([0x5555u16, 0x3333, 0x0f0f, 0x00ff][at], 1u32 << at);
            let (if_low, if_high) = (table & low, table >> step & low);
            match *input {
                LOW => table = if_low | if_low << step,
                HIGH => table = if_high | if_high << step,
                _ => {}
            }
            if if_low == if_high || *input <= HIGH {
                *input = LOW;
            }
        }
        self.gates.push(Gate { inputs, kind: GateKind::Table { table, output }, depth: 0 });
    }

    fn memory(&mut self, at: &At, edge: &dyn Fn(Net, bool) -> Result<bool, NetlistError>) -> Result<(), NetlistError> {
        let (width, words, bits) = (at.number("WIDTH")?, at.number("SIZE")?, at.number("ABITS")? as usize);
        let memory = self.memories.len() as u32;
        let size = width.checked_mul(words).filter(|size| *size <= 1 << 32);
        let size = size.and_then(|size| usize::try_from(size).ok()).ok_or_else(|| at.unfit("it is too large"))?;
        let width = width as usize;
        let mut begins = at.bits("INIT")?;
        begins.resize(size, false);
        if at.bits("RD_CLK_ENABLE")?.iter().take(at.number("RD_PORTS")? as usize).any(|clocked| *clocked) {
            return Err(at.unfit("it has a clocked read port, which is not supported"));
        }
        let part = |nets: &[Net], size: usize, port: usize| -> Result<Vec<Net>, NetlistError> {
            let part = nets.get(port * size..(port + 1) * size);
            part.map(<[Net]>::to_vec).ok_or_else(|| at.unfit("its ports have too few bits"))
        };
        let mut readers = Vec::new();
        let (addresses, data) = (at.nets("RD_ADDR")?, at.nets("RD_DATA")?);
        for port in 0..at.number("RD_PORTS")? as usize {
            let (address, data) = (part(&addresses, bits, port)?, part(&data, width, port)?);
            readers.push(self.gates.len() as u32);
            let kind = GateKind::Read(self.reads.len() as u32);
            self.gates.push(Gate { inputs: [LOW; 4], kind, depth: 0 });
            self.reads.push(ReadPort { memory, address, data });
        }
        let (addresses, data, enables, clocks) =
            (at.nets("WR_ADDR")?, at.nets("WR_DATA")?, at.nets("WR_EN")?, at.nets("WR_CLK")?);
        let (clocked, rising) = (at.bits("WR_CLK_ENABLE")?, at.bits("WR_CLK_POLARITY")?);
        for port in 0..at.number("WR_PORTS")? as usize {
            if !clocked.get(port).copied().unwrap_or(false) {
                return Err(at.unfit("it has an unclocked write port, which is not supported"));
            }
            let edge = edge(part(&clocks, 1, port)?[0], rising.get(port).copied().unwrap_or(true))?;
            let (address, data) = (part(&addresses, bits, port)?, part(&data, width, port)?);
            self.writes.push(WritePort { memory, address, data, enable: part(&enables, width, port)?, edge });
        }
        self.memories.push(MemoryArray { first: at.number("OFFSET")?, words, begins, readers });
        Ok(())
    }

    /// Returns the nets that a gate reads.
    fn inputs(&self, gate: &Gate) -> Vec<Net> {
        match gate.kind {
            GateKind::Table { .. } => gate.inputs.to_vec(),
            GateKind::Read(read) => self.reads[read as usize].address.clone(),
        }
    }

    /// Returns the nets that a gate drives.
    fn outputs<'a>(&'a self, gate: &'a Gate) -> &'a [Net] {
        match &gate.kind {
            GateKind::Table { output, .. } => std::slice::from_ref(output),
            GateKind::Read(read) => &self.reads[*read as usize].data,
        }
    }

    /// Sets the depth of each gate. Fails with a net that a gate in a loop drives.
    fn order(&mut self) -> Result<(), Net> {
        let mut drivers = vec![None; self.nets];
        for (at, gate) in self.gates.iter().enumerate() {
            for net in self.outputs(gate) {
                drivers[*net as usize] = Some(at);
            }
        }
        let mut heard: Vec<Vec<usize>> = vec![Vec::new(); self.gates.len()];
        let mut missing = vec![0; self.gates.len()];
        for (at, gate) in self.gates.iter().enumerate() {
            for driver in self.inputs(gate).iter().filter_map(|net| drivers[*net as usize]) {
                heard[driver].push(at);
                missing[at] += 1;
            }
        }
        let mut ready: Vec<usize> = (0..self.gates.len()).filter(|at| missing[*at] == 0).collect();
        let mut done = 0;
        while let Some(at) = ready.pop() {
            done += 1;
            let depth = self.gates[at].depth;
            self.depths = self.depths.max(depth as usize + 1);
            for next in std::mem::take(&mut heard[at]) {
                self.gates[next].depth = self.gates[next].depth.max(depth + 1);
                missing[next] -= 1;
                if missing[next] == 0 {
                    ready.push(next);
                }
            }
        }
        match (done < self.gates.len()).then(|| missing.iter().position(|missing| *missing > 0)).flatten() {
            Some(ring) => Err(self.outputs(&self.gates[ring])[0]),
            None => Ok(()),
        }
    }

    /// Builds the lists of each net's readers.
    fn connect(&mut self) {
        let mut all: Vec<(Net, Reader)> = Vec::new();
        for (at, gate) in self.gates.iter().enumerate() {
            all.extend(self.inputs(gate).into_iter().map(|net| (net, Reader::Gate(at as u32))));
        }
        for (at, register) in self.registers.iter().enumerate() {
            let reset = register.reset.map(|reset| reset.net);
            all.extend([register.d].into_iter().chain(reset).map(|net| (net, Reader::Register(at as u32))));
        }
        for (at, port) in self.writes.iter().enumerate() {
            let nets = port.address.iter().chain(&port.data).chain(&port.enable);
            all.extend(nets.map(|net| (*net, Reader::Write(at as u32))));
        }
        // Constants never change, so they need no readers.
        all.retain(|(net, _)| *net > HIGH);
        all.sort_by_key(|(net, _)| *net);
        self.begins = vec![0; self.nets + 1];
        for (net, _) in &all {
            self.begins[*net as usize + 1] += 1;
        }
        for net in 0..self.nets {
            self.begins[net + 1] += self.begins[net];
        }
        self.readers = all.into_iter().map(|(_, reader)| reader).collect();
    }

    pub(super) fn readers(&self, net: Net) -> Range<usize> {
        self.begins[net as usize] as usize..self.begins[net as usize + 1] as usize
    }

    pub(super) fn reader(&self, at: usize) -> Reader {
        self.readers[at]
    }
}
