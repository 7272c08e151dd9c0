//! Translates loop programs to CUDA C, or to C99 for one thread.
//!
//! Every top-level nest of a function becomes a kernel: loops bound to blocks and threads form the grid, the others
//! become loops. A reduction with nothing between its loops keeps its value in a register. Local buffers become arrays
//! of a thread ([`registers`]), shared ones arrays of a block, with a barrier after writes.

mod expr;
mod kernel;
mod registers;

use std::collections::HashMap;

use tilewright_compiler::te::{DType, Name};
use tilewright_compiler::tir::{Action, Buffer, Function, Scope, Stmt};
use tilewright_runtime::cuda::{Arg, Launch};
use tilewright_runtime::placement::{self, Buffer as Lifetime, place};

use crate::EmitError;
use kernel::Kernel;

/// Helper functions that precede all kernels of a source.
pub const PRELUDE: &str = include_str!("prelude.cu");

/// What the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// CUDA C.
    Cuda,
    /// C99. No loop may be bound to blocks or threads.
    C99,
}

/// Alignment of buffers in a workspace.
pub(crate) const ALIGN: u64 = 256;

/// A function as kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionKernels {
    /// CUDA C, without [`PRELUDE`].
    pub source: String,
    /// The launches of its kernels, in order.
    pub launches: Vec<Launch>,
    /// Size in bytes of the buffers that live between kernels.
    pub workspace_bytes: u64,
}

/// Emits the kernels of a verified function, named after `symbol`. With `half`, float parameters have 16 bits in
/// memory.
///
/// # Errors
/// [`EmitError`] for bindings that a GPU cannot execute.
pub fn emit(symbol: &str, f: &Function, half: bool) -> Result<FunctionKernels, EmitError> {
    emit_wide(symbol, f, half, None)
}

/// Emits a verified function as C99: one function for each nest, and `symbol`, which takes pointers as
/// `tilewright_compiler::backend` specifies and calls them. The workspace is in the result.
///
/// # Errors
/// [`EmitError`] for bound loops.
pub fn emit_c(symbol: &str, f: &Function) -> Result<FunctionKernels, EmitError> {
    let mut made = emit_as(Language::C99, symbol, f, false, None)?;
    let (inputs, params) = (f.inputs().len(), f.params.len());
    let argument = |arg: &Arg| match arg {
        Arg::Input(i) => format!("arguments[{i}]"),
        Arg::Output(i) => format!("arguments[{}]", inputs + *i as usize),
        Arg::Workspace(at) => format!("(void *)((char *)arguments[{params}] + {at})"),
    };
    made.source +=
        &format!("int32_t {symbol}(void *const *arguments);\n\nint32_t {symbol}(void *const *arguments) {{\n");
    for launch in &made.launches {
        let list: Vec<String> = launch.args.iter().map(argument).collect();
        made.source += &format!("  {}({});\n", launch.kernel, list.join(", "));
    }
    made.source += "  (void)arguments;\n  return 0;\n}\n\n";
    Ok(made)
}

/// Does the same as [`emit`], but keeps floats of the parameter `wide` at 32 bits.
///
/// # Errors
/// The same as [`emit`].
pub(crate) fn emit_wide(
    symbol: &str,
    f: &Function,
    half: bool,
    wide: Option<&Name>,
) -> Result<FunctionKernels, EmitError> {
    emit_as(Language::Cuda, symbol, f, half, wide)
}

fn emit_as(
    language: Language,
    symbol: &str,
    f: &Function,
    half: bool,
    wide: Option<&Name>,
) -> Result<FunctionKernels, EmitError> {
    let nests: Vec<&Stmt> = match &f.body {
        Stmt::Seq(items) => items.iter().collect(),
        one => vec![one],
    };
    let (offsets, workspace_bytes) = workspace(f, &nests);
    let mut kernels = FunctionKernels { source: String::new(), launches: Vec::new(), workspace_bytes };
    for (number, nest) in nests.iter().enumerate() {
        let alone = nests.len() == 1 && language == Language::Cuda;
        let name = if alone { symbol.to_string() } else { format!("{symbol}_{number}") };
        let used = used_buffers(f, nest);
        let Some(kernel) = Kernel::new(f, language, (half, wide), nest, &used)?.emit(&name)? else { continue };
        let args = used.iter().map(|b| place_of(f, b, &offsets)).collect::<Option<Vec<_>>>();
        let args = args.ok_or_else(|| EmitError::Program(format!("kernel {name} uses an unknown buffer")))?;
        kernels.source += &kernel.text;
        kernels.launches.push(Launch { kernel: name, grid: kernel.grid, block: kernel.block, args });
    }
    Ok(kernels)
}

/// Returns the global buffers that a nest uses: parameters in order, then the others.
fn used_buffers<'f>(f: &'f Function, nest: &Stmt) -> Vec<&'f Buffer> {
    let global = |b: &&Buffer| b.scope == Scope::Global && uses(f, nest, &b.name);
    f.params.iter().chain(&f.locals).filter(global).collect()
}

/// Returns whether a block of the statement reads or writes the buffer.
fn uses(f: &Function, s: &Stmt, name: &Name) -> bool {
    let mut found = false;
    s.visit_blocks(&mut |_, b| {
        found |= b.target() == Some(name);
        if let Action::Call { args, .. } = &b.action {
            found |= args.iter().any(|v| &v.buffer == name);
        }
        b.each_expr(&mut |e| {
            e.visit(&mut |e| {
                found |= matches!(e, tilewright_compiler::te::Expr::Load { buffer, .. } if buffer == name)
            });
        });
    });
    let _ = f;
    found
}

/// Places the buffers that live across nests. Returns their offsets and the total size in bytes.
fn workspace(f: &Function, nests: &[&Stmt]) -> (HashMap<Name, u64>, u64) {
    let kept: Vec<&Buffer> = f.locals.iter().filter(|b| b.scope == Scope::Global).collect();
    let lives: Vec<Lifetime> = kept
        .iter()
        .map(|b| {
            let times: Vec<usize> = (0..nests.len()).filter(|&n| uses(f, nests[n], &b.name)).collect();
            let (first, last) = (times.first().copied().unwrap_or(0), times.last().copied().unwrap_or(0));
            Lifetime { bytes: b.size_bytes().max(1) as u64, first, last }
        })
        .collect();
    let placement::Placement { offsets, bytes } = place(&lives, ALIGN);
    (kept.iter().map(|b| b.name.clone()).zip(offsets).collect(), bytes)
}

fn place_of(f: &Function, b: &Buffer, offsets: &HashMap<Name, u64>) -> Option<Arg> {
    let inputs = f.inputs().len();
    match f.params.iter().position(|p| p.name == b.name) {
        Some(i) if i < inputs => Some(Arg::Input(i as u32)),
        Some(i) => Some(Arg::Output((i - inputs) as u32)),
        None => offsets.get(&b.name).map(|at| Arg::Workspace(*at)),
    }
}

/// Returns the CUDA C type of a value.
fn c_type(t: DType) -> &'static str {
    match t {
        DType::I8 => "signed char",
        DType::U8 => "unsigned char",
        DType::I32 => "int",
        DType::I64 => "long long",
        DType::Bool => "bool",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::I16 => "short",
        DType::U16 => "unsigned short",
        DType::U32 => "unsigned",
        DType::U64 => "unsigned long long",
    }
}
