//! Gate-level simulation of netlists.
//!
//! Compiling a netlist of tens of thousands of cells would take minutes, for a few seconds of simulation in which a
//! serial line mostly waits. So netlists are interpreted: [`Circuit::read`] takes the output of Yosys for the netlist
//! and the models of its cells. [`Simulation`] evaluates a gate only if an input changed, at most once per clock phase,
//! in order of depth. [`NetlistBoard`] adds the other end of the design's serial line.

mod board;
mod circuit;
mod pads;
#[cfg(test)]
mod tests;

pub use board::NetlistBoard;
pub use circuit::{Circuit, Driver, NetlistError};

use circuit::{Gate, Net};
use include_dir::{Dir, include_dir};
use sha2::{Digest, Sha256};

static SOURCES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/src/netlist");

/// Hashes the simulator's own sources, so that results of another version are not reused.
pub fn hash_sources(sha: &mut Sha256) {
    sha.update(include_bytes!("netlist.rs"));
    SOURCES.files().for_each(|file| sha.update(file.contents()));
}

/// A running circuit with one clock.
pub struct Simulation {
    circuit: Circuit,
    /// The value of each net.
    values: Vec<bool>,
    /// The bits of each memory, word by word.
    memories: Vec<Vec<bool>>,
    /// Gates to evaluate, by depth, and whether each gate is among them.
    waiting: Vec<Vec<u32>>,
    waits: Vec<bool>,
    /// The smallest depth of a waiting gate.
    least: usize,
    /// Registers whose data changed since their last edge, and whether each is among them; then the same for write
    /// ports.
    stirred: Vec<u32>,
    is_stirred: Vec<bool>,
    written: Vec<u32>,
    is_written: Vec<bool>,
    /// Registers with an asynchronous reset whose inputs changed.
    resets: Vec<u32>,
}

impl Simulation {
    /// Creates the circuit with the initial values of its registers and memories and all inputs low.
    pub fn new(circuit: Circuit) -> Simulation {
        let mut values = vec![false; circuit.nets];
        values[circuit::HIGH as usize] = true;
        for register in &circuit.registers {
            values[register.q as usize] = register.begins;
        }
        let mut simulation = Simulation {
            values,
            memories: circuit.memories.iter().map(|memory| memory.begins.clone()).collect(),
            waiting: vec![Vec::new(); circuit.depths],
            waits: vec![false; circuit.gates.len()],
            least: 0,
            stirred: Vec::new(),
            is_stirred: vec![false; circuit.registers.len()],
            written: Vec::new(),
            is_written: vec![false; circuit.writes.len()],
            resets: Vec::new(),
            circuit,
        };
        for gate in 0..simulation.circuit.gates.len() {
            simulation.wake(gate as u32);
        }
        for register in 0..simulation.circuit.registers.len() {
            simulation.stir(register as u32);
        }
        for write in 0..simulation.circuit.writes.len() {
            (simulation.is_written[write], _) = (true, simulation.written.push(write as u32));
        }
        simulation.settle();
        simulation
    }

    /// Returns the circuit.
    pub fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// Returns the value of a net.
    pub fn get(&self, net: Net) -> bool {
        self.values[net as usize]
    }

    /// Sets an input. Call [`Simulation::settle`] to propagate it.
    pub fn set(&mut self, net: Net, value: bool) {
        if std::mem::replace(&mut self.values[net as usize], value) == value {
            return;
        }
        for at in self.circuit.readers(net) {
            let reader = self.circuit.reader(at);
            match reader {
                circuit::Reader::Gate(gate) => self.wake(gate),
                circuit::Reader::Register(register) => self.stir(register),
                circuit::Reader::Write(write) => {
                    if !std::mem::replace(&mut self.is_written[write as usize], true) {
                        self.written.push(write);
                    }
                }
            }
        }
    }

