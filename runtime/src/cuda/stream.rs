//! A GPU's context with its only stream, and what lives in it: memory, code and timed marks.
//!
//! All of them hold the stream, so that the context outlives them. Every operation waits for all earlier ones in the
//! stream.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use super::CudaError;
use super::sys::{Code, Driver, Handle, driver};

/// `CU_STREAM_NON_BLOCKING`: does not wait for the default stream, which other libraries use.
const NON_BLOCKING: u32 = 1;
/// `CU_EVENT_DEFAULT`: records a time.
const TIMED: u32 = 0;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
const CAPABILITY: [c_int; 2] = [75, 76];

/// A context and its stream.
#[derive(Debug)]
pub(super) struct Stream {
    driver: &'static Driver,
    device: c_int,
    context: Handle,
    raw: Handle,
}

// SAFETY: the driver can be called from any thread, and each call makes the context current.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("Driver")
    }
}

/// Describes what failed, with the driver's name of the error.
fn failed(driver: &Driver, what: &str, code: Code) -> CudaError {
    let mut name: *const c_char = ptr::null();
    // SAFETY: `name` is a place for the result, which points to memory of the driver.
    let known = unsafe { driver.cuGetErrorName(code.0, &mut name) }.is_ok() && !name.is_null();
    let reason = if known {
        // SAFETY: the driver's names are strings that it never frees.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    } else {
        format!("error {} of the driver", code.0)
    };
    CudaError::Driver { what: what.into(), reason }
}

impl Stream {
    /// The first GPU of this machine.
    pub(super) fn open() -> Result<Arc<Stream>, CudaError> {
        let driver = driver()?;
        let (mut device, mut context) = (0, ptr::null_mut());
        // SAFETY: `device` and `context` are places for the results.
        let found = unsafe {
            driver
                .cuInit(0)
                .and_then(|()| driver.cuDeviceGet(&mut device, 0))
                .and_then(|()| driver.cuDevicePrimaryCtxRetain(&mut context, device))
        };
        found.map_err(|code| CudaError::Unavailable {
            reason: format!("the driver finds no GPU that it can use ({})", failed(driver, "opening it", code)),
            remedy: "see nvidia-smi, or use --device cpu".into(),
        })?;
        let mut stream = Stream { driver, device, context, raw: ptr::null_mut() };
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is a place for the stream.
        stream.call("creating a stream", |driver| unsafe { driver.cuStreamCreate(&mut raw, NON_BLOCKING) })?;
        stream.raw = raw;
        Ok(Arc::new(stream))
    }

    /// Calls the driver with the context current.
    fn call(&self, what: &str, f: impl FnOnce(&Driver) -> Result<(), Code>) -> Result<(), CudaError> {
        // SAFETY: the context is held.
        let current = unsafe { self.driver.cuCtxSetCurrent(self.context) };
        current.and_then(|()| f(self.driver)).map_err(|code| failed(self.driver, what, code))
    }

    /// Makes the context current, which is where other CUDA libraries find it.
    pub(super) fn enter(&self) -> Result<(), CudaError> {
        self.call("entering the GPU's context", |_| Ok(()))
    }

    pub(super) fn raw(&self) -> Handle {
        self.raw
    }

    /// The GPU's name.
    pub(super) fn name(&self) -> Result<String, CudaError> {
        let mut bytes = [0u8; 256];
        let (to, count) = (bytes.as_mut_ptr().cast(), bytes.len() as c_int);
        // SAFETY: at most so many bytes are written.
        self.call("asking for the GPU's name", |driver| unsafe { driver.cuDeviceGetName(to, count, self.device) })?;
        let name = CStr::from_bytes_until_nul(&bytes).map(|name| name.to_string_lossy().into_owned());
        Ok(name.unwrap_or_else(|_| "a GPU".into()))
    }

    /// Its compute capability, major x 10 + minor.
    pub(super) fn capability(&self) -> Result<u32, CudaError> {
        let mut parts = [0; 2];
        for (part, attribute) in parts.iter_mut().zip(CAPABILITY) {
            let what = "asking for the GPU's compute capability";
            // SAFETY: `part` is a place for the value.
            self.call(what, |driver| unsafe { driver.cuDeviceGetAttribute(part, attribute, self.device) })?;
        }
        Ok((parts[0] * 10 + parts[1]) as u32)
    }

