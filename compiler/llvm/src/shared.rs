//! Code that several shapes share.
//!
//! At two shapes, the loops of a layer mostly have the same structure, and differ only in numbers: extents, strides,
//! bounds, factors. The first function of a structure is compiled as it is. When the second one comes, the numbers in
//! which both differ become arguments, and the code that is made then serves all further shapes that differ in these
//! numbers alone. If another number differs, it becomes an argument too, and the code is made anew.
//!
//! Numbers that decide how code is generated belong to the structure: unrolled loops and lanes of vectors.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Once;

use sha2::{Digest, Sha256};
use tilewright_compiler::te::{DType, Expr, Name};
use tilewright_compiler::tir::{Buffer, Function, LoopKind, Scope, Stmt};
use tilewright_hw::cache;

use crate::backend::{compile_functions, compile_open};
use crate::cache::{SUM, hash_of};
use crate::emit::{NUMBERS, Open, SIZES, size};
use crate::{EmitError, Processor};

/// Prefix of file names in the cache. Each file has the code of one structure.
const PREFIX: &str = "shapes-";

/// Symbol of the function in its object.
pub(crate) const SYMBOL: &str = "tw_shared";

/// The code of one function.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Code {
    pub object: Vec<u8>,
    pub workspace_bytes: usize,
    /// Its first further input, unless it is empty.
    pub sizes: Vec<i64>,
    /// Its last further input, unless it is empty.
    pub numbers: Vec<f32>,
}

/// A number of a function that can become an argument.
enum Number<'f> {
    /// The extent of the loop with this variable.
    Extent(&'f Name, &'f mut i64),
    /// A dimension of a buffer.
    Dim(&'f Name, usize, &'f mut i64),
    /// A constant, [`Expr::Int`] or [`Expr::Float`].
    Constant(&'f mut Expr),
}

/// Calls `f` on each number in a fixed order.
fn each_number(function: &mut Function, f: &mut dyn FnMut(Number)) {
    for Buffer { name, shape, .. } in function.params.iter_mut().chain(&mut function.locals) {
        shape.iter_mut().enumerate().for_each(|(axis, n)| f(Number::Dim(name, axis, n)));
    }
    in_statement(&mut function.body, f);
}

fn in_statement(s: &mut Stmt, f: &mut dyn FnMut(Number)) {
    match s {
        Stmt::Seq(list) => list.iter_mut().for_each(|s| in_statement(s, f)),
        Stmt::For(l) => {
            if matches!(l.kind, LoopKind::Serial | LoopKind::Parallel) {
                f(Number::Extent(&l.var, &mut l.extent));
            }
            in_statement(&mut l.body, f);
        }
        Stmt::Block(b) => b.each_expr_mut(&mut |e| {
            *e = e.rewrite(&mut |mut e| {
                let is_number = match &e {
                    Expr::Int(_, t) => *t != DType::Bool,
                    Expr::Float(_, t) => *t == DType::F32,
                    _ => false,
                };
                if is_number {
                    f(Number::Constant(&mut e));
                }
                e
            });
        }),
    }
}

/// Whether a loop has no iterations.
fn is_empty(function: &Function) -> bool {
    let mut found = false;
    function.body.visit_loops(&mut |l| found |= l.extent < 1);
    found
}

/// The bits of all numbers, and for each whether it is a float.
fn numbers(function: &Function) -> (Vec<i64>, Vec<bool>) {
    let (mut bits, mut floats) = (Vec::new(), Vec::new());
    each_number(&mut function.clone(), &mut |number| {
        let (value, is_float) = match number {
            Number::Extent(_, n) | Number::Dim(_, _, n) => (*n, false),
            Number::Constant(Expr::Int(v, _)) => (*v, false),
            Number::Constant(Expr::Float(v, _)) => ((*v as f32).to_bits().into(), true),
            Number::Constant(_) => (0, false),
        };
        bits.push(value);
        floats.push(is_float);
    });
    (bits, floats)
}

/// The function's text without its numbers.
fn structure(function: &Function) -> String {
    let mut bare = function.clone();
    each_number(&mut bare, &mut |number| match number {
        Number::Extent(_, n) | Number::Dim(_, _, n) => *n = 1,
        Number::Constant(Expr::Int(v, _)) => *v = 0,
        Number::Constant(Expr::Float(v, _)) => *v = 0.0,
        Number::Constant(_) => {}
    });
    bare.to_string()
}

