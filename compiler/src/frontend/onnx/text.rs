//! Rewrites text in ONNX files that is not UTF-8. The format requires UTF-8, but some writers do not ensure it.

/// Fields of a message by tag: text, and nested messages.
struct Fields {
    text: &'static [u32],
    messages: &'static [(u32, &'static Fields)],
}

static MODEL: Fields =
    Fields { text: &[], messages: &[(7, &GRAPH), (8, &OPERATOR_SET), (14, &ENTRY), (25, &FUNCTION)] };
static FUNCTION: Fields =
    Fields { text: &[1, 4, 5, 6, 10, 13], messages: &[(7, &NODE), (9, &OPERATOR_SET), (11, &ATTRIBUTE), (12, &VALUE)] };
static OPERATOR_SET: Fields = Fields { text: &[1], messages: &[] };
static GRAPH: Fields = Fields {
    text: &[2],
    messages: &[(1, &NODE), (5, &TENSOR), (11, &VALUE), (12, &VALUE), (13, &VALUE), (15, &SPARSE)],
};
static NODE: Fields = Fields { text: &[1, 2, 3, 4, 7, 8], messages: &[(5, &ATTRIBUTE)] };
static ATTRIBUTE: Fields = Fields { text: &[1, 21], messages: &[(5, &TENSOR), (6, &GRAPH), (22, &SPARSE)] };
static SPARSE: Fields = Fields { text: &[], messages: &[(1, &TENSOR), (2, &TENSOR)] };
static TENSOR: Fields = Fields { text: &[8], messages: &[(13, &ENTRY)] };
static ENTRY: Fields = Fields { text: &[1, 2], messages: &[] };
static VALUE: Fields = Fields { text: &[1], messages: &[(2, &TYPE)] };
static TYPE: Fields = Fields { text: &[], messages: &[(1, &TENSOR_TYPE)] };
static TENSOR_TYPE: Fields = Fields { text: &[], messages: &[(2, &SHAPE)] };
static SHAPE: Fields = Fields { text: &[], messages: &[(1, &DIMENSION)] };
static DIMENSION: Fields = Fields { text: &[2], messages: &[] };

/// Maximum nesting depth of messages, the same as the decoder's.
const DEPTH: usize = 100;

/// Rewrites all text of a file as UTF-8: a byte that belongs to no character becomes U+FFFD and its two hexadecimal
/// digits. U+FFFD itself is doubled, so that different names stay different. `None` if the file is not a message.
pub(super) fn spelled(file: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(file.len());
    message(file, &MODEL, DEPTH, &mut out)?;
    Some(out)
}

fn message(mut rest: &[u8], fields: &Fields, depth: usize, out: &mut Vec<u8>) -> Option<()> {
    while !rest.is_empty() {
        let whole = rest;
        let key = varint(&mut rest)?;
        let tag = u32::try_from(key >> 3).ok()?;
        let fixed = |rest: &mut &[u8], len: usize| -> Option<()> {
            *rest = rest.get(len..)?;
            Some(())
        };
        match key & 7 {
            0 => drop(varint(&mut rest)?),
            1 => fixed(&mut rest, 8)?,
            5 => fixed(&mut rest, 4)?,
            2 => {
                let len = usize::try_from(varint(&mut rest)?).ok()?;
                let (content, behind) = (rest.get(..len)?, rest.get(len..)?);
                rest = behind;
                let inner = fields.messages.iter().find(|(of, _)| *of == tag).map(|(_, inner)| *inner);
                let mut changed = Vec::new();
                match inner {
                    Some(inner) => message(content, inner, depth.checked_sub(1)?, &mut changed)?,
                    None if fields.text.contains(&tag) => spell(content, &mut changed),
                    None => {
                        out.extend_from_slice(&whole[..whole.len() - rest.len()]);
                        continue;
                    }
                }
                put(key, out);
                put(changed.len() as u64, out);
                out.append(&mut changed);
                continue;
            }
            _ => return None,
        }
        out.extend_from_slice(&whole[..whole.len() - rest.len()]);
    }
    Some(())
}

fn spell(text: &[u8], out: &mut Vec<u8>) {
    const MARK: char = char::REPLACEMENT_CHARACTER;
    let mut spelled = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            spelled.push(c);
            if c == MARK {
                spelled.push(c);
            }
        }
        for byte in chunk.invalid() {
            spelled.push(MARK);
            spelled += &format!("{byte:02x}");
        }
    }
    out.extend_from_slice(spelled.as_bytes());
}

