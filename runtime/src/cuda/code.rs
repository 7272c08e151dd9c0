//! What a back end hands over: text, and how each entry's kernels are launched.

use serde::{Deserialize, Serialize};

/// Kernels as text, and the entries that launch them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaCode {
    /// CUDA C.
    pub source: String,
    /// Values of floats lie in the GPU's memory as float16.
    pub half: bool,
    /// What steps call.
    pub entries: Vec<CudaEntry>,
}

/// Kernels that together compute a step's outputs, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaEntry {
    /// Its name.
    pub symbol: String,
    /// One launch after the other.
    pub launches: Vec<Launch>,
}

/// A kernel on a grid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Its name in the text.
    pub kernel: String,
    /// Blocks along each dimension.
    pub grid: [u32; 3],
    /// Threads of a block along each dimension.
    pub block: [u32; 3],
    /// Its arguments, each a pointer.
    pub args: Vec<Arg>,
}

/// Where an argument of a kernel lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arg {
    /// An input of the step.
    Input(u32),
    /// An output of the step.
    Output(u32),
    /// A place of its workspace, in bytes from the beginning.
    Workspace(u64),
}

/// Most threads of a block that every GPU takes, and the most blocks along the second and third dimension.
const MOST_THREADS: u32 = 1024;
const MOST_BLOCKS: u32 = 65_535;

impl CudaCode {
    /// The code as an artifact holds it.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads it back.
    ///
    /// # Errors
    /// What does not read.
    pub fn decode(bytes: &[u8]) -> Result<CudaCode, String> {
        serde_json::from_slice(bytes).map_err(|e| e.to_string())
    }

    /// The entry of that name, if it fits a step with so many inputs, outputs and bytes of workspace.
    ///
    /// # Errors
    /// What does not fit.
    pub fn entry(&self, symbol: &str, inputs: usize, outputs: usize, workspace: u64) -> Result<&CudaEntry, String> {
        let found = self.entries.iter().find(|e| e.symbol == symbol);
        let entry = found.ok_or_else(|| format!("it has no entry {symbol}"))?;
        for launch in &entry.launches {
            let threads = launch.block.iter().try_fold(1u32, |n, &b| n.checked_mul(b));
            let sizes = threads.is_some_and(|n| (1..=MOST_THREADS).contains(&n))
                && launch.grid.iter().all(|&n| n > 0)
                && launch.grid[0] <= i32::MAX as u32
                && launch.grid[1..].iter().all(|&n| n <= MOST_BLOCKS);
            let fits = |arg: &Arg| match arg {
                Arg::Input(i) => (*i as usize) < inputs,
                Arg::Output(i) => (*i as usize) < outputs,
                Arg::Workspace(at) => *at <= workspace,
            };
            if !sizes || !launch.args.iter().all(fits) {
                return Err(format!("kernel {} of entry {symbol} is launched with what it cannot have", launch.kernel));
            }
        }
        Ok(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_must_fit_their_steps() {
        let launch = |grid: [u32; 3], block: [u32; 3], args: &[Arg]| CudaCode {
            entries: vec![CudaEntry {
                symbol: "e".into(),
                launches: vec![Launch { kernel: "k".into(), grid, block, args: args.to_vec() }],
            }],
            ..CudaCode::default()
        };
        let good = launch([4, 1, 1], [256, 1, 1], &[Arg::Input(0), Arg::Workspace(64), Arg::Output(0)]);
        assert_eq!(CudaCode::decode(&good.encode()).as_ref(), Ok(&good));
        assert!(good.entry("e", 1, 1, 64).is_ok());
        assert!(good.entry("f", 1, 1, 64).is_err());
        for (inputs, outputs, workspace) in [(0, 1, 64), (1, 0, 64), (1, 1, 63)] {
            assert!(good.entry("e", inputs, outputs, workspace).is_err());
        }
        for (grid, block) in [([0, 1, 1], [1; 3]), ([1, 70_000, 1], [1; 3]), ([1; 3], [64, 64, 1]), ([1; 3], [0, 1, 1])]
        {
            assert!(launch(grid, block, &[]).entry("e", 0, 0, 0).is_err());
        }
    }
}
