//! Matrix products by cuBLASLt: what is requested, and the library's choice, by the product's shape.
//!
//! cuBLASLt swaps rows and columns: its matrices are column-major, so the columns of a row-major result are its rows.
//! 32-bit floats are multiplied as such, without the shorter format of tensor cores (TF32).

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use super::stream::Stream;
use super::sys::{Code, CublasLt, Handle, MatmulHeuristic, cublaslt};
use super::{CudaError, Factor, Lie, Numbers, Product};

/// `cublasComputeType_t`.
const COMPUTE_32F: c_int = 68;
const COMPUTE_32I: c_int = 72;
/// `cudaDataType_t`.
const R_32F: c_int = 0;
const R_16F: c_int = 2;
const R_8I: c_int = 3;
const R_32I: c_int = 10;
/// `cublasLtMatmulDescAttributes_t`: whether the first and the second matrix are transposed.
const TRANSPOSED: [c_int; 2] = [3, 4];
/// `cublasLtMatrixLayoutAttribute_t`.
const BATCH_COUNT: c_int = 5;
const BATCH_STRIDE: c_int = 6;
/// `cublasLtMatmulPreferenceAttributes_t`.
const WORKSPACE_BYTES: c_int = 1;

/// Most scratch bytes that the library can use for a product.
const MOST_WORKSPACE: usize = 32 << 20;

impl std::fmt::Debug for CublasLt {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("CublasLt")
    }
}

/// cuBLASLt on the GPU of a stream, which runs its products.
#[derive(Debug)]
pub(super) struct Products {
    library: &'static CublasLt,
    handle: Handle,
    stream: Arc<Stream>,
    /// The library's choices; `None` for a product that it does not support.
    plans: Mutex<HashMap<Key, Option<Arc<Plan>>>>,
}

// SAFETY: cuBLASLt can be called from any thread.
unsafe impl Send for Products {}
// SAFETY: as above, and the plans are behind a lock.
unsafe impl Sync for Products {}

/// A product without the locations of its matrices.
type Key = (Numbers, bool, [u32; 4], [(Lie, u64); 2]);

/// How a product is computed.
#[derive(Debug)]
pub(super) struct Plan {
    library: &'static CublasLt,
    description: Handle,
    /// Layouts of the columns' factor, the rows' factor and the result.
    layouts: [Handle; 3],
    chosen: MatmulHeuristic,
    is_integer: bool,
}

// SAFETY: descriptions and layouts are data that does not change after its creation.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: each was made by the library and is not used again.
        unsafe {
            let _ = self.library.cublasLtMatmulDescDestroy(self.description);
            for layout in self.layouts {
                let _ = self.library.cublasLtMatrixLayoutDestroy(layout);
            }
        }
    }
}

impl Drop for Products {
    fn drop(&mut self) {
        let _ = self.stream.enter();
        // SAFETY: it was made by the library and is not used again.
        let _ = unsafe { self.library.cublasLtDestroy(self.handle) };
    }
}

impl Plan {
    /// Scratch bytes that the library needs.
    pub fn workspace_bytes(&self) -> usize {
        self.chosen.workspace_bytes
    }
}

impl Products {
    /// Opens the library; `None` if it is not installed or does not work here.
    pub fn open(stream: &Arc<Stream>) -> Option<Products> {
        let library = cublaslt().ok()?;
        stream.enter().ok()?;
        let mut handle = ptr::null_mut();
        // SAFETY: `handle` is a place for the result.
        unsafe { library.cublasLtCreate(&mut handle) }.ok()?;
        Some(Products { library, handle, stream: stream.clone(), plans: Mutex::default() })
    }

    /// The library's plan for a product; `None` if it does not support it.
    pub fn plan(&self, p: &Product) -> Option<Arc<Plan>> {
        let factor = |f: &Factor| (f.lie, f.stride);
        let key: Key =
            (p.numbers, p.narrow, [p.batch, p.columns, p.rows, p.steps], [factor(&p.of_columns), factor(&p.of_rows)]);
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.entry(key).or_insert_with(|| self.choose(p).ok().map(Arc::new)).clone()
    }

    fn choose(&self, p: &Product) -> Result<Plan, Code> {
        let library = self.library;
        let (compute, scale, taken, given) = match p.numbers {
            Numbers::F32 => (COMPUTE_32F, R_32F, R_32F, R_32F),
            Numbers::F16 => (COMPUTE_32F, R_32F, R_16F, if p.narrow { R_16F } else { R_32F }),
            Numbers::I8 => (COMPUTE_32I, R_32I, R_8I, R_32I),
        };
        let (columns, rows) = (u64::from(p.columns), u64::from(p.rows));
        let mut parts = Parts::new(library);
        let description = parts.description(compute, scale)?;
        let with_steps = |f: &Factor| matches!(f.lie, Lie::Steps(_));
        // The columns' factor is transposed if its sums are contiguous, the rows' factor if they are not.
        for (attribute, is_turned) in TRANSPOSED.into_iter().zip([with_steps(&p.of_columns), !with_steps(&p.of_rows)]) {
            let value = i32::from(is_turned);
            let (value, bytes) = ((&raw const value).cast(), size_of::<i32>());
            // SAFETY: the description is valid, and the attribute is an int.
            unsafe { library.cublasLtMatmulDescSetAttribute(description, attribute, value, bytes) }?;
        }
        let mut matrix = |kind, f: &Factor, count: u64| {
            let (rows, columns, next) = match f.lie {
                Lie::Steps(next) => (u64::from(p.steps), count, next),
                Lie::Results(next) => (count, u64::from(p.steps), next),
            };
            parts.layout(kind, [rows, columns], next, p.batch, f.stride)
        };
        let layouts = [
            matrix(taken, &p.of_columns, columns)?,
            matrix(taken, &p.of_rows, rows)?,
            parts.layout(given, [columns, rows], columns, p.batch, columns * rows)?,
        ];
        let preference = parts.preference()?;
        let [a, b, d] = layouts;
        let (most, mut chosen, mut found) = (MOST_WORKSPACE, MatmulHeuristic::default(), 0);
        let (value, bytes) = ((&raw const most).cast(), size_of::<usize>());
        // SAFETY: the library made all handles above, and `chosen` is a place for one choice.
        unsafe {
            library.cublasLtMatmulPreferenceSetAttribute(preference, WORKSPACE_BYTES, value, bytes)?;
            library.cublasLtMatmulAlgoGetHeuristic(
                self.handle,
                description,
                a,
                b,
                d,
                d,
                preference,
                1,
                &mut chosen,
                &mut found,
            )?;
        }
        if found == 0 || chosen.state != 0 {
            return Err(Code(chosen.state));
        }
        parts.keep();
        Ok(Plan { library, description, layouts, chosen, is_integer: p.numbers == Numbers::I8 })
    }

