//! Buffers of param: biases, multipliers and shifts, which share entries, tables of lookups, and taps of depthwise
//! convolutions.

use tilewright_hw::isa::{PARAM_ROWS, TABLE_BYTES, VecOp, VecSrc};

use super::error::LowerError;
use super::intrinsics::{Instruction, called};
use crate::te::{DType, Expr, Name, NameMap};
use crate::tir::{Action, Bounds, Function, Scope, simplify};

/// Three buffers of param that are parts of the same entries.
pub struct Packed {
    /// Biases, multipliers, shifts.
    pub buffers: [Name; 3],
    /// The inputs from which they are copied.
    pub inputs: [usize; 3],
}

/// Returns the buffers that requantizations read from param.
///
/// # Errors
/// A buffer is not a copy of an input, or the three are not copied alike.
pub fn params(f: &Function, instructions: &NameMap<Instruction>) -> Result<Vec<Packed>, LowerError> {
    let mut sources: NameMap<Name> = NameMap::default();
    // Number of blocks within each loop.
    let mut around: NameMap<usize> = NameMap::default();
    f.body.visit_blocks(&mut |loops, _| loops.iter().for_each(|l| *around.entry(l.var.clone()).or_default() += 1));
    // Loops, indices and conditions of each copy, with the copy's own variables by number.
    let mut copies: NameMap<String> = NameMap::default();
    let mut used: Vec<[Name; 3]> = Vec::new();
    f.body.visit_blocks(&mut |loops, block| match &block.action {
        Action::Store { buffer, indices, value: Expr::Load { buffer: from, indices: read, .. } } => {
            sources.insert(buffer.clone(), from.clone());
            let own = |v: &Name| loops.iter().position(|l| l.var == *v && around.get(v) == Some(&1));
            // The order of terms must not depend on the names.
            let number = |v: &Name| own(v).map(|i| Expr::var(format!("#{i}")));
            let plain = |e: &Expr| simplify(&e.substitute(&number), &Bounds::default()).to_string();
            let extents: Vec<String> =
                loops.iter().map(|l| format!("{} {}", plain(&Expr::Var(l.var.clone())), l.extent)).collect();
            let text = |list: &[Expr]| list.iter().map(plain).collect::<Vec<_>>().join(", ");
            copies.insert(
                buffer.clone(),
                format!("{} | {} | {} | {}", extents.join(" "), text(indices), text(read), text(&block.guards)),
            );
        }
        Action::Call { args, .. } => {
            if let (Some(Instruction::Vector(v)), [_, bias, multiplier, shift, _]) =
                (called(block, instructions), args.as_slice())
                && v.b == VecSrc::Param
            {
                let buffers = [bias, multiplier, shift].map(|view| view.buffer.clone());
                if !used.contains(&buffers) {
                    used.push(buffers);
                }
            }
        }
        Action::Store { .. } => {}
    });
    let mut found: Vec<Packed> = Vec::new();
    for buffers in used {
        let mut inputs = [0; 3];
        for (input, buffer) in inputs.iter_mut().zip(&buffers) {
            let place = sources.get(buffer).and_then(|from| f.inputs().iter().position(|i| i.name == *from));
            let Some(place) = place else {
                let reason = "the accelerator reads it from param, where it must be a copy of an input".into();
                return Err(LowerError::Buffer { buffer: buffer.clone(), reason });
            };
            *input = place;
        }
        let shapes: Vec<_> = buffers.iter().filter_map(|b| Some(f.buffer(b)?.shape.clone())).collect();
        if shapes.windows(2).any(|w| w[0] != w[1]) {
            let reason = "biases, multipliers and shifts share entries of param, so they need the same shape".into();
            return Err(LowerError::Buffer { buffer: buffers[0].clone(), reason });
        }
        let shape = |i: usize| f.inputs().get(inputs[i]).map(|p| p.shape.clone());
        let alike = |i: usize| copies.get(&buffers[i]) == copies.get(&buffers[0]) && shape(i) == shape(0);
        if !alike(1) || !alike(2) {
            let reason = format!(
                "{}, {} and {} share entries of param, so they must be inputs of the same shape, copied by the same loops \
                 with the same indices",
                buffers[0], buffers[1], buffers[2]
            );
            return Err(LowerError::Buffer { buffer: buffers[0].clone(), reason });
        }
        if found.iter().any(|p| p.buffers.iter().any(|b| buffers.contains(b))) {
            let reason = "it is used with two different sets of biases, multipliers and shifts".into();
            return Err(LowerError::Buffer { buffer: buffers[0].clone(), reason });
        }
        found.push(Packed { buffers, inputs });
    }
    Ok(found)
}

/// A buffer of param with weights of depthwise convolutions: for each block of channels some taps, each a row of param.
/// The taps of a block begin at a new entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taps {
    /// The buffer.
    pub buffer: Name,
    /// The input from which it is copied.
    pub input: usize,
    /// Taps of a block.
    pub count: i64,
}

impl Taps {
    /// Entries of param for a block's taps.
    pub fn entries(&self) -> i64 {
        self.count.max(1).unsigned_abs().div_ceil(PARAM_ROWS.into()) as i64
    }
}

/// Returns the input that is copied to a buffer.
fn source(f: &Function, copy: &Name) -> Option<usize> {
    let mut source = None;
    f.body.visit_blocks(&mut |_, block| {
        if let Action::Store { buffer, value: Expr::Load { buffer: from, .. }, .. } = &block.action
            && buffer == copy
        {
            source = f.inputs().iter().position(|i| i.name == *from);
        }
    });
    source
}

/// Returns the buffers from which the vector unit reads taps.
///
/// # Errors
/// One is not a copy of an input.
pub fn taps(f: &Function, instructions: &NameMap<Instruction>) -> Result<Vec<Taps>, LowerError> {
    let mut names: Vec<Name> = Vec::new();
    f.body.visit_blocks(&mut |_, block| {
        if let (Action::Call { args, .. }, Some(Instruction::Vector(v))) = (&block.action, called(block, instructions))
            && v.op == VecOp::Mac
            && let Some(view) = v.params[2].and_then(|i| args.get(i))
            && !names.contains(&view.buffer)
        {
            names.push(view.buffer.clone());
        }
    });
    let taps = |buffer: Name| {
        let count = f.buffer(&buffer).and_then(|b| b.shape.iter().rev().nth(1).copied());
        match (source(f, &buffer), count) {
            (Some(input), Some(count)) => Ok(Taps { buffer, input, count }),
            _ => {
                let reason = "taps in param must be a copy of an input i8[..., TAPS, block_out]".into();
                Err(LowerError::Buffer { buffer, reason })
            }
        }
    };
    names.into_iter().map(taps).collect()
}

/// Returns the tables of lookups, each with the input from which it is copied.
///
/// # Errors
/// A table is not a copy of an input.
pub fn tables(f: &Function, taps: &[Taps]) -> Result<Vec<(Name, usize)>, LowerError> {
    let mut found = Vec::new();
    for table in f.locals.iter().filter(|b| b.scope == Scope::Param && b.dtype == DType::I8) {
        if taps.iter().any(|t| t.buffer == table.name) {
            continue;
        }
        let Some(source) = source(f, &table.name).filter(|i| f.inputs()[*i].shape == table.shape) else {
            let reason = format!("a table in param must be a copy of an input i8[{TABLE_BYTES}]");
            return Err(LowerError::Buffer { buffer: table.name.clone(), reason });
        };
        found.push((table.name.clone(), source));
    }
    Ok(found)
}
