//! FlatBuffers files built for tests, the format of TFLite files.

/// A table: its fields by number.
pub type Table = Vec<(usize, Field)>;

/// Value of a table's field.
#[derive(Debug, Clone)]
pub enum Field {
    /// A number of 8 bits.
    Byte(i8),
    /// A number of 32 bits.
    Word(i32),
    /// A number of 64 bits.
    Long(i64),
    /// A vector of bytes, or a text.
    Bytes(Vec<u8>),
    /// A vector of numbers of 16 bits.
    Halves(Vec<u16>),
    /// A vector of numbers of 32 bits.
    Words(Vec<i32>),
    /// A vector of numbers of 64 bits.
    Longs(Vec<i64>),
    /// A table.
    Table(Table),
    /// A vector of tables.
    Tables(Vec<Table>),
    /// A vector of so many offsets that all point to one table.
    Same(Table, usize),
}

impl Field {
    /// A string.
    pub fn text(text: &str) -> Field {
        Field::Bytes(text.into())
    }

    /// Bytes that the field takes in its table.
    fn width(&self) -> usize {
        if matches!(self, Field::Long(_)) { 8 } else { 4 }
    }
}

/// A file with this root table and file identifier.
pub fn file(root: &Table, mark: &[u8; 4]) -> Vec<u8> {
    let mut b = [&[0; 4][..], mark].concat();
    let at = table(&mut b, root);
    point(&mut b, 0, at);
    b
}

/// Makes the offset at `from` point to `to`.
fn point(b: &mut [u8], from: usize, to: usize) {
    b[from..from + 4].copy_from_slice(&((to - from) as u32).to_le_bytes());
}

fn align(b: &mut Vec<u8>) {
    b.resize(b.len().next_multiple_of(4), 0);
}

/// Appends a table and returns its position.
fn table(b: &mut Vec<u8>, fields: &Table) -> usize {
    align(b);
    // Offsets of the fields in the table, by index.
    let before = |i: usize| 4 + fields[..i].iter().map(|(_, field)| field.width()).sum::<usize>();
    let description = b.len();
    let slots = fields.iter().map(|(id, _)| id + 1).max().unwrap_or(0);
    b.extend((4 + 2 * slots as u16).to_le_bytes());
    b.extend((before(fields.len()) as u16).to_le_bytes());
    for slot in 0..slots {
        let place = fields.iter().position(|(id, _)| *id == slot).map_or(0, before);
        b.extend((place as u16).to_le_bytes());
    }
    align(b);
    let at = b.len();
    b.extend(((at - description) as i32).to_le_bytes());
    b.resize(at + before(fields.len()), 0);
    for (i, (_, field)) in fields.iter().enumerate() {
        let from = at + before(i);
        match field {
            Field::Byte(v) => b[from] = *v as u8,
            Field::Word(v) => b[from..from + 4].copy_from_slice(&v.to_le_bytes()),
            Field::Long(v) => b[from..from + 8].copy_from_slice(&v.to_le_bytes()),
            Field::Bytes(bytes) => {
                vector(b, from, bytes.len());
                b.extend(bytes);
                align(b);
            }
            Field::Halves(halves) => {
                vector(b, from, halves.len());
                halves.iter().for_each(|h| b.extend(h.to_le_bytes()));
                align(b);
            }
            Field::Longs(longs) => {
                vector(b, from, longs.len());
                longs.iter().for_each(|l| b.extend(l.to_le_bytes()));
            }
            Field::Words(words) => {
                vector(b, from, words.len());
                words.iter().for_each(|w| b.extend(w.to_le_bytes()));
            }
            Field::Table(inner) => {
                let inner = table(b, inner);
                point(b, from, inner);
            }
            Field::Tables(all) => {
                let first = offsets(b, from, all.len());
                for (i, inner) in all.iter().enumerate() {
                    let inner = table(b, inner);
                    point(b, first + 4 * i, inner);
                }
            }
            Field::Same(inner, places) => {
                let first = offsets(b, from, *places);
                let inner = table(b, inner);
                (0..*places).for_each(|i| point(b, first + 4 * i, inner));
            }
        }
    }
    at
}

/// Starts a vector and points the offset at `from` to it.
fn vector(b: &mut Vec<u8>, from: usize, len: usize) {
    align(b);
    let at = b.len();
    point(b, from, at);
    b.extend((len as u32).to_le_bytes());
}

/// Appends a vector of offsets to be filled in; returns the position of the first.
fn offsets(b: &mut Vec<u8>, from: usize, len: usize) -> usize {
    vector(b, from, len);
    let first = b.len();
    b.resize(first + 4 * len, 0);
    first
}