    fn wake(&mut self, gate: u32) {
        if !std::mem::replace(&mut self.waits[gate as usize], true) {
            let depth = self.circuit.gates[gate as usize].depth as usize;
            self.waiting[depth].push(gate);
            self.least = self.least.min(depth);
        }
    }

    fn stir(&mut self, register: u32) {
        if self.circuit.registers[register as usize].reset.is_some() {
            self.resets.push(register);
        }
        if !std::mem::replace(&mut self.is_stirred[register as usize], true) {
            self.stirred.push(register);
        }
    }

    /// Propagates all changes through the gates.
    pub fn settle(&mut self) {
        loop {
            while self.least < self.waiting.len() {
                let depth = self.least;
                let Some(gate) = self.waiting[depth].pop() else {
                    self.least += 1;
                    continue;
                };
                self.waits[gate as usize] = false;
                self.evaluate(gate);
            }
            // Resetting a register can change gates again.
            let Some(register) = self.resets.pop() else { return };
            let register = self.circuit.registers[register as usize];
            if let Some(reset) = register.reset.filter(|reset| self.get(reset.net) == reset.level) {
                self.set(register.q, reset.value);
            }
        }
    }

    fn evaluate(&mut self, gate: u32) {
        let Gate { inputs, kind, .. } = self.circuit.gates[gate as usize];
        match kind {
            circuit::GateKind::Table { table, output } => {
                let place = (0..4).fold(0, |place, at| place | u32::from(self.get(inputs[at])) << at);
                self.set(output, table >> place & 1 == 1);
            }
            circuit::GateKind::Read(read) => {
                let port = &self.circuit.reads[read as usize];
                let (memory, address) = (port.memory as usize, self.number(&port.address));
                let width = port.data.len();
                let word = self.circuit.memories[memory].place(address);
                for bit in 0..width {
                    let net = self.circuit.reads[read as usize].data[bit];
                    let value = word.is_some_and(|word| self.memories[memory][word * width + bit]);
                    self.set(net, value);
                }
            }
        }
    }

    /// Returns the number on nets, lowest bit first.
    pub fn number(&self, nets: &[Net]) -> u64 {
        nets.iter().rev().fold(0, |number, net| number << 1 | u64::from(self.get(*net)))
    }

    /// Changes the level of the clock. Registers and memories take the values from before the edge, then all gates
    /// settle.
    pub fn clock(&mut self, level: bool) {
        let (mut changes, mut words) = (Vec::new(), Vec::new());
        let mut stirred = std::mem::take(&mut self.stirred);
        stirred.retain(|at| {
            let register = self.circuit.registers[*at as usize];
            if register.edge != level {
                return true;
            }
            self.is_stirred[*at as usize] = false;
            let held = register.reset.filter(|reset| self.get(reset.net) == reset.level);
            changes.push((register.q, held.map_or(self.get(register.d), |reset| reset.value)));
            false
        });
        self.stirred = stirred;
        let mut written = std::mem::take(&mut self.written);
        // If two ports write to the same place, the later port wins.
        written.sort_unstable();
        written.retain(|at| {
            let port = &self.circuit.writes[*at as usize];
            if port.edge != level {
                return true;
            }
            self.is_written[*at as usize] = false;
            let memory = port.memory as usize;
            if let Some(word) = self.circuit.memories[memory].place(self.number(&port.address)) {
                let bits = port.enable.iter().zip(&port.data).enumerate();
                let bits = bits.filter(|(_, (enable, _))| self.get(**enable));
                words.extend(bits.map(|(bit, (_, data))| (memory, word * port.data.len() + bit, self.get(*data))));
            }
            false
        });
        self.written = written;
        self.set(self.circuit.clock, level);
        for (net, value) in changes {
            self.set(net, value);
        }
        for (memory, bit, value) in words {
            if std::mem::replace(&mut self.memories[memory][bit], value) != value {
                for at in 0..self.circuit.memories[memory].readers.len() {
                    self.wake(self.circuit.memories[memory].readers[at]);
                }
            }
        }
        self.settle();
    }
}
