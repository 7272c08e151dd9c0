//! The raw layer: mapped memory and calls into it.

use super::LoadError;

/// Memory of one object: code, constants and data, in this order.
#[derive(Debug)]
pub(super) struct Image {
    at: *mut u8,
    len: usize,
}

// SAFETY: the mapping belongs to the image alone and is unmapped once, when it is dropped; the code in it keeps no
// state that is tied to a thread.
unsafe impl Send for Image {}
// SAFETY: as above; shared references only read the address and call code, whose requirements `call` states.
unsafe impl Sync for Image {}

#[cfg(unix)]
impl Image {
    /// Zeroed memory that can be read and written; `len` is a multiple of the machine's pages.
    pub fn new(len: usize) -> Result<Image, LoadError> {
        let len = len.max(1);
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: an anonymous mapping at an address of the system's choice touches no memory in use.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(LoadError::Memory { bytes: len, reason: std::io::Error::last_os_error().to_string() });
        }
        Ok(Image { at: at.cast(), len })
    }

    /// Makes the first part executable and the second read-only, and leaves the rest writable. All ends are at page
    /// boundaries.
    pub fn protect(&mut self, code_end: usize, constants_end: usize) -> Result<(), LoadError> {
        let parts = [(0, code_end, libc::PROT_READ | libc::PROT_EXEC), (code_end, constants_end, libc::PROT_READ)];
        for (from, to, prot) in parts {
            if from >= to || to > self.len {
                continue;
            }
            // SAFETY: the range lies within this image's own mapping, and no reference to its bytes is alive, since
            // `self` is borrowed for change.
            let status = unsafe { libc::mprotect(self.at.add(from).cast(), to - from, prot) };
            if status != 0 {
                return Err(LoadError::Memory { bytes: self.len, reason: std::io::Error::last_os_error().to_string() });
            }
        }
        Ok(())
    }
}

#[cfg(unix)]
impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: `new` made the mapping with this length, and nothing uses it after its owner.
        unsafe { libc::munmap(self.at.cast(), self.len) };
    }
}

#[cfg(not(unix))]
impl Image {
    pub fn new(_len: usize) -> Result<Image, LoadError> {
        Err(LoadError::Host)
    }

    pub fn protect(&mut self, _code_end: usize, _constants_end: usize) -> Result<(), LoadError> {
        Err(LoadError::Host)
    }
}

impl Image {
    /// Its address.
    pub fn base(&self) -> u64 {
        self.at.expose_provenance() as u64
    }

    /// Makes the first `code` bytes visible to the processor as instructions, before the first of them runs.
    pub fn begin(&self, code: usize) {
        // An x86-64 sees its own writes as instructions; on other processors the instruction caches must be told.
        #[cfg(target_arch = "aarch64")]
        sync_instructions(self.at as usize, code.min(self.len));
        #[cfg(all(target_arch = "riscv64", target_os = "linux"))]
        {
            /// Linux's number of `riscv_flush_icache`.
            const FLUSH: libc::c_long = 259;
            let begin = self.at as usize;
            // SAFETY: a range of this image, for all threads; nothing is written.
            unsafe { libc::syscall(FLUSH, begin, begin + code.min(self.len), 0usize) };
        }
        #[cfg(all(target_arch = "arm", target_os = "linux"))]
        {
            /// Linux's number of `cacheflush`.
            const FLUSH: libc::c_long = 0x0f_0002;
            let begin = self.at as usize;
            // SAFETY: a range of this image; nothing is written.
            unsafe { libc::syscall(FLUSH, begin, begin + code.min(self.len), 0usize) };
        }
        #[cfg(not(any(
            target_arch = "aarch64",
            all(target_arch = "arm", target_os = "linux"),
            all(target_arch = "riscv64", target_os = "linux")
        )))]
        let _ = code;
    }

    /// Its bytes, before [`Image::protect`].
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has `len` zeroed bytes, is readable and writable until `protect`, and belongs to `self`,
        // which is borrowed for change.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }
}

/// Cleans the data cache and invalidates the instruction cache for some bytes, as in "Arm Architecture Reference
/// Manual" B2.2.5.
#[cfg(target_arch = "aarch64")]
fn sync_instructions(at: usize, bytes: usize) {
    use std::arch::asm;
    let sizes: usize;
    // SAFETY: the register tells the size of cache lines; Linux lets programs read it.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) sizes, options(nomem, nostack)) };
    let (data, code) = (4usize << (sizes >> 16 & 15), 4usize << (sizes & 15));
    for line in (at & !(data - 1)..at + bytes).step_by(data) {
        // SAFETY: the line is in memory that is mapped and readable.
        unsafe { asm!("dc cvau, {}", in(reg) line, options(nostack)) };
    }
    // SAFETY: a barrier.
    unsafe { asm!("dsb ish", options(nostack)) };
    for line in (at & !(code - 1)..at + bytes).step_by(code) {
        // SAFETY: as above.
        unsafe { asm!("ic ivau, {}", in(reg) line, options(nostack)) };
    }
    // SAFETY: barriers.
    unsafe { asm!("dsb ish", "isb", options(nostack)) };
}

/// Calls the packed function at an address.
///
/// # Safety
/// The address is that of a function of signature `extern "C" fn(*const *mut u8) -> i32`, and the arguments are what it
/// takes.
pub(super) unsafe fn call(address: usize, args: &[*mut u8]) -> i32 {
    let at = std::ptr::with_exposed_provenance::<u8>(address);
    // SAFETY: the caller says that a function of this type is at the address, so it is not null.
    let function: extern "C" fn(*const *mut u8) -> i32 =
        unsafe { std::mem::transmute::<*const u8, extern "C" fn(*const *mut u8) -> i32>(at) };
    function(args.as_ptr())
}