    /// The CUDA version that the driver supports, major x 1000 + minor x 10; 0 if it does not say.
    pub(super) fn driver_version(&self) -> u32 {
        let mut version = 0;
        // SAFETY: `version` is a place for the result.
        let asked = unsafe { self.driver.cuDriverGetVersion(&mut version) };
        asked.map_or(0, |()| version as u32)
    }

    /// Waits until all work is done.
    pub(super) fn wait(&self) -> Result<(), CudaError> {
        // SAFETY: the stream lives.
        self.call("waiting for the GPU", |driver| unsafe { driver.cuStreamSynchronize(self.raw) })
    }

    /// Launches a kernel with pointers as arguments.
    ///
    /// # Safety
    /// The kernel takes these pointers, and reads and writes only memory that the caller may give it.
    pub(super) unsafe fn launch(
        &self,
        what: &str,
        function: Function,
        [gx, gy, gz]: [u32; 3],
        [bx, by, bz]: [u32; 3],
        addresses: &mut [u64],
    ) -> Result<(), CudaError> {
        let mut places: Vec<*mut c_void> = addresses.iter_mut().map(|a| ptr::from_mut(a).cast()).collect();
        let arguments = places.as_mut_ptr();
        let (function, stream, none) = (function.0, self.raw, ptr::null_mut());
        // SAFETY: the caller's promise; arguments are copied before this returns.
        self.call(what, |driver| unsafe {
            driver.cuLaunchKernel(function, gx, gy, gz, bx, by, bz, 0, stream, arguments, none)
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: nobody holds the stream or anything in its context any more.
        let _ = self.call("leaving the GPU", |driver| unsafe {
            let destroyed = if self.raw.is_null() { Ok(()) } else { driver.cuStreamDestroy_v2(self.raw) };
            driver.cuDevicePrimaryCtxRelease_v2(self.device).and(destroyed)
        });
    }
}

/// A piece of a GPU's memory.
#[derive(Debug)]
pub struct GpuMemory {
    stream: Arc<Stream>,
    address: u64,
    bytes: usize,
}

impl GpuMemory {
    /// Allocates `bytes` bytes, at least one, zeroed and aligned to 256 bytes.
    pub(super) fn new(stream: &Arc<Stream>, bytes: usize) -> Result<GpuMemory, CudaError> {
        let what = format!("allocating {bytes} bytes of the GPU's memory");
        let mut memory = GpuMemory { stream: stream.clone(), address: 0, bytes: bytes.max(1) };
        let (mut address, count) = (0, memory.bytes);
        // SAFETY: `address` is a place for the result.
        stream.call(&what, |driver| unsafe { driver.cuMemAlloc_v2(&mut address, count) })?;
        memory.address = address;
        // SAFETY: the memory has this size.
        stream.call(&what, |driver| unsafe { driver.cuMemsetD8Async(address, 0, count, stream.raw) })?;
        Ok(memory)
    }

    /// The address of its first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The address of a range in it, which must be inside it.
    fn range(&self, what: &str, at: usize, bytes: usize) -> Result<u64, CudaError> {
        if at.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            let reason = "the range is outside the allocated memory".into();
            return Err(CudaError::Driver { what: what.into(), reason });
        }
        Ok(self.address + at as u64)
    }

    /// Copies bytes there and waits for the copy, because the caller's bytes can change afterwards.
    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) -> Result<(), CudaError> {
        let what = "copying to the GPU";
        let to = self.range(what, at, bytes.len())?;
        let (from, count, stream) = (bytes.as_ptr().cast(), bytes.len(), self.stream.raw);
        // SAFETY: the range is in the memory, and the bytes stay until the copy is done.
        self.stream.call(what, |driver| unsafe { driver.cuMemcpyHtoDAsync_v2(to, from, count, stream) })?;
        self.stream.wait()
    }

