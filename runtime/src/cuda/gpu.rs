//! One GPU: memory, code, and launches in order.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaEvent, CudaFunction, CudaModule, CudaSlice, CudaStream, DevicePtr};
use cudarc::driver::{DriverError, LaunchConfig, PushKernelArg, sys};
use cudarc::nvrtc::Ptx;

use super::products::{Plan, Products};
use super::{Arg, CudaCode, CudaEntry, CudaError, Form, Launch, Library, Work, compile_cached};

/// A GPU that can be used.
#[derive(Debug, Clone)]
pub struct Gpu {
    stream: Arc<CudaStream>,
    capability: u32,
    /// None without cuBLASLt.
    products: Option<Arc<Products>>,
}

/// Bytes of its memory.
#[derive(Debug)]
pub struct Memory {
    slice: CudaSlice<u8>,
}

/// Loaded code.
#[derive(Debug)]
pub struct Program {
    functions: HashMap<String, CudaFunction>,
    /// Of entries that a library computes a part of, by symbol: how it does, in the order of their products.
    plans: HashMap<String, Vec<Arc<Plan>>>,
    /// What the library takes beside them.
    scratch: Option<Memory>,
    _module: Arc<CudaModule>,
}

fn driver(what: &str) -> impl Fn(DriverError) -> CudaError {
    let what = what.to_string();
    move |e| CudaError::Driver { what: what.clone(), reason: format!("{e:?}") }
}

impl Gpu {
    /// The first GPU of this machine.
    ///
    /// # Errors
    /// [`CudaError::Unavailable`] without driver, GPU or NVRTC.
    pub fn open() -> Result<Gpu, CudaError> {
        Library::Driver.need()?;
        Library::Nvrtc.need()?;
        let unavailable =
            |reason: String| CudaError::Unavailable { reason, remedy: "see nvidia-smi, or use --device cpu".into() };
        let context =
            CudaContext::new(0).map_err(|e| unavailable(format!("the driver finds no GPU that it can use ({e:?})")))?;
        let (major, minor) = context.compute_capability().map_err(driver("asking for the GPU's kind"))?;
        let stream = context.new_stream().map_err(driver("making a stream"))?;
        let products = if products_wanted() { Products::open().map(Arc::new) } else { None };
        Ok(Gpu { stream, capability: (major * 10 + minor) as u32, products })
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.stream.context().name().unwrap_or_else(|_| "a GPU".into())
    }

