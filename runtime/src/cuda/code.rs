//! What a back end generates: CUDA C, and how each entry's kernels are launched.

use serde::{Deserialize, Serialize};

/// Kernels as text, and the entries that launch them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaCode {
    /// CUDA C.
    pub source: String,
    /// Floating-point values are stored as float16 in the GPU's memory.
    pub half: bool,
    /// The entries that steps call.
    pub entries: Vec<CudaEntry>,
}

/// Kernels that together compute a step's outputs, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaEntry {
    /// Its name.
    pub symbol: String,
    /// Launches, one after the other.
    pub launches: Vec<Launch>,
    /// Computes the same with a product of cuBLASLt, if that is installed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub library: Vec<CudaCall>,
}

/// A call of an entry that uses a library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CudaCall {
    /// A kernel.
    Launch(Launch),
    /// A library product.
    Product(Product),
}

/// Types of the numbers that a product multiplies and sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Numbers {
    /// float32.
    F32,
    /// float16, summed in float32.
    F16,
    /// Signed bytes, summed in int32, exactly.
    I8,
}

/// `result[b, r, c] = sum over k of rows[b, r, k] * columns[b, c, k]`; the result is dense.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// Types.
    pub numbers: Numbers,
    /// Store sums of float16 as float16, not float32.
    pub narrow: bool,
    /// Number of products of the same shape.
    pub batch: u32,
    /// Columns of the result.
    pub columns: u32,
    /// Rows of the result.
    pub rows: u32,
    /// Length of each sum.
    pub steps: u32,
    /// The factor that varies along the columns of the result.
    pub of_columns: Factor,
    /// The factor that varies along the rows of the result.
    pub of_rows: Factor,
    /// Location of the result.
    pub result: Arg,
}

/// A factor of a product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// Its location.
    pub at: Arg,
    /// Its memory order.
    pub lie: Lie,
    /// Elements from one matrix of the batch to the next.
    pub stride: u64,
}

/// Memory order of a matrix: which elements are adjacent, and how many elements later the next such run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lie {
    /// The elements of one sum are adjacent.
    Steps(u64),
    /// The elements for neighboring rows or columns of the result are adjacent.
    Results(u64),
}

impl Product {
    /// Whether no valid product has these numbers.
    fn is_damaged(&self) -> bool {
        let factor = |f: &Factor, count: u32| match f.lie {
            Lie::Steps(next) => next < u64::from(self.steps) || next > i64::MAX as u64,
            Lie::Results(next) => next < u64::from(count) || next > i64::MAX as u64,
        };
        [self.batch, self.columns, self.rows, self.steps].iter().any(|&n| n == 0 || n > i32::MAX as u32)
            || factor(&self.of_columns, self.columns)
            || factor(&self.of_rows, self.rows)
            || [&self.of_columns, &self.of_rows].iter().any(|f| f.stride > i64::MAX as u64)
    }
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

/// Location of a kernel's argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arg {
    /// An input of the step.
    Input(u32),
    /// An output of the step.
    Output(u32),
    /// An offset in its workspace, in bytes.
    Workspace(u64),
}

/// Most threads of a block that every GPU supports, and the most blocks along the second and third dimension.
const MOST_THREADS: u32 = 1024;
const MOST_BLOCKS: u32 = 65_535;

impl CudaCode {
    /// Encodes the code for an artifact.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes the code.
    ///
    /// # Errors
    /// The parser's message.
    pub fn decode(bytes: &[u8]) -> Result<CudaCode, String> {
        serde_json::from_slice(bytes).map_err(|e| e.to_string())
    }

    /// Finds an entry, and checks that it fits a step with so many inputs, outputs and bytes of workspace.
    ///
    /// # Errors
    /// What does not fit.
    pub fn entry(&self, symbol: &str, inputs: usize, outputs: usize, workspace: u64) -> Result<&CudaEntry, String> {
        let found = self.entries.iter().find(|e| e.symbol == symbol);
        let entry = found.ok_or_else(|| format!("it has no entry {symbol}"))?;
        let fits = |arg: &Arg| match arg {
            Arg::Input(i) => (*i as usize) < inputs,
            Arg::Output(i) => (*i as usize) < outputs,
            Arg::Workspace(at) => *at <= workspace,
        };
        let launches = entry.library.iter().filter_map(|call| match call {
            CudaCall::Launch(launch) => Some(launch),
            CudaCall::Product(_) => None,
        });
        for launch in entry.launches.iter().chain(launches) {
            let threads = launch.block.iter().try_fold(1u32, |n, &b| n.checked_mul(b));
            let sizes = threads.is_some_and(|n| (1..=MOST_THREADS).contains(&n))
                && launch.grid.iter().all(|&n| n > 0)
                && launch.grid[0] <= i32::MAX as u32
                && launch.grid[1..].iter().all(|&n| n <= MOST_BLOCKS);
            if !sizes || !launch.args.iter().all(fits) {
                return Err(format!(
                    "kernel {} of entry {symbol} is launched with invalid sizes or arguments",
                    launch.kernel
                ));
            }
        }
        for call in &entry.library {
            let CudaCall::Product(p) = call else { continue };
            if p.is_damaged() || ![p.of_columns.at, p.of_rows.at, p.result].iter().all(fits) {
                return Err(format!("the product of entry {symbol} has invalid sizes or arguments"));
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
                library: Vec::new(),
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

    #[test]
    fn products_must_be_possible() {
        let factor = |at, lie| Factor { at, lie, stride: 0 };
        let product = Product {
            numbers: Numbers::I8,
            narrow: false,
            batch: 1,
            columns: 16,
            rows: 8,
            steps: 32,
            of_columns: factor(Arg::Input(0), Lie::Steps(32)),
            of_rows: factor(Arg::Input(1), Lie::Results(8)),
            result: Arg::Workspace(0),
        };
        let code = |product: &Product| CudaCode {
            entries: vec![CudaEntry {
                symbol: "e".into(),
                launches: Vec::new(),
                library: vec![CudaCall::Product(product.clone())],
            }],
            ..CudaCode::default()
        };
        let good = code(&product);
        assert_eq!(CudaCode::decode(&good.encode()).as_ref(), Ok(&good));
        assert!(good.entry("e", 2, 0, 0).is_ok() && good.entry("e", 1, 0, 0).is_err());
        let wrong = [
            Product { batch: 0, ..product.clone() },
            Product { steps: u32::MAX, ..product.clone() },
            Product { of_columns: factor(Arg::Input(0), Lie::Steps(31)), ..product.clone() },
            Product { of_rows: factor(Arg::Input(1), Lie::Results(7)), ..product.clone() },
            Product { result: Arg::Output(0), ..product.clone() },
        ];
        assert!(wrong.iter().all(|p| code(p).entry("e", 2, 0, 0).is_err()));
    }
}
