//! A built program: its stream, its regions, and how to read it.

use serde::{Deserialize, Serialize};
use tilewright_hw::HwConfig;
use tilewright_hw::isa::{self, DecodeError, INSN_BYTES, Insn, Unit};

/// Number of a region, which is also its base register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RegionId(pub u32);

/// Contents of a region, or of a part of the constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Everything that does not change between runs.
    Constants,
    /// Weights as gemm's tiles.
    Weights,
    /// Parameter entries and descriptors.
    Params,
    /// Micro-op kernels.
    Uops,
    /// Tensors that the host writes.
    Input,
    /// Tensors that the host reads.
    Output,
    /// Tensors between operators.
    Scratch,
}

/// A piece of device memory with one base register; its number is its index in the program's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRegion {
    /// Name for messages.
    pub name: String,
    /// Its contents.
    pub role: Role,
    /// Bytes.
    pub bytes: u64,
}

impl MemoryRegion {
    /// Whether a run can change it.
    pub fn is_written(&self) -> bool {
        matches!(self.role, Role::Input | Role::Output | Role::Scratch)
    }
}

/// A named part of the constants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Name.
    pub name: String,
    /// Its contents.
    pub role: Role,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Location of an input or output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The tensor's name.
    pub name: String,
    /// Its region.
    pub region: RegionId,
    /// First byte in the region.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

/// An instruction stream with everything that it needs to run; base registers make it relocatable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccelProgram {
    /// Hash of the configuration that it was built for.
    pub config_hash: u64,
    /// Version of the instruction set.
    pub isa_version: u32,
    /// Encoded instructions.
    pub stream: Vec<u8>,
    /// Regions; region 0 holds the constants.
    pub regions: Vec<MemoryRegion>,
    /// The first bytes of region 0.
    pub constants: Vec<u8>,
    /// Named parts of the constants.
    pub sections: Vec<Section>,
    /// Tensors that the host writes, in order.
    pub inputs: Vec<Binding>,
    /// Tensors that the host reads, in order.
    pub outputs: Vec<Binding>,
}

/// Counts over a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Instructions of load, gemm, vector and store.
    pub insns: [u32; 4],
    /// Tokens.
    pub tokens: u32,
    /// Gemm's micro-ops including all loops: its busy cycles.
    pub gemm_cycles: u64,
    /// Rows that vector computes.
    pub vector_rows: u64,
    /// Bytes that loads read from device memory.
    pub load_bytes: u64,
    /// Bytes that stores write to device memory.
    pub store_bytes: u64,
}

impl AccelProgram {
    /// Checks a program that was read from a file: constants and bindings must be inside their regions.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), String> {
        // Larger than any memory, and small enough that sums of regions do not overflow.
        const MOST_BYTES: u64 = 1 << 48;
        for region in &self.regions {
            if region.bytes > MOST_BYTES {
                return Err(format!("region {} has {} bytes, more than any memory", region.name, region.bytes));
            }
        }
        match self.regions.first() {
            Some(region) if self.constants.len() as u64 <= region.bytes => {}
            _ => return Err("its constants do not fit their region".into()),
        }
        for binding in self.inputs.iter().chain(&self.outputs) {
            let end = binding.offset.checked_add(binding.bytes);
            let region = self.regions.get(binding.region.0 as usize);
            if !matches!((end, region), (Some(end), Some(region)) if end <= region.bytes) {
                return Err(format!("{} is outside its region", binding.name));
            }
        }
        Ok(())
    }

    /// Instructions of the stream.
    pub fn insn_count(&self) -> usize {
        self.stream.len() / INSN_BYTES
    }

    /// The decoded stream.
    ///
    /// # Errors
    /// Index and reason of the first instruction that does not decode for the configuration.
    pub fn decode(&self, config: &HwConfig) -> Result<Vec<Insn>, (usize, DecodeError)> {
        let chunks = self.stream.chunks_exact(INSN_BYTES).enumerate();
        chunks
            .map(|(i, bytes)| {
                let mut raw = [0; INSN_BYTES];
                raw.copy_from_slice(bytes);
                isa::decode(&raw, config).map_err(|e| (i, e))
            })
            .collect()
    }

    /// The program's assembly text, with its regions and sections as comments.
    ///
    /// # Errors
    /// As [`AccelProgram::decode`].
    pub fn disassemble(&self, config: &HwConfig) -> Result<String, (usize, DecodeError)> {
        let mut text = format!("# configuration {:016x}, instruction set {}\n", self.config_hash, self.isa_version);
        for (i, r) in self.regions.iter().enumerate() {
            text.push_str(&format!("# base {i}: {} {:?}, {} bytes\n", r.name, r.role, r.bytes));
        }
        for s in &self.sections {
            text.push_str(&format!("# constants {:#x}: {} {:?}, {} bytes\n", s.offset, s.name, s.role, s.bytes));
        }
        for (kind, list) in [("input", &self.inputs), ("output", &self.outputs)] {
            for b in list {
                text.push_str(&format!(
                    "# {kind} {}: base {} from byte {:#x}, {} bytes\n",
                    b.name, b.region.0, b.offset, b.bytes
                ));
            }
        }
        text.push_str(&isa::print_program(&self.decode(config)?));
        Ok(text)
    }

    /// Counts instructions, tokens, bytes and gemm's cycles.
    ///
    /// # Errors
    /// As [`AccelProgram::decode`].
    pub fn summary(&self, config: &HwConfig) -> Result<Summary, (usize, DecodeError)> {
        let mut sum = Summary::default();
        for insn in self.decode(config)? {
            sum.insns[insn.unit() as usize] += 1;
            sum.tokens += Unit::ALL.into_iter().filter(|&u| insn.push.contains(u)).count() as u32;
            let bytes = |counts: [u32; 3]| counts.into_iter().map(u64::from).product::<u64>();
            match insn.op {
                isa::Op::Load(x) => sum.load_bytes += bytes([x.row_bytes, x.rows, x.planes]),
                isa::Op::Store(x) => sum.store_bytes += bytes([x.row_bytes, x.rows, x.planes]),
                isa::Op::Gemm(x) => sum.gemm_cycles += x.micro_ops(),
                isa::Op::Vector(x) => sum.vector_rows += x.micro_ops(),
            }
        }
        Ok(sum)
    }
}
