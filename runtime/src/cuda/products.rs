//! Products of matrices by cuBLASLt: what it is asked for, and what it chose, by the product's shape.
//!
//! cuBLASLt counts rows and columns the other way: its matrices lie column by column, so the columns of a result that lies row
//! by row are its rows. Floats of 32 bits are multiplied as such, without the shorter format of tensor cores (TF32).

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::cublaslt::result::{self, CublasError};
use cudarc::cublaslt::sys::{self, cublasComputeType_t, cudaDataType};
use cudarc::driver::CudaStream;

use super::{CudaError, Factor, Lie, Numbers, Product};

/// Most bytes that it may take beside a product's matrices.
const MOST_WORKSPACE: usize = 32 << 20;

/// cuBLASLt on the GPU of the context that was current when it was opened.
#[derive(Debug)]
pub struct Products {
    handle: sys::cublasLtHandle_t,
    /// What it chose; none for a product that it does not take.
    plans: Mutex<HashMap<Key, Option<Arc<Plan>>>>,
}

// SAFETY: cuBLASLt may be called from any thread.
unsafe impl Send for Products {}
// SAFETY: as above, and the plans are behind a lock.
unsafe impl Sync for Products {}

/// A product without the places of its matrices.
type Key = (Numbers, bool, [u32; 4], [(Lie, u64); 2]);

/// How a product is computed.
#[derive(Debug)]
pub struct Plan {
    description: sys::cublasLtMatmulDesc_t,
    /// Of the columns' factor, the rows' factor and the result.
    layouts: [sys::cublasLtMatrixLayout_t; 3],
    chosen: sys::cublasLtMatmulHeuristicResult_t,
    is_integer: bool,
}

// SAFETY: descriptions and layouts are data, which nothing changes after they are made.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: each was made by the library and is not used again.
        unsafe {
            let _ = result::destroy_matmul_desc(self.description);
            for layout in self.layouts {
                let _ = result::destroy_matrix_layout(layout);
            }
        }
    }
}

