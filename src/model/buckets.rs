//! Which open sizes of a model can be padded up to those that it is compiled for.

use std::collections::BTreeMap;
use std::path::Path;

use tilewright_compiler::rows;
use tilewright_runtime::artifact::{Bucket, Dim, OpenValue, Rows};

use super::{ImportOptions, ModelError, import};

/// The sizes that can be padded up to the given ones, which `import` binds; `inputs` are the model's inputs with open
/// sizes. Nothing is smaller than a size of 1.
///
/// # Errors
/// [`ModelError::Shapes`] if a size above 1 cannot be padded, with the operator that is in the way.
pub fn buckets(
    file: &Path,
    options: ImportOptions,
    inputs: &[OpenValue],
    sizes: &BTreeMap<String, usize>,
) -> Result<Vec<Bucket>, ModelError> {
    let graph = import(file, options)?;
    let mut found = Vec::new();
    for symbol in sizes.iter().filter(|(_, size)| **size > 1).map(|(symbol, _)| symbol) {
        let places = graph.inputs().zip(inputs).flat_map(|((_, value), input)| {
            let dims = input.dims.iter().enumerate();
            dims.filter(|(_, dim)| **dim == Dim::Symbol(symbol.clone())).map(move |(axis, _)| (value, axis))
        });
        let outputs = rows::of_outputs(&graph, &places.collect::<Vec<_>>()).map_err(|mixed| ModelError::Shapes {
            file: file.display().to_string(),
            reason: format!(
                "cannot be padded along {symbol}: {mixed}; leave out --bucket, or give the sizes of {symbol} that you need \
                 with --shapes"
            ),
        })?;
        let rows = |rows: rows::Rows| Rows { axis: rows.axis, each: rows.each };
        let outputs = outputs.into_iter().map(|output| output.map(rows)).collect();
        found.push(Bucket { symbol: symbol.clone(), outputs });
    }
    Ok(found)
}
