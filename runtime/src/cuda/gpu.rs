//! One GPU: memory, code, and launches in order.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::products::{Plan, Products};
use super::stream::{Function, GpuMemory, Mark, Module, Stream};
use super::{Arg, CudaCall, CudaCode, CudaEntry, CudaError, Form, Launch, Library, compile_cached, compiler_version};

/// A GPU that can be used.
#[derive(Debug, Clone)]
pub struct Gpu {
    stream: Arc<Stream>,
    capability: u32,
    /// `None` without cuBLASLt.
    products: Option<Arc<Products>>,
}

/// Loaded code.
#[derive(Debug)]
pub struct Program {
    functions: HashMap<String, Function>,
    /// For entries with library products, by symbol: the plans of their products, in order.
    plans: HashMap<String, Vec<Arc<Plan>>>,
    /// Scratch memory of the library.
    scratch: Option<GpuMemory>,
    _module: Module,
}

impl Gpu {
    /// The first GPU of this machine.
    ///
    /// # Errors
    /// [`CudaError::Unavailable`] without driver, GPU or NVRTC.
    pub fn open() -> Result<Gpu, CudaError> {
        Library::Driver.need()?;
        Library::Nvrtc.need()?;
        let stream = Stream::open()?;
        let capability = stream.capability()?;
        let products = if products_wanted() { Products::open(&stream).map(Arc::new) } else { None };
        Ok(Gpu { stream, capability, products })
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.stream.name().unwrap_or_else(|_| "a GPU".into())
    }