/// Removes a variable-length integer from the front.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for i in 0..10 {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u64::from(byte & 0x7f).checked_shl(7 * i).unwrap_or(0);
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::super::proto::*;
    use prost::Message;

    /// A model with `{mark}` and a unique number in every text field. It uses no defaults, so that a new field must be
    /// added here.
    fn marked(mark: &str) -> ModelProto {
        let mut count = 0;
        let mut text = || {
            count += 1;
            format!("{mark}{count}")
        };
        let opset = OperatorSetIdProto { domain: text(), version: 1 };
        let metadata_props = vec![StringStringEntryProto { key: text(), value: text() }];
        let tensor = TensorProto {
            dims: vec![300],
            data_type: 1,
            segment: None,
            float_data: vec![1.5],
            int32_data: vec![-1],
            int64_data: vec![7],
            name: text(),
            raw_data: b"A1 stays as it is".to_vec(),
            double_data: vec![2.5],
            uint64_data: vec![8],
            external_data: metadata_props.clone(),
            data_location: 0,
        };
        let sparse = |t: &TensorProto| SparseTensorProto {
            values: Some(t.clone()),
            indices: Some(t.clone()),
            dims: vec![1 << 40],
        };
        let attribute = |name: String, reference: String, g: Option<Box<GraphProto>>| AttributeProto {
            name,
            f: 0.5,
            i: -3,
            s: b"A2 is not text".to_vec(),
            t: Some(tensor.clone()),
            g,
            floats: vec![1.0],
            ints: vec![1],
            strings: vec![b"A3".to_vec()],
            r#type: 5,
            ref_attr_name: reference,
            sparse_tensor: Some(Box::new(sparse(&tensor))),
        };
        let dim = DimensionProto { dim_value: None, dim_param: Some(text()) };
        let shape = Some(TensorShapeProto { dim: vec![dim] });
        let ty = TypeProto { tensor_type: Some(TensorTypeProto { elem_type: 1, shape }), ..TypeProto::default() };
        let mut value = || ValueInfoProto { name: text(), r#type: Some(ty.clone()) };
        let (input, output) = (vec![value()], vec![value()]);
        let mut node = |attribute: Vec<AttributeProto>| NodeProto {
            input: vec![text()],
            output: vec![text()],
            name: text(),
            op_type: text(),
            attribute,
            domain: text(),
            overload: text(),
        };
        let inner = node(vec![attribute("x".into(), "y".into(), None)]);
        let graph = |node: NodeProto, name: String| GraphProto {
            node: vec![node],
            name,
            initializer: vec![tensor.clone()],
            input: input.clone(),
            output: output.clone(),
            value_info: output.clone(),
            sparse_initializer: vec![sparse(&tensor)],
        };
        let outer = node(vec![attribute("z".into(), String::new(), Some(Box::new(graph(inner.clone(), "b".into()))))]);
        let function = FunctionProto {
            name: text(),
            input: vec![text()],
            output: vec![text()],
            attribute: vec![text()],
            node: vec![inner],
            opset_import: vec![opset.clone()],
            domain: text(),
            attribute_proto: vec![attribute(text(), text(), None)],
            value_info: output.clone(),
            overload: text(),
        };
        let graph = Some(graph(outer, text()));
        ModelProto { ir_version: 8, graph, opset_import: vec![opset], metadata_props, functions: vec![function] }
    }

    #[test]
    fn text_that_is_not_utf_8_is_spelled_wherever_it_is() {
        // Replaces `AB`, which occurs only in text fields, with two bytes that are not UTF-8.
        let mut file = marked("AB").encode_to_vec();
        for i in 0..file.len() - 1 {
            if &file[i..i + 2] == b"AB" {
                file[i..i + 2].copy_from_slice(b"\xc3\xff");
            }
        }
        assert!(ModelProto::decode(file.as_slice()).is_err());
        assert_eq!(ModelProto::read(&file).unwrap(), marked("\u{fffd}c3\u{fffd}ff"));
    }

    #[test]
    fn different_names_stay_different() {
        let spelled = |text: &[u8]| {
            let mut out = Vec::new();
            super::spell(text, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(spelled("größe".as_bytes()), "größe");
        assert_eq!(spelled(b"w\xff"), "w\u{fffd}ff");
        assert_eq!(spelled("w\u{fffd}ff".as_bytes()), "w\u{fffd}\u{fffd}ff");
        assert_eq!(spelled(b"\xe2\x82"), "\u{fffd}e2\u{fffd}82");
    }

    #[test]
    fn what_is_no_message_is_left_to_the_decoder() {
        assert!(super::spelled(b"hello").is_none());
        assert!(super::spelled(b"\x3a\x05\x0a").is_none());
        assert!(super::spelled(&[0x08]).is_none());
    }
}
