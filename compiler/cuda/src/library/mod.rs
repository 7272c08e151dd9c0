//! Products that a library computes if it is installed.
//!
//! A program with one sum of products is split in three. The first part packs factors into matrices if they do not have
//! that layout already (windows of a convolution next to each other, bytes as signed ones, lengths that are multiples
//! of 4 bytes or of 8 floats of 16 bits). The second is the product itself, and the third reads its sums. A step carries
//! these in addition to its kernels, and the runtime chooses.
//!
//! Zero points stay outside: `sum (x - a)(w - b)` is exactly `sum x w - a sum w - b sum x + K a b`, because sums wrap.

mod factor;
mod matrix;

use std::collections::{HashMap, HashSet};

use tilewright_compiler::te::{Axis, BinOp, Combiner, DType, Definition, Expr, Name, Program, Tensor};
use tilewright_compiler::tir;
use tilewright_runtime::cuda::{Arg, CudaCall, Factor, Launch, Lie, Numbers, Product};

use crate::emit::{ALIGN, emit_wide};
use crate::{FunctionKernels, schedule};
use factor::{Digits, Operand};
use matrix::{HALVES, Matrix};

/// Smallest sizes for which a library is called. Below them, the call costs more than it saves.
pub const LEAST: Least = Least { rows: 8, columns: 16, steps: 8 };
/// Weights from which a library is called for any number of rows: a generated kernel computes each result in one thread.
const MANY: i64 = 1 << 16;
/// Most steps for which a sum of byte products stays within 32 bits.
const MOST_STEPS: i64 = 1 << 16;

/// A program split around its product.
struct Split {
    /// Computes matrices and sums of factors as its outputs.
    before: Option<Program>,
    /// What follows; `None` if the product is the program's output.
    after: Option<Program>,
    columns: Matrix,
    rows: Matrix,
    numbers: Numbers,
    sizes: Sizes,
    /// Columns of the result, including those that are only padding.
    pitch: i64,
    /// The tensor of the sums, an input of `after`.
    sums: Name,
}

/// Smallest sizes of a product.
#[derive(Debug, Clone, Copy)]
pub struct Least {
    /// Rows of the result.
    pub rows: i64,
    /// Its columns.
    pub columns: i64,
    /// Steps of a sum.
    pub steps: i64,
}

/// Sizes of a product.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    batch: i64,
    rows: i64,
    columns: i64,
    steps: i64,
}

