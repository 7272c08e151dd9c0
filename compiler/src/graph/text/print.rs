//! Printer of the text form.

use super::{Blobs, INLINE_ELEMENTS};
use crate::graph::{Graph, Op, Tensor, TensorData, ValueId};
use sha2::{Digest, Sha256};
use std::fmt::{self, Write};
use tilewright_tensor::te::quote;

/// Prints the graph, without the bytes of its large constants.
pub fn print(g: &Graph) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(g, &mut text, ("graph", 0), &mut None);
    text
}

/// Prints the graph and returns the bytes of its large constants.
pub fn print_with_blobs(g: &Graph) -> (String, Blobs) {
    let (mut text, mut blobs) = (String::new(), Blobs::new());
    let _ = write(g, &mut text, ("graph", 0), &mut Some(&mut blobs));
    (text, blobs)
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

/// Writes a graph, or a region at this depth.
fn write(g: &Graph, out: &mut String, (word, depth): (&str, usize), blobs: &mut Option<&mut Blobs>) -> fmt::Result {
    let indent = "  ".repeat(2 * depth);
    writeln!(out, "{indent}{word} {} {{", quote(g.name()))?;
    for (name, v) in g.inputs() {
        writeln!(out, "{indent}  %{} = input {} : {}", v.0, quote(name), g.ty(v))?;
    }
    for (_, node) in g.nodes() {
        write!(out, "{indent}  {} = {} {}", values(&node.outputs), node.op.name(), quote(&node.name))?;
        if let Op::Constant(c) = &node.op {
            write!(out, " : {} ", c.value.ty())?;
            match inline(&c.value) {
                Some(list) => writeln!(out, "[{list}]")?,
                None => {
                    let bytes = c.value.to_bytes();
                    let hash: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
                    writeln!(out, "blob \"{hash}\"")?;
                    if let Some(blobs) = blobs {
                        blobs.insert(hash, bytes);
                    }
                }
            }
            continue;
        }
        write!(out, "({})", values(&node.inputs))?;
        let attrs: Vec<String> = node.op.attrs().iter().map(|(k, a)| format!("{k} = {a}")).collect();
        if !attrs.is_empty() {
            write!(out, " {{{}}}", attrs.join(", "))?;
        }
        let types: Vec<String> = node.outputs.iter().map(|&v| g.ty(v).to_string()).collect();
        writeln!(out, " : {}", types.join(", "))?;
        for region in node.op.regions() {
            write(region, out, ("region", depth + 1), blobs)?;
        }
    }
    for (name, v) in g.outputs() {
        writeln!(out, "{indent}  output {} = %{}", quote(name), v.0)?;
    }
    writeln!(out, "{indent}}}")
}

fn values(list: &[ValueId]) -> String {
    list.iter().map(|v| format!("%{}", v.0)).collect::<Vec<_>>().join(", ")
}

fn inline(t: &Tensor) -> Option<String> {
    fn list<T: fmt::Debug>(v: &[T]) -> String {
        v.iter().map(|x| format!("{x:?}")).collect::<Vec<_>>().join(", ")
    }
    if t.len() > INLINE_ELEMENTS {
        return None;
    }
    Some(match t.data() {
        TensorData::F32(v) if v.iter().all(|x| x.is_finite()) => list(v),
        TensorData::F32(_) => return None,
        TensorData::I8(v) => list(v),
        TensorData::U8(v) => list(v),
        TensorData::I32(v) => list(v),
        TensorData::I64(v) => list(v),
        TensorData::Bool(v) => list(v),
        // Floats and integers of attributes have fewer bits.
        TensorData::F64(_) | TensorData::U64(_) => return None,
        TensorData::I16(v) => list(v),
        TensorData::U16(v) => list(v),
        TensorData::U32(v) => list(v),
    })
}
