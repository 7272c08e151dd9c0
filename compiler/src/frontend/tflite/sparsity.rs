//! Sparse tensors: expands the stored elements of a constant, with zeros elsewhere.
//!
//! A sparse tensor has a tree of levels: its dimensions in the order of `traversal_order`, then the dimensions within a
//! block. A dense level has every index; a sparse one (CSR) has those that its tables list for each entry of the level
//! above.

use super::flat::{Result, Table};

/// A level of the tree, starting at the root.
struct Level {
    /// Number of indices of the level's dimension.
    size: usize,
    /// Number of elements of the dense tensor between two indices.
    stride: usize,
    /// The listed indices; `None` for a dense level.
    listed: Option<Listed>,
}

/// A compressed level: entry `p` of the level above has `indices[segments[p]..segments[p + 1]]`.
struct Listed {
    segments: Vec<usize>,
    indices: Vec<usize>,
}

/// Bytes needed to expand a tensor of this shape.
pub(super) fn needed(shape: &[usize], width: usize) -> usize {
    let places = shape.iter().fold(1usize, |n, &d| n.saturating_mul(d.max(1)));
    places.saturating_mul(width + size_of::<usize>())
}

/// Expands a tensor: returns the bytes of the dense tensor. `data` are the stored elements of `width` bytes.
///
/// # Errors
/// What is wrong with the tables.
pub(super) fn expand(sparsity: &Table, shape: &[usize], width: usize, data: &[u8]) -> Result<Vec<u8>> {
    let levels = levels(sparsity, shape)?;
    let places = places(&levels)?;
    if data.len() != places.len() * width {
        let (stored, bytes) = (places.len(), data.len());
        return Err(format!("they place {stored} elements of {width} bytes, but the tensor has {bytes} bytes"));
    }
    let mut dense = vec![0; shape.iter().product::<usize>() * width];
    for (place, element) in places.into_iter().zip(data.chunks_exact(width)) {
        dense[place * width..][..width].copy_from_slice(element);
    }
    Ok(dense)
}

/// Reads `SparsityParameters`.
fn levels(sparsity: &Table, shape: &[usize]) -> Result<Vec<Level>> {
    let integers = |id| -> Result<Vec<usize>> {
        let whole = |w| usize::try_from(i32::from_le_bytes(w)).map_err(|_| "they have a number below 0".to_owned());
        sparsity.vector::<4>(id)?.words().map(whole).collect()
    };
    let (order, block_map, tables) = (integers(0)?, integers(1)?, sparsity.tables(2)?);
    let (rank, count) = (shape.len(), shape.len() + block_map.len());
    if block_map.len() > rank {
        return Err(format!("they have {} dimensions in blocks for {rank} dimensions", block_map.len()));
    }
    let permutes = |list: &[usize], first: usize| {
        let mut sorted = list.to_vec();
        sorted.sort_unstable();
        sorted.into_iter().eq(first..first + list.len())
    };
    // Block dimensions come after all others.
    if order.len() != count || !permutes(&order[..rank], 0) || !permutes(&order[rank..], rank) {
        return Err(format!(
            "their traversal_order {order:?} does not match {rank} dimensions with {block_map:?} in blocks"
        ));
    }
    if tables.len() != count {
        return Err(format!("they have {} tables of dimensions for {count} dimensions", tables.len()));
    }
    let mut steps = vec![1; rank];
    for d in (1..rank).rev() {
        steps[d - 1] = steps[d] * shape[d];
    }
    // Sizes of all dimensions, block dimensions last, and the stride of each.
    let (mut sizes, mut strides) = (shape.to_vec(), steps.clone());
    for (block, &d) in block_map.iter().enumerate() {
        let level = order.iter().position(|&o| o == rank + block).unwrap_or(0);
        let size = dense_size(&tables[level])?.ok_or("their blocks have a sparse dimension")?;
        let divides = d < rank && !block_map[..block].contains(&d) && size > 0 && shape[d].is_multiple_of(size);
        if !divides {
            return Err(format!("their blocks of {size} do not divide dimension {d} of {shape:?}"));
        }
        sizes[d] /= size;
        strides[d] *= size;
        sizes.push(size);
        strides.push(steps[d]);
    }
    let level = |(table, &dimension): (&Table, &usize)| {
        let (size, stride) = (sizes[dimension], strides[dimension]);
        let listed = match dense_size(table)? {
            Some(found) if found != size => {
                return Err(format!("their dimension {dimension} has size {found}, but {size} is expected"));
            }
            Some(_) => None,
            None => Some(Listed { segments: indices(table, 2)?, indices: indices(table, 4)? }),
        };
        Ok(Level { size, stride, listed })
    };
    tables.iter().zip(&order).map(level).collect()
}

/// The size of a dense dimension; `None` for a sparse one.
fn dense_size(table: &Table) -> Result<Option<usize>> {
    match table.i8(0)? {
        0 => usize::try_from(table.i32(1)?).map(Some).map_err(|_| "they have a size below 0".to_owned()),
        1 => Ok(None),
        other => Err(format!("they have a dimension of kind {other}; use DENSE or SPARSE_CSR")),
    }
}

/// A list of indices in one of three widths. `id` is the field with its kind; the next field is the list.
fn indices(table: &Table, id: usize) -> Result<Vec<usize>> {
    let list = table.table(id + 1)?.ok_or("a sparse dimension has no segments or no indices")?;
    match table.i8(id)? {
        1 => {
            let whole = |w| usize::try_from(i32::from_le_bytes(w)).map_err(|_| "they have an index below 0".to_owned());
            list.vector::<4>(0)?.words().map(whole).collect()
        }
        2 => Ok(list.vector::<2>(0)?.words().map(|w| usize::from(u16::from_le_bytes(w))).collect()),
        3 => Ok(list.vector::<1>(0)?.words().map(|[b]| usize::from(b)).collect()),
        other => Err(format!("they have a list of indices of kind {other}; use kinds 1 to 3")),
    }
}

/// The position of each stored element in the dense tensor, in the order of storage.
fn places(levels: &[Level]) -> Result<Vec<usize>> {
    let mut places = vec![0];
    for level in levels {
        let Some(Listed { segments, indices }) = &level.listed else {
            let at = |place: &usize| (0..level.size).map(|i| place + i * level.stride).collect::<Vec<_>>();
            places = places.iter().flat_map(at).collect();
            continue;
        };
        let whole = segments.first() == Some(&0)
            && segments.is_sorted()
            && segments.last() == Some(&indices.len())
            && segments.len() == places.len() + 1;
        if !whole {
            let (ends, entries) = (segments.len(), places.len());
            return Err(format!(
                "a sparse dimension has {ends} ends of segments for {entries} entries and {} indices",
                indices.len()
            ));
        }
        let mut next = Vec::with_capacity(indices.len());
        for (place, ends) in places.iter().zip(segments.windows(2)) {
            let segment = &indices[ends[0]..ends[1]];
            // So no element is stored twice, and there are no more than in the dense tensor.
            if !segment.is_sorted_by(|a, b| a < b) || segment.last().is_some_and(|&last| last >= level.size) {
                return Err(format!("a sparse dimension of {} has the indices {segment:?}", level.size));
            }
            next.extend(segment.iter().map(|i| place + i * level.stride));
        }
        places = next;
    }
    Ok(places)
}
