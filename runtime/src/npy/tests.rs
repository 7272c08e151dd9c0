use super::*;

fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

#[test]
fn what_is_written_reads_back() {
    for shape in [vec![], vec![3], vec![2, 0], vec![2, 3, 4]] {
        for dtype in [DType::F32, DType::I8, DType::I64, DType::Bool] {
            let len = byte_len(dtype, &shape).unwrap();
            let tensor = Tensor::new(dtype, shape.clone(), (0..len).map(|i| i as u8 & 1).collect()).unwrap();
            let bytes = encode(&tensor);
            assert_eq!((bytes.len() - len) % 64, 0);
            assert_eq!(parse(&bytes).unwrap(), tensor);
        }
    }
}

#[test]
fn the_header_is_numpys() {
    let bytes = encode(&Tensor::from_i8(vec![2], &[1, 2]).unwrap());
    let text = String::from_utf8_lossy(&bytes[10..]).to_string();
    assert!(text.starts_with("{'descr': '|i1', 'fortran_order': False, 'shape': (2,), }"), "{text}");
}

#[test]
fn column_order_and_big_endian_are_turned() {
    let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n";
    let data: Vec<u8> = [0i16, 10, 1, 11, 2, 12].iter().flat_map(|v| v.to_be_bytes()).collect();
    let tensor = parse(&file(header, &data)).unwrap();
    assert_eq!(tensor.to_f64(), [0.0, 1.0, 2.0, 10.0, 11.0, 12.0]);
}

#[test]
fn bad_content_is_named() {
    let cases: &[(Vec<u8>, &str)] = &[
        (b"hello".to_vec(), "it does not start with NumPy's magic bytes"),
        (b"\x93NUMPY\x01".to_vec(), "it ends inside its header"),
        (b"\x93NUMPY\x09\x00\x01\x00".to_vec(), "its format version is 9, but only 1 to 3 are supported"),
        (
            file("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", &[0; 8]),
            "its element type is '<c8', but must be an integer, a float or bool",
        ),
        (
            file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", &[0; 4]),
            "its elements are records, but must be numbers",
        ),
        (file("{'descr': '<f4', 'fortran_order': False, 'shape': (x,), }", &[]), "its shape has the axis 'x'"),
        (file("{'descr': '<f4', 'fortran_order': False, }", &[]), "its header has no shape"),
        (
            file("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", &[0; 11]),
            "11 bytes of data, but f32 of shape 3 needs 12",
        ),
        (
            file("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9), }", &[]),
            "shape 9223372036854775807x9 overflows",
        ),
    ];
    for (bytes, reason) in cases {
        assert_eq!(parse(bytes).unwrap_err(), *reason);
    }
}

#[test]
fn no_prefix_or_flipped_byte_panics() {
    let whole = encode(&Tensor::from_f32(vec![2, 2], &[1.0, 2.0, 3.0, 4.0]).unwrap());
    for len in 0..whole.len() {
        assert!(parse(&whole[..len]).is_err());
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            let _ = parse(&bytes);
        }
    }
}

#[test]
fn archives_give_their_names() {
    use std::io::Write;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("arrays.npz");
    let mut archive = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    for (name, method) in [("x", zip::CompressionMethod::Stored), ("y", zip::CompressionMethod::Deflated)] {
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(&encode(&Tensor::from_i8(vec![2], &[1, 2]).unwrap())).unwrap();
    }
    archive.finish().unwrap();
    let names: Vec<_> = read_any(&path).unwrap().into_iter().map(|(name, t)| (name.unwrap(), t.shape)).collect();
    assert_eq!(names, [("x".to_string(), vec![2]), ("y".to_string(), vec![2])]);

    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert!(matches!(read_any(&path), Err(NpyError::Malformed { .. })));
}

/// Compressed bytes that expand to many millions are not all unpacked.
#[test]
fn archives_are_unpacked_as_far_as_the_header_asks() {
    use std::io::Write;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("arrays.npz");
    let refusal = |content: &[u8]| {
        let mut archive = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        archive.start_file("x.npy", options).unwrap();
        archive.write_all(content).unwrap();
        let zeros = vec![0; 1 << 20];
        (0..64).for_each(|_| archive.write_all(&zeros).unwrap());
        archive.finish().unwrap();
        read_any(&path).unwrap_err().to_string()
    };
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
    let found = refusal(&file(header, &[]));
    assert!(
        found.contains(", array x.npy is not a usable NumPy file: more bytes of data than the 12 that f32 of"),
        "{found}"
    );
    let found = refusal(b"\x93NUMPY\x02\x00\x00\x00\x00\x03");
    assert!(found.contains("its header has 50331648 bytes, more than 65536"), "{found}");
    for (head, reason) in [
        (file(header, &[]), "more bytes of data"),
        (b"\x93NUMPY\x01\x00\xff\xff".to_vec(), "its header has no descr"),
        (b"nothing".to_vec(), "it does not start with NumPy's magic bytes"),
    ] {
        // Reading on would never end.
        let found = inflate(&mut head.as_slice().chain(std::io::repeat(0))).unwrap_err();
        assert!(found.contains(reason), "{found}");
    }
    let right = encode(&Tensor::from_i8(vec![2], &[1, 2]).unwrap());
    assert_eq!(inflate(&mut right.as_slice()).unwrap(), right);
    for end in 0..right.len() {
        let cut = inflate(&mut &right[..end]);
        assert!(cut.is_err() || parse(&cut.unwrap()).is_err());
    }
}

#[test]
fn a_missing_file_and_a_missing_folder_are_named() {
    let error = read(Path::new("/nowhere/x.npy")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /nowhere/x.npy: "), "{error}");
    let error = write(Path::new("/nowhere/x.npy"), &Tensor::from_i8(vec![0], &[]).unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("cannot write /nowhere/x.npy: "), "{error}");
}