/// For each number of a function, the argument that it is, or `None` if it is fixed. Sizes and floats are counted
/// separately.
type Slots = Vec<Option<u32>>;

/// The slots for functions with these numbers. Numbers that are equal in each function share an argument.
fn slots(seen: &[Vec<i64>], floats: &[bool]) -> Slots {
    let mut known: [HashMap<Vec<i64>, u32>; 2] = Default::default();
    let column = |at: usize| seen.iter().map(|numbers| numbers[at]).collect::<Vec<_>>();
    let slot = |(at, is_float): (usize, &bool)| {
        let column = column(at);
        if column.windows(2).all(|pair| pair[0] == pair[1]) {
            return None;
        }
        let arguments = &mut known[usize::from(*is_float)];
        let next = arguments.len() as u32;
        Some(*arguments.entry(column).or_insert(next))
    };
    floats.iter().enumerate().map(slot).collect()
}

/// The values of sizes and floats, if the function with these numbers fits code for those that were seen.
fn arguments(slots: &Slots, seen: &[Vec<i64>], numbers: &[i64], floats: &[bool]) -> Option<(Vec<i64>, Vec<f32>)> {
    let fixed = seen.first()?;
    let mut values: [HashMap<u32, i64>; 2] = Default::default();
    for (at, slot) in slots.iter().enumerate() {
        let expected = match slot {
            None => fixed[at],
            Some(argument) => *values[usize::from(floats[at])].entry(*argument).or_insert(numbers[at]),
        };
        if expected != numbers[at] {
            return None;
        }
    }
    let list = |values: &HashMap<u32, i64>| (0..values.len() as u32).map(|at| values[&at]).collect::<Vec<_>>();
    let singles = list(&values[1]).into_iter().map(|bits| f32::from_bits(bits as u32)).collect();
    Some((list(&values[0]), singles))
}

/// The function with arguments in place of its open numbers, which `Open` says for loops and buffers.
fn opened(function: &Function, slots: &Slots) -> (Function, Open) {
    let (mut function, mut open, mut at) = (function.clone(), Open::default(), 0);
    let mut counts = [0; 2];
    each_number(&mut function, &mut |number| {
        let slot = slots[at];
        at += 1;
        let Some(argument) = slot else { return };
        let count = &mut counts[usize::from(matches!(number, Number::Constant(Expr::Float(..))))];
        *count = (*count).max(argument as usize + 1);
        match number {
            Number::Extent(var, _) => {
                open.extents.insert(var.clone(), argument);
            }
            Number::Dim(buffer, axis, _) => {
                open.dims.entry(buffer.clone()).or_default().insert(axis, argument);
            }
            Number::Constant(e) => {
                *e = match &*e {
                    Expr::Int(_, DType::I64) => Expr::Var(size(argument)),
                    Expr::Float(_, dtype) => {
                        let indices = vec![Expr::int(argument.into())];
                        Expr::Load { buffer: NUMBERS.into(), dtype: *dtype, indices }
                    }
                    other => Expr::Var(size(argument)).cast(other.dtype()),
                };
            }
        }
    });
    let [sizes, singles] = counts;
    open.sizes = sizes;
    let further = [(SIZES, DType::I64, sizes + open.offsets(&function)), (NUMBERS, DType::F32, singles)];
    let further = further.into_iter().filter(|(_, _, count)| *count > 0).map(|(name, dtype, count)| {
        let shape = vec![count as i64];
        Buffer { name: name.into(), dtype, shape, scope: Scope::Global }
    });
    let inputs = function.inputs().len();
    function.params.splice(inputs..inputs, further);
    (function, open)
}

/// The code of one structure in the cache, with the numbers of the functions for which it was made. They say which numbers
/// are arguments.
struct File<'a> {
    folder: &'a Path,
    path: PathBuf,
}