    /// Computes a product of matrices at addresses aligned to 256 bytes: the columns' factor, the rows' and the result.
    ///
    /// # Errors
    /// [`CudaError::Driver`] with the library's status.
    pub fn multiply(&self, plan: &Plan, [columns, rows, product]: [u64; 3], scratch: u64) -> Result<(), CudaError> {
        let (float, integer) = ([1f32, 0f32], [1i32, 0i32]);
        let factor = |i: usize| -> *const c_void {
            if plan.is_integer { (&raw const integer[i]).cast() } else { (&raw const float[i]).cast() }
        };
        self.stream.enter()?;
        let [a, b, d] = plan.layouts;
        let at = |address: u64| address as usize as *mut c_void;
        // SAFETY: this library made the plan for matrices of the sizes that the manifest states at these addresses, and
        // the scratch memory has the bytes that the plan asks for. Factors are read before this returns.
        let done = unsafe {
            self.library.cublasLtMatmul(
                self.handle,
                plan.description,
                factor(0),
                at(columns).cast_const(),
                a,
                at(rows).cast_const(),
                b,
                factor(1),
                at(product).cast_const(),
                d,
                at(product),
                d,
                &raw const plan.chosen.algorithm,
                at(scratch),
                plan.chosen.workspace_bytes,
                self.stream.raw(),
            )
        };
        let reason = |code: Code| format!("cuBLASLt returned status {}", code.0);
        done.map_err(|code| CudaError::Driver { what: "a product by cuBLASLt".into(), reason: reason(code) })
    }
}

/// Objects made on the way to a plan, destroyed unless the plan is completed.
struct Parts {
    library: &'static CublasLt,
    descriptions: Vec<Handle>,
    layouts: Vec<Handle>,
    preferences: Vec<Handle>,
}

impl Parts {
    fn new(library: &'static CublasLt) -> Parts {
        Parts { library, descriptions: Vec::new(), layouts: Vec::new(), preferences: Vec::new() }
    }

    fn description(&mut self, compute: c_int, scale: c_int) -> Result<Handle, Code> {
        let mut made = ptr::null_mut();
        // SAFETY: `made` is a place for the description.
        unsafe { self.library.cublasLtMatmulDescCreate(&mut made, compute, scale) }?;
        self.descriptions.push(made);
        Ok(made)
    }

    fn layout(
        &mut self,
        kind: c_int,
        [rows, columns]: [u64; 2],
        next: u64,
        batch: u32,
        stride: u64,
    ) -> Result<Handle, Code> {
        let mut made = ptr::null_mut();
        // SAFETY: `made` is a place for the layout.
        unsafe { self.library.cublasLtMatrixLayoutCreate(&mut made, kind, rows, columns, next as i64) }?;
        self.layouts.push(made);
        if batch > 1 {
            let (count, stride) = (batch as i32, stride as i64);
            let set = |attribute, value: *const c_void, bytes| {
                // SAFETY: the layout is valid, and the attribute is an integer of so many bytes.
                unsafe { self.library.cublasLtMatrixLayoutSetAttribute(made, attribute, value, bytes) }
            };
            set(BATCH_COUNT, (&raw const count).cast(), size_of::<i32>())?;
            set(BATCH_STRIDE, (&raw const stride).cast(), size_of::<i64>())?;
        }
        Ok(made)
    }

    fn preference(&mut self) -> Result<Handle, Code> {
        let mut made = ptr::null_mut();
        // SAFETY: `made` is a place for the preference.
        unsafe { self.library.cublasLtMatmulPreferenceCreate(&mut made) }?;
        self.preferences.push(made);
        Ok(made)
    }

    /// Hands description and layouts over to the plan.
    fn keep(&mut self) {
        self.descriptions.clear();
        self.layouts.clear();
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // SAFETY: each was made by the library and is not used again.
        unsafe {
            for description in &self.descriptions {
                let _ = self.library.cublasLtMatmulDescDestroy(*description);
            }
            for layout in &self.layouts {
                let _ = self.library.cublasLtMatrixLayoutDestroy(*layout);
            }
            for preference in &self.preferences {
                let _ = self.library.cublasLtMatmulPreferenceDestroy(*preference);
            }
        }
    }
}