/// Returns the calls of a program with a library product, and its kernels. Returns `None` if it has no suitable
/// product.
///
/// Kernels are named after `symbol`. With `half`, float inputs and outputs of the program have 16 bits in memory.
pub fn with_library(
    symbol: &str,
    program: &Program,
    half: bool,
    least: Least,
) -> Option<(Vec<CudaCall>, FunctionKernels)> {
    let split = split(program, half, least)?;
    let inputs: Vec<Name> = program.inputs().map(|t| t.name.clone()).collect();
    let mut kernels = FunctionKernels { source: String::new(), launches: Vec::new(), workspace_bytes: 0 };
    let mut calls = Vec::new();
    // Matrices and sums come one after the other. The two programs' own buffers share the space after them.
    let mut kept: HashMap<Name, u64> = HashMap::new();
    let mut next = 0u64;
    let mut keep = |name: &Name, bytes: u64| {
        kept.insert(name.clone(), next);
        next += bytes.next_multiple_of(ALIGN);
    };
    let width = |t: &Tensor| if half && t.dtype == DType::F32 { 2 } else { t.dtype.size_bytes() as u64 };
    for name in split.before.iter().flat_map(|p| &p.outputs) {
        let t = split.before.as_ref()?.tensor(name)?;
        keep(name, t.shape().iter().product::<i64>() as u64 * width(t));
    }
    if let Some(raw) = split.after.as_ref().and_then(|p| p.tensor(&split.sums)) {
        keep(&split.sums, raw.shape().iter().product::<i64>() as u64 * 4);
    }
    let place = |name: &Name| match inputs.iter().position(|i| i == name) {
        Some(at) => Some(Arg::Input(at as u32)),
        None => kept.get(name).map(|at| Arg::Workspace(*at)),
    };
    let mut add = |part: &Program, word: &str, last: bool| {
        let function = tir::lower(part).ok()?;
        let made = emit_wide(&format!("{symbol}_{word}"), &schedule(function), half, Some(&split.sums)).ok()?;
        kernels.source += &made.source;
        kernels.workspace_bytes = kernels.workspace_bytes.max(made.workspace_bytes);
        let names: Vec<&Name> = part.inputs().map(|t| &t.name).collect();
        let mut list = Vec::new();
        for launch in made.launches {
            let arg = |arg: &Arg| match arg {
                Arg::Input(i) => place(names.get(*i as usize)?),
                Arg::Output(i) if !last => place(part.outputs.get(*i as usize)?),
                Arg::Output(i) => Some(Arg::Output(*i)),
                Arg::Workspace(at) => Some(Arg::Workspace(next + at)),
            };
            let args = launch.args.iter().map(arg).collect::<Option<Vec<Arg>>>()?;
            list.push(CudaCall::Launch(Launch { args, ..launch }));
        }
        Some(list)
    };
    if let Some(before) = &split.before {
        calls.extend(add(before, "before", false)?);
    }
    let factor = |m: &Matrix| Some(Factor { at: place(&m.tensor)?, lie: m.lie, stride: m.stride as u64 });
    let (sizes, direct) = (split.sizes, split.after.is_none());
    calls.push(CudaCall::Product(Product {
        numbers: split.numbers,
        narrow: direct && half,
        batch: u32::try_from(sizes.batch).ok()?,
        columns: u32::try_from(split.pitch).ok()?,
        rows: u32::try_from(sizes.rows).ok()?,
        steps: u32::try_from(split.columns.steps).ok()?,
        of_columns: factor(&split.columns)?,
        of_rows: factor(&split.rows)?,
        result: if direct { Arg::Output(0) } else { place(&split.sums)? },
    }));
    if let Some(after) = &split.after {
        calls.extend(add(after, "after", true)?);
    }
    kernels.workspace_bytes += next;
    Some((calls, kernels))
}