    /// Memory of so many bytes, at least one, whatever they hold.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn allocate(&self, bytes: usize) -> Result<Memory, CudaError> {
        let slice = self
            .stream
            .alloc_zeros(bytes.max(1))
            .map_err(driver(&format!("taking {bytes} bytes of the GPU's memory")))?;
        Ok(Memory { slice })
    }

    /// Code, compiled for this GPU or taken from the cache in `folder`.
    ///
    /// # Errors
    /// As [`super::compile`], and [`CudaError::Driver`].
    pub fn load(&self, code: &CudaCode, folder: Option<&Path>) -> Result<Program, CudaError> {
        let binary = compile_cached(folder, &code.source, Form::Cubin(self.capability))?;
        let module = self.stream.context().load_module(Ptx::from_binary(binary)).map_err(driver("loading code"))?;
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
                    let what = format!("finding kernel {}", launch.kernel);
                    let f = module.load_function(&launch.kernel).map_err(driver(&what))?;
                    functions.insert(launch.kernel.clone(), f);
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

    /// How a library computes an entry's products; none where it is not there, or takes one of them not.
    fn plan(&self, entry: &CudaEntry) -> Option<Vec<Arc<Plan>>> {
        let products = self.products.as_ref()?;
        let wanted = entry.library.iter().filter_map(|work| match work {
            Work::Product(product) => Some(products.plan(product)),
            Work::Launch(_) => None,
        });
        let found = wanted.collect::<Option<Vec<_>>>()?;
        (!found.is_empty()).then_some(found)
    }

    /// Copies bytes to a place of its memory.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn write(&self, memory: &mut Memory, at: usize, bytes: &[u8]) -> Result<(), CudaError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let what = "copying to the GPU";
        let mut view = memory.slice.try_slice_mut(at..at + bytes.len()).ok_or_else(|| outside(what))?;
        self.stream.memcpy_htod(bytes, &mut view).map_err(driver(what))?;
        // The caller's bytes may change as soon as this returns.
        self.wait()
    }

    /// Copies bytes from a place of its memory, when all before it is done.
    ///
    /// # Errors
    /// [`CudaError::Driver`], also where a kernel before it failed.
    pub fn read(&self, memory: &Memory, at: usize, bytes: &mut [u8]) -> Result<(), CudaError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let what = "copying from the GPU";
        let view = memory.slice.try_slice(at..at + bytes.len()).ok_or_else(|| outside(what))?;
        self.stream.memcpy_dtoh(&view, bytes).map_err(driver(what))?;
        self.wait()
    }

    /// Launches an entry's kernels, with the places of inputs, outputs and workspace as addresses.
    ///
    /// # Errors
    /// [`CudaError::Driver`]; what a kernel does wrong is reported by a later call.
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
        let scratch = program.scratch.as_ref().map_or(0, Memory::address);
        for work in &entry.library {
            match work {
                Work::Launch(launch) => self.kernel(program, launch, &place, none)?,
                Work::Product(product) => {
                    let (plan, products) = plans.next().zip(self.products.as_ref()).ok_or_else(none)?;
                    let at = [product.of_columns.at, product.of_rows.at, product.result].map(|arg| place(&arg));
                    let [Some(columns), Some(rows), Some(result)] = at else { return Err(none()) };
                    products.multiply(plan, [columns, rows, result], scratch, &self.stream)?;
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
        let addresses = launch.args.iter().map(place).collect::<Option<Vec<u64>>>().ok_or_else(&none)?;
        let mut builder = self.stream.launch_builder(function);
        for address in &addresses {
            builder.arg(address);
        }
        let [gx, gy, gz] = launch.grid;
        let [bx, by, bz] = launch.block;
        let config = LaunchConfig { grid_dim: (gx, gy, gz), block_dim: (bx, by, bz), shared_mem_bytes: 0 };
        // SAFETY: the code is of the toolkit's generator, whose kernels take these pointers, all to memory of the sizes that
        // the manifest names, and write outputs and workspace alone.
        unsafe { builder.launch(config) }.map_err(driver(&format!("launching {}", launch.kernel)))?;
        Ok(())
    }

    /// A mark in the order of what is done, with its time.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn mark(&self) -> Result<CudaEvent, CudaError> {
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        self.stream.record_event(flags).map_err(driver("marking a time"))
    }

    /// Seconds between two marks, which are waited for.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn seconds(from: &CudaEvent, to: &CudaEvent) -> Result<f64, CudaError> {
        from.elapsed_ms(to).map(|ms| f64::from(ms) / 1e3).map_err(driver("reading a time"))
    }

    /// Waits until all is done.
    ///
    /// # Errors
    /// [`CudaError::Driver`] where a kernel failed.
    pub fn wait(&self) -> Result<(), CudaError> {
        self.stream.synchronize().map_err(driver("waiting for the GPU"))
    }
}

/// The variable that keeps products from cuBLASLt, where it is 0.
const USE_CUBLASLT: &str = "TILEWRIGHT_CUBLASLT";

fn products_wanted() -> bool {
    std::env::var_os(USE_CUBLASLT).is_none_or(|value| value != "0") && Library::CublasLt.is_present()
}

fn launches(work: &[Work]) -> impl Iterator<Item = &Launch> {
    work.iter().filter_map(|work| match work {
        Work::Launch(launch) => Some(launch),
        Work::Product(_) => None,
    })
}

impl Program {
    /// What computes an entry, in words.
    pub fn computed_by(&self, entry: &str) -> &'static str {
        if self.plans.contains_key(entry) { "cublaslt" } else { "kernels" }
    }
}

impl Memory {
    /// The address of its first byte.
    pub fn address(&self) -> u64 {
        self.slice.device_ptr(self.slice.stream()).0
    }
}

fn outside(what: &str) -> CudaError {
    CudaError::Driver { what: what.into(), reason: "it is outside of the memory taken".into() }
}