    /// Allocates `bytes` bytes of memory, at least one, aligned to 256 bytes and zeroed.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn allocate(&self, bytes: usize) -> Result<GpuMemory, CudaError> {
        GpuMemory::new(&self.stream, bytes)
    }

    /// Loads code, compiled for this GPU or taken from the cache in `folder`.
    ///
    /// # Errors
    /// As [`super::compile`], and [`CudaError::Driver`].
    pub fn load(&self, code: &CudaCode, folder: Option<&Path>) -> Result<Program, CudaError> {
        let binary = compile_cached(folder, &code.source, Form::Cubin(self.capability))?;
        let module = Module::new(&self.stream, &binary).map_err(|error| self.explained(error))?;
        let mut functions = HashMap::new();
        let mut plans = HashMap::new();
        let mut scratch = 0;
        for entry in &code.entries {
            let plan = self.plan(entry);
            let used: Vec<&Launch> = match &plan {
                Some(_) => launches(&entry.library).collect(),
                None => entry.launches.iter().collect(),
            };
            for launch in used {
                if !functions.contains_key(&launch.kernel) {
                    functions.insert(launch.kernel.clone(), module.function(&launch.kernel)?);
                }
            }
            if let Some(plan) = plan {
                scratch = plan.iter().map(|p| p.workspace_bytes()).fold(scratch, usize::max);
                plans.insert(entry.symbol.clone(), plan);
            }
        }
        let scratch = if scratch > 0 { Some(self.allocate(scratch)?) } else { None };
        Ok(Program { functions, plans, scratch, _module: module })
    }

    /// Explains why code did not load, if the compiler belongs to a newer CUDA than the driver.
    fn explained(&self, error: CudaError) -> CudaError {
        let (served, (major, minor)) = (self.stream.driver_version(), compiler_version());
        if served == 0 || served / 1000 >= major {
            return error;
        }
        CudaError::Unavailable {
            reason: format!(
                "{error}: the driver supports CUDA {}.{}, but NVRTC is {major}.{minor}",
                served / 1000,
                served % 1000 / 10
            ),
            remedy: format!("install a newer driver or NVRTC of CUDA {}, or use --device cpu", served / 1000),
        }
    }

    /// The library's plans for an entry's products; `None` if the library is missing or does not support one of them.
    fn plan(&self, entry: &CudaEntry) -> Option<Vec<Arc<Plan>>> {
        let products = self.products.as_ref()?;
        let wanted = entry.library.iter().filter_map(|call| match call {
            CudaCall::Product(product) => Some(products.plan(product)),
            CudaCall::Launch(_) => None,
        });
        let found = wanted.collect::<Option<Vec<_>>>()?;
        (!found.is_empty()).then_some(found)
    }

    /// Copies bytes to an offset of a memory.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn write(&self, memory: &mut GpuMemory, at: usize, bytes: &[u8]) -> Result<(), CudaError> {
        if bytes.is_empty() {
            return Ok(());
        }
        memory.write(at, bytes)
    }

    /// Copies bytes from an offset of a memory, after all earlier work is done.
    ///
    /// # Errors
    /// [`CudaError::Driver`], also if an earlier kernel failed.
    pub fn read(&self, memory: &GpuMemory, at: usize, bytes: &mut [u8]) -> Result<(), CudaError> {
        if bytes.is_empty() {
            return Ok(());
        }
        memory.read(at, bytes)
    }

    /// Launches an entry's kernels, given the addresses of inputs, outputs and workspace.
    ///
    /// # Errors
    /// [`CudaError::Driver`]; a later call reports what a kernel does wrong.
    pub fn launch(
        &self,
        program: &Program,
        entry: &CudaEntry,
        inputs: &[u64],
        outputs: &[u64],
        workspace: u64,
    ) -> Result<(), CudaError> {
        let none = || CudaError::Damaged(format!("entry {} has other arguments", entry.symbol));
        let place = |arg: &Arg| match arg {
            Arg::Input(i) => inputs.get(*i as usize).copied(),
            Arg::Output(i) => outputs.get(*i as usize).copied(),
            Arg::Workspace(at) => Some(workspace + at),
        };
        let Some(plans) = program.plans.get(&entry.symbol) else {
            return entry.launches.iter().try_for_each(|launch| self.kernel(program, launch, &place, none));
        };
        let mut plans = plans.iter();
        let scratch = program.scratch.as_ref().map_or(0, GpuMemory::address);
        for call in &entry.library {
            match call {
                CudaCall::Launch(launch) => self.kernel(program, launch, &place, none)?,
                CudaCall::Product(product) => {
                    let (plan, products) = plans.next().zip(self.products.as_ref()).ok_or_else(none)?;
                    let at = [product.of_columns.at, product.of_rows.at, product.result].map(|arg| place(&arg));
                    let [Some(columns), Some(rows), Some(result)] = at else { return Err(none()) };
                    products.multiply(plan, [columns, rows, result], scratch)?;
                }
            }
        }
        Ok(())
    }

    /// Launches a kernel.
    fn kernel(
        &self,
        program: &Program,
        launch: &Launch,
        place: &dyn Fn(&Arg) -> Option<u64>,
        none: impl Fn() -> CudaError,
    ) -> Result<(), CudaError> {
        let function = program.functions.get(&launch.kernel).ok_or_else(&none)?;
        let mut addresses = launch.args.iter().map(place).collect::<Option<Vec<u64>>>().ok_or_else(&none)?;
        let what = format!("launching {}", launch.kernel);
        // SAFETY: the toolkit's generator made the code. Its kernels take these pointers, all to memory of the sizes
        // that the manifest states, and write only outputs and workspace.
        unsafe { self.stream.launch(&what, *function, launch.grid, launch.block, &mut addresses) }
    }

    /// Records a mark with its time, after all earlier work.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn mark(&self) -> Result<Mark, CudaError> {
        Mark::new(&self.stream)
    }

    /// Seconds between two marks; waits for both.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn seconds(from: &Mark, to: &Mark) -> Result<f64, CudaError> {
        from.seconds_to(to)
    }

    /// Waits until all work is done.
    ///
    /// # Errors
    /// [`CudaError::Driver`] if a kernel failed.
    pub fn wait(&self) -> Result<(), CudaError> {
        self.stream.wait()
    }
}

/// Environment variable that turns off products by cuBLASLt if it is 0.
const USE_CUBLASLT: &str = "TILEWRIGHT_CUBLASLT";

fn products_wanted() -> bool {
    std::env::var_os(USE_CUBLASLT).is_none_or(|value| value != "0") && Library::CublasLt.is_present()
}

fn launches(calls: &[CudaCall]) -> impl Iterator<Item = &Launch> {
    calls.iter().filter_map(|call| match call {
        CudaCall::Launch(launch) => Some(launch),
        CudaCall::Product(_) => None,
    })
}

impl Program {
    /// Name of what computes an entry.
    pub fn computed_by(&self, entry: &str) -> &'static str {
        if self.plans.contains_key(entry) { "cublaslt" } else { "kernels" }
    }
}