impl File<'_> {
    fn of<'a>(folder: &'a Path, processor: &Processor, function: &Function) -> File<'a> {
        let key = hash_of(processor, [include_bytes!("shared.rs"), structure(function).as_bytes()]);
        File { folder, path: folder.join(format!("{PREFIX}{key}")) }
    }

    fn read(&self, count: usize) -> Option<(Vec<Vec<i64>>, Vec<u8>)> {
        let bytes = std::fs::read(&self.path).ok()?;
        let (sum, rest) = bytes.split_at_checked(SUM)?;
        if Sha256::digest(rest).as_slice() != sum {
            return None;
        }
        let (length, rest) = rest.split_first_chunk::<8>()?;
        let (seen, object) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        let seen: Vec<Vec<i64>> = serde_json::from_slice(seen).ok()?;
        let fits = !seen.is_empty() && seen.iter().all(|numbers| numbers.len() == count);
        cache::touch(&self.path);
        fits.then(|| (seen, object.to_vec()))
    }

    /// Stores code. Errors are ignored, because nothing depends on the cache.
    fn write(&self, seen: &[Vec<i64>], object: &[u8]) {
        let _ = self.try_write(seen, object);
    }

    fn try_write(&self, seen: &[Vec<i64>], object: &[u8]) -> std::io::Result<()> {
        let seen = serde_json::to_vec(seen)?;
        let body = [&(seen.len() as u64).to_le_bytes(), &seen[..], object].concat();
        std::fs::create_dir_all(self.folder)?;
        // A new shape can write many files.
        static CLEANED: Once = Once::new();
        CLEANED.call_once(|| cache::remove_unused(self.folder, PREFIX));
        let mut file = tempfile::Builder::new().prefix(cache::BUILD_PREFIX).tempfile_in(self.folder)?;
        file.write_all(&Sha256::digest(&body))?;
        file.write_all(&body)?;
        file.persist(&self.path)?;
        Ok(())
    }
}

/// Returns code for a function, from the cache if a function of the same structure has left code that fits.
///
/// # Errors
/// [`EmitError`].
pub(crate) fn code(folder: &Path, processor: &Processor, function: &Function) -> Result<Code, EmitError> {
    if is_empty(function) {
        // Arguments are extents of at least 1.
        let (object, workspaces) =
            compile_functions(processor, &[(SYMBOL.into(), function.clone())]).map_err(|(_, e)| e)?;
        return Ok(Code { object, workspace_bytes: workspaces[0], sizes: Vec::new(), numbers: Vec::new() });
    }
    let file = File::of(folder, processor, function);
    let (numbers, floats) = numbers(function);
    let (mut seen, object) =
        file.read(numbers.len()).map_or_else(Default::default, |(seen, object)| (seen, Some(object)));
    let known = slots(&seen, &floats);
    if let (Some(object), Some(given)) = (object, arguments(&known, &seen, &numbers, &floats)) {
        let (_, open) = opened(function, &known);
        return Ok(finished(object, function, &open, given));
    }
    seen.push(numbers.clone());
    let slots = slots(&seen, &floats);
    let (generic, open) = opened(function, &slots);
    let functions = vec![(SYMBOL.into(), generic, open.clone())];
    let (object, _) = compile_open(processor, functions).map_err(|(_, e)| e)?;
    file.write(&seen, &object);
    let given = arguments(&slots, &seen, &numbers, &floats).unwrap_or_default();
    Ok(finished(object, function, &open, given))
}

/// Completes the sizes by the offsets of local buffers.
fn finished(object: Vec<u8>, function: &Function, open: &Open, given: (Vec<i64>, Vec<f32>)) -> Code {
    let (places, workspace_bytes) = open.workspace(function);
    let (mut sizes, numbers) = given;
    if open.offsets(function) > 0 {
        sizes.extend(places.into_iter().flatten().map(|place| place as i64));
    }
    Code { object, workspace_bytes, sizes, numbers }
}

/// Leaves a trace of a function in the cache that differs from this one in all numbers, so that all of them become
/// arguments.
#[cfg(test)]
pub(crate) fn open_all(folder: &Path, processor: &Processor, function: &Function) {
    let (numbers, _) = numbers(function);
    let other = numbers.iter().map(|n| n.wrapping_add(1)).collect();
    let file = File::of(folder, processor, function);
    file.write(&[other], &[]);
}

/// How often code was made for this folder.
#[cfg(test)]
pub(crate) fn made_in(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let shared = files.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX)));
    let seen = shared.filter_map(|path| {
        let bytes = std::fs::read(&path).ok()?;
        let length = u64::from_le_bytes(bytes[SUM..SUM + 8].try_into().ok()?) as usize;
        serde_json::from_slice::<Vec<Vec<i64>>>(&bytes[SUM + 8..SUM + 8 + length]).ok()
    });
    seen.map(|seen| seen.len()).sum()
}