    /// Copies bytes from there and waits for them.
    pub(super) fn read(&self, at: usize, bytes: &mut [u8]) -> Result<(), CudaError> {
        let what = "copying from the GPU";
        let from = self.range(what, at, bytes.len())?;
        let (to, count, stream) = (bytes.as_mut_ptr().cast(), bytes.len(), self.stream.raw);
        // SAFETY: the range is in the memory, and the bytes are the caller's until the copy is done.
        self.stream.call(what, |driver| unsafe { driver.cuMemcpyDtoHAsync_v2(to, from, count, stream) })?;
        self.stream.wait()
    }
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        if self.address == 0 {
            return;
        }
        // Work that still uses it must end first.
        let _ = self.stream.wait();
        // SAFETY: nobody uses it any more.
        let _ = self.stream.call("freeing memory", |driver| unsafe { driver.cuMemFree_v2(self.address) });
    }
}

/// Loaded code.
#[derive(Debug)]
pub(super) struct Module {
    stream: Arc<Stream>,
    raw: Handle,
}

// SAFETY: nothing changes a module between its creation and its end.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

/// A kernel of a module, which the module must outlive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function(Handle);

// SAFETY: as for modules.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Module {
    /// Loads machine code.
    pub(super) fn new(stream: &Arc<Stream>, image: &[u8]) -> Result<Module, CudaError> {
        let mut raw = ptr::null_mut();
        let image = image.as_ptr().cast();
        // SAFETY: the image is complete, as its compiler made it, and is copied before this returns.
        stream.call("loading code", |driver| unsafe { driver.cuModuleLoadData(&mut raw, image) })?;
        Ok(Module { stream: stream.clone(), raw })
    }

    /// Finds a kernel.
    pub(super) fn function(&self, name: &str) -> Result<Function, CudaError> {
        let what = format!("finding kernel {name}");
        let text = CString::new(name).map_err(|_| CudaError::Damaged(format!("{what}: the name has a zero byte")))?;
        let mut raw = ptr::null_mut();
        // SAFETY: the module lives, and `raw` is a place for the function.
        let find = |driver: &Driver| unsafe { driver.cuModuleGetFunction(&mut raw, self.raw, text.as_ptr()) };
        self.stream.call(&what, find)?;
        Ok(Function(raw))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // Its kernels must have finished.
        let _ = self.stream.wait();
        // SAFETY: nobody launches its kernels any more.
        let _ = self.stream.call("unloading code", |driver| unsafe { driver.cuModuleUnload(self.raw) });
    }
}

/// A mark in the stream, with its time.
#[derive(Debug)]
pub struct Mark {
    stream: Arc<Stream>,
    raw: Handle,
}

// SAFETY: the driver's calls on events can be made from any thread.
unsafe impl Send for Mark {}
// SAFETY: as above.
unsafe impl Sync for Mark {}

impl Mark {
    /// Records a mark after all work requested so far.
    pub(super) fn new(stream: &Arc<Stream>) -> Result<Mark, CudaError> {
        let what = "marking a time";
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is a place for the event.
        stream.call(what, |driver| unsafe { driver.cuEventCreate(&mut raw, TIMED) })?;
        let mark = Mark { stream: stream.clone(), raw };
        // SAFETY: event and stream live.
        stream.call(what, |driver| unsafe { driver.cuEventRecord(raw, stream.raw) })?;
        Ok(mark)
    }

    /// Seconds to a later mark; waits for it.
    pub(super) fn seconds_to(&self, later: &Mark) -> Result<f64, CudaError> {
        let mut milliseconds = 0f32;
        // SAFETY: both events live and were recorded, and `milliseconds` is a place for the time.
        self.stream.call("reading a time", |driver| unsafe {
            driver
                .cuEventSynchronize(self.raw)
                .and_then(|()| driver.cuEventSynchronize(later.raw))
                .and_then(|()| driver.cuEventElapsedTime(&mut milliseconds, self.raw, later.raw))
        })?;
        Ok(f64::from(milliseconds) / 1e3)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        let _ = self.stream.call("removing a mark", |driver| unsafe { driver.cuEventDestroy_v2(self.raw) });
    }
}