impl Drop for Products {
    fn drop(&mut self) {
        // SAFETY: it was made by the library and is not used again.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

impl Plan {
    /// Bytes that the library takes beside the matrices.
    pub fn workspace_bytes(&self) -> usize {
        self.chosen.workspaceSize
    }
}

impl Products {
    /// Opens it; none where it does not work here. The library must be present.
    pub fn open() -> Option<Products> {
        let handle = result::create_handle().ok()?;
        Some(Products { handle, plans: Mutex::default() })
    }

    /// How it computes a product; none where it does not.
    pub fn plan(&self, p: &Product) -> Option<Arc<Plan>> {
        let factor = |f: &Factor| (f.lie, f.stride);
        let key: Key =
            (p.numbers, p.narrow, [p.batch, p.columns, p.rows, p.steps], [factor(&p.of_columns), factor(&p.of_rows)]);
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.entry(key).or_insert_with(|| self.choose(p).ok().map(Arc::new)).clone()
    }

    fn choose(&self, p: &Product) -> Result<Plan, CublasError> {
        let (compute, scale, taken, given) = match p.numbers {
            Numbers::F32 => (
                cublasComputeType_t::CUBLAS_COMPUTE_32F,
                cudaDataType::CUDA_R_32F,
                cudaDataType::CUDA_R_32F,
                cudaDataType::CUDA_R_32F,
            ),
            Numbers::F16 => (
                cublasComputeType_t::CUBLAS_COMPUTE_32F,
                cudaDataType::CUDA_R_32F,
                cudaDataType::CUDA_R_16F,
                if p.narrow { cudaDataType::CUDA_R_16F } else { cudaDataType::CUDA_R_32F },
            ),
            Numbers::I8 => (
                cublasComputeType_t::CUBLAS_COMPUTE_32I,
                cudaDataType::CUDA_R_32I,
                cudaDataType::CUDA_R_8I,
                cudaDataType::CUDA_R_32I,
            ),
        };
        let (columns, rows) = (u64::from(p.columns), u64::from(p.rows));
        let mut parts = Parts::default();
        let description = parts.description(compute, scale)?;
        let with_steps = |f: &Factor| matches!(f.lie, Lie::Steps(_));
        // The columns' factor is transposed where its steps are side by side, that of the rows where they are not.
        let turned = [
            (sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSA, with_steps(&p.of_columns)),
            (sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSB, !with_steps(&p.of_rows)),
        ];
        for (attribute, is_turned) in turned {
            let value = i32::from(is_turned);
            // SAFETY: the description is one, and the attribute is an int.
            unsafe {
                result::set_matmul_desc_attribute(description, attribute, (&raw const value).cast(), size_of::<i32>())
            }?;
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
        // SAFETY: all are what the library made above.
        let chosen = unsafe {
            let most = MOST_WORKSPACE;
            let attribute = sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
            result::set_matmul_pref_attribute(preference, attribute, (&raw const most).cast(), size_of::<usize>())?;
            let [a, b, d] = layouts;
            result::get_matmul_algo_heuristic(self.handle, description, a, b, d, d, preference)
        }?;
        parts.keep();
        Ok(Plan { description, layouts, chosen, is_integer: p.numbers == Numbers::I8 })
    }

    /// Computes a product of matrices at addresses on a boundary of 256 bytes: the columns' factor, the rows' and the result.
    ///
    /// # Errors
    /// [`CudaError::Driver`] with what the library says.
    pub fn multiply(
        &self,
        plan: &Plan,
        [columns, rows, product]: [u64; 3],
        scratch: u64,
        stream: &CudaStream,
    ) -> Result<(), CudaError> {
        let (float, integer) = ([1f32, 0f32], [1i32, 0i32]);
        let factor = |i: usize| -> *const c_void {
            if plan.is_integer { (&raw const integer[i]).cast() } else { (&raw const float[i]).cast() }
        };
        let [a, b, d] = plan.layouts;
        let at = |address: u64| address as usize as *mut c_void;
        // SAFETY: the plan was made by this library for matrices of the sizes that the manifest names at these places, and the
        // scratch memory has the bytes that it asks for. Factors are read before this returns.
        let done = unsafe {
            result::matmul(
                self.handle,
                plan.description,
                factor(0),
                factor(1),
                at(columns).cast_const(),
                a,
                at(rows).cast_const(),
                b,
                at(product).cast_const(),
                d,
                at(product),
                d,
                &raw const plan.chosen.algo,
                at(scratch),
                plan.chosen.workspaceSize,
                stream.cu_stream().cast(),
            )
        };
        done.map_err(|e| CudaError::Driver { what: "a product by cuBLASLt".into(), reason: format!("{e:?}") })
    }
}

/// What is made on the way to a plan, destroyed where that is not reached.
#[derive(Default)]
struct Parts {
    descriptions: Vec<sys::cublasLtMatmulDesc_t>,
    layouts: Vec<sys::cublasLtMatrixLayout_t>,
    preferences: Vec<sys::cublasLtMatmulPreference_t>,
}

impl Parts {
    fn description(
        &mut self,
        compute: cublasComputeType_t,
        scale: cudaDataType,
    ) -> Result<sys::cublasLtMatmulDesc_t, CublasError> {
        let made = result::create_matmul_desc(compute, scale)?;
        self.descriptions.push(made);
        Ok(made)
    }

    fn layout(
        &mut self,
        kind: cudaDataType,
        [rows, columns]: [u64; 2],
        next: u64,
        batch: u32,
        stride: u64,
    ) -> Result<sys::cublasLtMatrixLayout_t, CublasError> {
        let made = result::create_matrix_layout(kind, rows, columns, next as i64)?;
        self.layouts.push(made);
        if batch > 1 {
            let (count, stride) = (batch as i32, stride as i64);
            let attribute = sys::cublasLtMatrixLayoutAttribute_t::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT;
            // SAFETY: the layout is one, and the attribute is an int.
            unsafe {
                result::set_matrix_layout_attribute(made, attribute, (&raw const count).cast(), size_of::<i32>())
            }?;
            let attribute = sys::cublasLtMatrixLayoutAttribute_t::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET;
            // SAFETY: as above, one of 64 bits.
            unsafe {
                result::set_matrix_layout_attribute(made, attribute, (&raw const stride).cast(), size_of::<i64>())
            }?;
        }
        Ok(made)
    }

    fn preference(&mut self) -> Result<sys::cublasLtMatmulPreference_t, CublasError> {
        let made = result::create_matmul_pref()?;
        self.preferences.push(made);
        Ok(made)
    }

    /// Leaves description and layouts to the plan.
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
                let _ = result::destroy_matmul_desc(*description);
            }
            for layout in &self.layouts {
                let _ = result::destroy_matrix_layout(*layout);
            }
            for preference in &self.preferences {
                let _ = result::destroy_matmul_pref(*preference);
            }
        }
    }
}
