//! Reads FlatBuffers from untrusted files: checks every offset and length before following it.

/// The result of reading; the error says what is wrong with the bytes.
pub(super) type Result<T> = std::result::Result<T, String>;

/// A table in a FlatBuffers file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A vector of elements of `N` bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vector<'a, const N: usize> {
    bytes: &'a [u8],
    start: usize,
    len: usize,
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    let end = at.checked_add(N).ok_or("an offset overflows")?;
    let slice = bytes.get(at..end).ok_or_else(|| format!("it ends before byte {end}"))?;
    slice.try_into().map_err(|_| "a number is cut off".to_owned())
}

fn u32_at(bytes: &[u8], at: usize) -> Result<usize> {
    Ok(u32::from_le_bytes(word(bytes, at)?) as usize)
}

/// The target of the offset at `at`.
fn follow(bytes: &[u8], at: usize) -> Result<usize> {
    at.checked_add(u32_at(bytes, at)?).ok_or_else(|| "an offset overflows".to_owned())
}

impl<'a> Table<'a> {
    /// The root table of a file.
    pub fn root(bytes: &'a [u8]) -> Result<Table<'a>> {
        Ok(Table { bytes, at: follow(bytes, 0)? })
    }

    /// Fails if the table has a field with this or a higher number, which a later version of the schema added.
    pub fn only_fields_below(&self, first: usize) -> Result<()> {
        let slots = (usize::from(u16::from_le_bytes(word(self.bytes, self.vtable()?)?)).saturating_sub(4)) / 2;
        for id in first..slots {
            if self.field(id)?.is_some() {
                return Err(format!("it has an unknown field, number {id}; the file is of a newer version"));
            }
        }
        Ok(())
    }

    fn vtable(&self) -> Result<usize> {
        let back = i32::from_le_bytes(word(self.bytes, self.at)?);
        let vtable = i64::try_from(self.at).ok().and_then(|at| usize::try_from(at - i64::from(back)).ok());
        vtable.ok_or_else(|| "the vtable of a table is outside the file".to_owned())
    }

    /// Position of a field; `None` if it has its default.
    fn field(&self, id: usize) -> Result<Option<usize>> {
        let vtable = self.vtable()?;
        let size = usize::from(u16::from_le_bytes(word(self.bytes, vtable)?));
        let slot = 4 + 2 * id;
        if slot + 2 > size {
            return Ok(None);
        }
        let offset = usize::from(u16::from_le_bytes(word(self.bytes, vtable + slot)?));
        Ok(if offset == 0 { None } else { Some(self.at + offset) })
    }

    fn scalar<const N: usize>(&self, id: usize) -> Result<Option<[u8; N]>> {
        self.field(id)?.map(|at| word(self.bytes, at)).transpose()
    }

    /// A byte.
    pub fn i8(&self, id: usize) -> Result<i8> {
        Ok(self.scalar(id)?.map_or(0, i8::from_le_bytes))
    }

    /// A truth value with a given default.
    pub fn bool_or(&self, id: usize, default: bool) -> Result<bool> {
        Ok(self.scalar(id)?.map_or(default, |[byte]: [u8; 1]| byte != 0))
    }

    /// A signed 32-bit number; 0 if absent.
    pub fn i32(&self, id: usize) -> Result<i32> {
        Ok(self.scalar(id)?.map_or(0, i32::from_le_bytes))
    }

    /// A signed 32-bit number with a given default.
    pub fn i32_or(&self, id: usize, default: i32) -> Result<i32> {
        Ok(self.scalar(id)?.map_or(default, i32::from_le_bytes))
    }

    /// An unsigned 32-bit number; 0 if absent.
    pub fn u32(&self, id: usize) -> Result<u32> {
        Ok(self.scalar(id)?.map_or(0, u32::from_le_bytes))
    }

    /// An unsigned 64-bit number; 0 if absent.
    pub fn u64(&self, id: usize) -> Result<u64> {
        Ok(self.scalar(id)?.map_or(0, u64::from_le_bytes))
    }

    /// A float; 0 if absent.
    pub fn f32(&self, id: usize) -> Result<f32> {
        Ok(self.scalar(id)?.map_or(0.0, f32::from_le_bytes))
    }

    /// A table.
    pub fn table(&self, id: usize) -> Result<Option<Table<'a>>> {
        let at = self.field(id)?.map(|at| follow(self.bytes, at)).transpose()?;
        Ok(at.map(|at| Table { bytes: self.bytes, at }))
    }

    /// A vector; empty if absent.
    pub fn vector<const N: usize>(&self, id: usize) -> Result<Vector<'a, N>> {
        let Some(at) = self.field(id)? else { return Ok(Vector { bytes: self.bytes, start: 0, len: 0 }) };
        let at = follow(self.bytes, at)?;
        let len = u32_at(self.bytes, at)?;
        let start = at + 4;
        let end = len.checked_mul(N).and_then(|n| n.checked_add(start)).ok_or("a length overflows")?;
        if end > self.bytes.len() {
            return Err(format!("it ends before byte {end}"));
        }
        Ok(Vector { bytes: self.bytes, start, len })
    }

    /// A vector of tables.
    pub fn tables(&self, id: usize) -> Result<Vec<Table<'a>>> {
        let v = self.vector::<4>(id)?;
        (0..v.len).map(|i| Ok(Table { bytes: v.bytes, at: follow(v.bytes, v.start + 4 * i)? })).collect()
    }

    /// A text; bytes that are not UTF-8 are replaced.
    pub fn string(&self, id: usize) -> Result<String> {
        Ok(String::from_utf8_lossy(self.vector::<1>(id)?.raw()).into_owned())
    }
}

impl<'a, const N: usize> Vector<'a, N> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The elements' bytes.
    pub fn raw(&self) -> &'a [u8] {
        self.bytes.get(self.start..self.start + N * self.len).unwrap_or(&[])
    }

    /// The elements one by one.
    pub fn words(&self) -> impl Iterator<Item = [u8; N]> + 'a {
        self.raw().chunks_exact(N).map(|c| {
            let mut w = [0; N];
            w.copy_from_slice(c);
            w
        })
    }
}
