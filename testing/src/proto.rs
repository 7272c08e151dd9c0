//! Protocol buffers built for tests, the format of ONNX files: fields one after the other.

/// A field of bytes: a string, or the fields of a message.
///
/// # Panics
/// If the length needs more than two bytes.
pub fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let len = bytes.len();
    assert!(len < 1 << 14, "lengths of two bytes are enough here");
    let len = if len < 128 { vec![len as u8] } else { vec![len as u8 | 128, (len >> 7) as u8] };
    [key(number, 2), len, bytes.to_vec()].concat()
}

/// A field that holds a number below 128.
pub fn number(field: u8, value: u8) -> Vec<u8> {
    [key(field, 0), vec![value]].concat()
}

/// A field's number and wire type. Numbers above 15 take a second byte.
fn key(number: u8, kind: u8) -> Vec<u8> {
    let low = number << 3 | kind;
    if number < 16 { vec![low] } else { vec![low | 128, number >> 4] }
}