/// Splits a program. Returns `None` if it has no product, or one that no library supports.
fn split(p: &Program, half: bool, least: Least) -> Option<Split> {
    let mut reductions = p.tensors.iter().filter(|t| matches!(t.definition, Definition::Reduce { .. }));
    let (sum, None) = (reductions.next()?, reductions.next()) else { return None };
    let Definition::Reduce { axes, combiner: Combiner::Sum, init, value: Expr::Binary(BinOp::Mul, x, y) } =
        &sum.definition
    else {
        return None;
    };
    let (x, y) = (Operand::of(p, x)?, Operand::of(p, y)?);
    if x.dtype() == DType::F32 && y.dtype() != DType::F32 || y.dtype() == DType::F32 && x.dtype() != DType::F32 {
        return None;
    }
    let long = |list: &[Axis]| list.iter().filter(|a| a.extent != 1).cloned().collect::<Vec<Axis>>();
    let (spatial, reduce) = (long(&sum.axes), long(axes));
    if spatial.iter().chain(&reduce).any(|a| a.extent == 0) {
        return None;
    }
    let (of_x, of_y) = (|a: &Axis| x.place.coefficient(&a.var) != 0, |a: &Axis| y.place.coefficient(&a.var) != 0);
    if !reduce.iter().all(|a| of_x(a) && of_y(a)) || !spatial.iter().all(|a| of_x(a) || of_y(a)) {
        return None;
    }
    // The columns belong to the factor that the result's last dimension depends on, because they must be contiguous.
    let last = spatial.last().filter(|a| !(of_x(a) && of_y(a)))?;
    let (columns, rows) = if of_y(last) { (y, x) } else { (x, y) };
    let alone =
        |a: &Operand, b: &Operand, v: &Axis| a.place.coefficient(&v.var) != 0 && b.place.coefficient(&v.var) == 0;
    let own = |a: &Operand, b: &Operand| Digits::new(spatial.iter().filter(|v| alone(a, b, v)));
    let (mut column_digits, row_digits) = (own(&columns, &rows), own(&rows, &columns));
    let mut batch = Digits::new(
        spatial.iter().filter(|a| columns.place.coefficient(&a.var) != 0 && rows.place.coefficient(&a.var) != 0),
    );
    let steps = Digits::new(reduce.iter());
    let mut sizes =
        Sizes { batch: batch.count(), rows: row_digits.count(), columns: column_digits.count(), steps: steps.count() };
    let bytes = columns.dtype() != DType::F32;
    let many = !bytes && sizes.columns.saturating_mul(sizes.steps) >= MANY;
    if sizes.rows < least.rows && !many || sizes.columns < least.columns || sizes.steps < least.steps {
        return None;
    }
    if bytes && sizes.steps > MOST_STEPS {
        return None;
    }
    let numbers = match (bytes, half) {
        (true, _) => Numbers::I8,
        (false, true) => Numbers::F16,
        (false, false) => Numbers::F32,
    };

    // Choose the order of steps in which most factors can be used in place.
    let choose = |column_digits: &Digits, batch: &Digits| {
        let orders = [steps.clone(), steps.sorted(&columns.place), steps.sorted(&rows.place)];
        let found = orders.into_iter().map(|order| {
            let a = matrix::direct(&columns, column_digits, &order, batch, numbers, true);
            let b = matrix::direct(&rows, &row_digits, &order, batch, numbers, false);
            (a, b, order)
        });
        found.max_by_key(|(a, b, _)| i32::from(a.is_some()) + i32::from(b.is_some()))
    };
    let mut found = choose(&column_digits, &batch)?;
    // Images of a batch are matrices of their own where the images are then used in place; all have the same weights.
    if let (None, Some(image)) = (&found.0, spatial.first().filter(|v| alone(&columns, &rows, v))) {
        let rest = Digits::new(spatial.iter().filter(|v| v.var != image.var && alone(&columns, &rows, v)));
        let images = Digits::new(std::iter::once(image));
        if let (1, Some(each @ (Some(_), Some(_), _))) = (batch.count(), choose(&rest, &images)) {
            found = each;
            (column_digits, batch) = (rest, images);
            (sizes.batch, sizes.columns) = (batch.count(), column_digits.count());
        }
    }
    let (a, b, steps) = found;
    let up_to = |n: i64, unit: i64| (n + unit - 1) / unit * unit;
    // Both factors have the same steps, so either both are padded or neither is.
    let filled = up_to(sizes.steps, if bytes { 4 } else { 1 });
    let pitch = match numbers {
        Numbers::I8 => up_to(sizes.columns, 4),
        Numbers::F16 if a.is_none() => up_to(sizes.columns, HALVES),
        Numbers::F16 | Numbers::F32 => sizes.columns,
    };
    let mut tensors: Vec<Tensor> = Vec::new();
    let mut outputs: Vec<Name> = Vec::new();
    let mut packed = |operand: &Operand, digits: &Digits, found: Option<Matrix>, name: &str, count: i64, lie: Lie| {
        found.unwrap_or_else(|| {
            let t = matrix::pack(operand, [&batch, digits, &steps], [count, filled], lie, name);
            let m = Matrix { tensor: t.name.clone(), lie, stride: count * filled, steps: filled };
            outputs.push(t.name.clone());
            tensors.push(t);
            m
        })
    };
    // Threads next to each other read floats next to each other, such as the pixels of an image's row.
    let next_to_each_other = Lie::Steps(filled as u64);
    let of_columns = if bytes { next_to_each_other } else { Lie::Results(pitch as u64) };
    let columns_matrix = packed(&columns, &column_digits, a, "library.columns", pitch, of_columns);
    let rows_matrix = packed(&rows, &row_digits, b, "library.rows", sizes.rows, next_to_each_other);

    // Sums of factors to multiply by zero points.
    let mut corrected: Vec<(Name, &Digits, i64)> = Vec::new();
    for (of, digits, zero, name) in [
        (&columns, &column_digits, rows.signed_zero(), "library.column_sums"),
        (&rows, &row_digits, columns.signed_zero(), "library.row_sums"),
    ] {
        if zero != 0 {
            let t = matrix::sums(of, [&batch, digits, &steps], name);
            outputs.push(t.name.clone());
            corrected.push((t.name.clone(), digits, zero));
            tensors.push(t);
        }
    }
    let before = (!tensors.is_empty()).then(|| {
        let sources = p.tensors.iter().take_while(|t| t.name != sum.name).cloned();
        reachable(Program { name: "before".into(), tensors: sources.chain(tensors).collect(), outputs })
    });
    // With f16, this would round intermediate values that the kernels do not round.
    let computes = |t: &Tensor| matches!(&t.definition, Definition::Compute(e) if calculates(e));
    if half && !bytes && before.as_ref().is_some_and(|p| p.tensors.iter().any(computes)) {
        return None;
    }

    let sums: Name = "library.sums".into();
    let is_zero = matches!(init, Expr::Int(0, _)) || matches!(init, Expr::Float(v, _) if *v == 0.0);
    let in_order = spatial.iter().map(|a| &a.var).eq(batch.vars().chain(row_digits.vars()).chain(column_digits.vars()));
    let direct =
        is_zero && in_order && corrected.is_empty() && pitch == sizes.columns && p.outputs == [sum.name.clone()];
    let is_whole = p.tensors.last().is_some_and(|t| t.name == sum.name);
    let after = (!(direct && is_whole)).then(|| {
        let var = |v: &Name| Expr::Var(v.clone());
        let own = |d: &Digits| d.number(var);
        let raw = Expr::Load {
            buffer: sums.clone(),
            dtype: sum.dtype,
            indices: vec![own(&batch), own(&row_digits), own(&column_digits)],
        };
        let mut value = raw;
        for (name, digits, zero) in &corrected {
            let indices = vec![own(&batch), own(digits)];
            value = value - Expr::Load { buffer: name.clone(), dtype: DType::I32, indices } * *zero;
        }
        let both = (sizes.steps * columns.signed_zero()).wrapping_mul(rows.signed_zero()) as i32;
        if both != 0 {
            value = value + i64::from(both);
        }
        let value = if is_zero { value } else { init.clone() + value };
        let given = |name: &Name, dtype, shape: &[i64]| Tensor {
            name: name.clone(),
            dtype,
            axes: shape
                .iter()
                .enumerate()
                .map(|(i, &extent)| Axis { var: format!("{name}.{i}").into(), extent })
                .collect(),
            definition: Definition::Input,
        };
        let mut tensors = vec![given(&sums, sum.dtype, &[sizes.batch, sizes.rows, pitch])];
        tensors.extend(corrected.iter().map(|(name, d, _)| given(name, DType::I32, &[sizes.batch, d.count()])));
        for t in &p.tensors {
            let definition = if t.name == sum.name { Definition::Compute(value.clone()) } else { t.definition.clone() };
            tensors.push(Tensor { definition, ..t.clone() });
        }
        reachable(Program { name: "after".into(), tensors, outputs: p.outputs.clone() })
    });
    Some(Split { before, after, columns: columns_matrix, rows: rows_matrix, numbers, sizes, pitch, sums })
}

/// Returns the program with only the tensors that its outputs depend on.
fn reachable(mut p: Program) -> Program {
    let mut wanted: HashSet<Name> = p.outputs.iter().cloned().collect();
    for t in p.tensors.iter().rev() {
        if !wanted.contains(&t.name) {
            continue;
        }
        let mut read = |e: &Expr| {
            e.visit(&mut |e| {
                if let Expr::Load { buffer, .. } = e {
                    wanted.insert(buffer.clone());
                }
            });
        };
        match &t.definition {
            Definition::Input => {}
            Definition::Compute(e) => read(e),
            Definition::Reduce { init, value, .. } => {
                read(init);
                read(value);
            }
        }
    }
    p.tensors.retain(|t| wanted.contains(&t.name));
    p
}

/// Returns whether an expression computes with floats instead of only moving them.
fn calculates(e: &Expr) -> bool {
    let mut found = false;
    e.visit(&mut |e| {
        found |= e.dtype() == DType::F32 && matches!(e, Expr::Binary(..) | Expr::Call(..) | Expr::Cast(..));
    });
    found
}
