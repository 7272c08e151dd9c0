//! Damaged files and networks that cannot be imported: each gives an error, none panics.

use super::*;
use rand::{Rng, SeedableRng, rngs::SmallRng};

fn bytes(folder: &str, name: &str) -> Vec<u8> {
    std::fs::read(models(folder).join(name)).unwrap()
}

/// Imports prefixes and many mutations: none panics, and what imports goes through the passes and can be evaluated.
fn torture(original: &[u8], import: impl Fn(&[u8]) -> Result<Graph, ImportError>) {
    use crate::passes::{OptLevel, Options, optimize};
    assert!(import(original).is_ok());
    let import = |b: &[u8]| {
        let Ok(g) = import(b) else { return };
        let (h, _) = optimize(g.clone(), OptLevel::O2, Options::default()).unwrap();
        for g in [g, h] {
            let small = |v| g.ty(crate::graph::ValueId(v)).element_count().is_some_and(|n| n < 20_000);
            // A loop can take many steps.
            let loops = g.nodes().any(|(_, node)| matches!(node.op, crate::graph::Op::Loop(_)));
            if (0..g.value_count()).all(small) && !loops {
                let zeros = |(_, v): (&str, _)| {
                    let ty = g.ty(v);
                    Tensor::from_bytes(ty.dtype, &ty.shape()?, &vec![0; ty.element_count()? * ty.dtype.size_bytes()])
                };
                let inputs: Vec<Tensor> = g.inputs().map(|i| zeros(i).unwrap()).collect();
                eval(&g, &inputs).unwrap();
            }
        }
    };
    for end in (0..original.len()).step_by(original.len() / 300 + 1) {
        import(&original[..end]);
    }
    let mut rng = SmallRng::seed_from_u64(1);
    for _ in 0..600 {
        let mut b = original.to_vec();
        for _ in 0..rng.random_range(1..8) {
            // The structure is at the start and the end; weights are in between.
            let near = rng.random_range(0..b.len().min(2000));
            let at = if rng.random() { near } else { b.len() - 1 - near };
            b[at] = match rng.random_range(0..4) {
                0 => 0,
                1 => 0xff,
                2 => b[at].wrapping_add(1),
                _ => rng.random(),
            };
        }
        import(&b);
    }
    for len in 0..300 {
        let mut b: Vec<u8> = (0..len).map(|_| rng.random()).collect();
        import(&b);
        // Keep the identifier of the format.
        b.splice(0..b.len().min(8), original[..8].iter().copied());
        import(&b);
    }
}

#[test]
fn damaged_tflite_files_give_errors() {
    for name in [
        "residual_block.tflite",
        "fully_connected.tflite",
        "global_mean.tflite",
        "softmax.tflite",
        "strided_slice.tflite",
        "transpose_conv.tflite",
        "resize_bilinear.tflite",
        "batch_matmul.tflite",
    ] {
        torture(&bytes("tflite-ops", name), |b| tflite::import(b, name));
    }
    let e = tflite::import(b"hello", "x.tflite").unwrap_err().to_string();
    assert_eq!(e, "x.tflite is not a usable model: it lacks the file identifier TFL3 of a TFLite file");
    let whole = bytes("tflite-ops", "add.tflite");
    let e = tflite::import(&whole[..whole.len() / 2], "half.tflite").unwrap_err().to_string();
    assert!(e.starts_with("half.tflite is not a usable model: it ends before byte "), "{e}");
}

/// Changes a number at every position where it occurs in a file, and returns the messages of files that do not import.
fn messages(name: &str, from: [u8; 4], to: [u8; 4]) -> Vec<String> {
    let whole = bytes("tflite-ops", name);
    let places = (0..whole.len() - 4).filter(|&i| whole[i..i + 4] == from);
    let changed = places.filter_map(|i| {
        let mut b = whole.clone();
        b[i..i + 4].copy_from_slice(&to);
        tflite::import(&b, name).err().map(|e| e.to_string())
    });
    changed.collect()
}

#[test]
fn tflite_messages_name_tensor_attribute_and_what_is_supported() {
    let any = |list: &[String], parts: &[&str]| {
        assert!(list.iter().any(|m| parts.iter().all(|p| m.contains(p))), "{parts:?} in {list:#?}");
    };
    // A result with 2^31 - 1 rows.
    let shapes = messages("add.tflite", 15u32.to_le_bytes(), 0x7fff_ffffu32.to_le_bytes());
    any(&shapes, &["tensor `", "has the shape [", "more than 2147483648 elements are not supported"]);
    let mut whole = bytes("tflite-ops", "conv3x3_same_relu.tflite");
    let mut found = Vec::new();
    for i in 0..whole.len() {
        let old = whole[i];
        for new in [4, 7] {
            whole[i] = new;
            found.extend(tflite::import(&whole, "net.tflite").err().map(|e| e.to_string()));
        }
        whole[i] = old;
    }
    any(&found, &["net.tflite: node `", "(CONV_2D)", "fused_activation_function is TANH; supported are NONE, RELU"]);
    any(&found, &["is of 16 bits, so its zero point must be 0, not "]);
    any(&found, &["is neither computed before its use nor a constant"]);
}

#[test]
fn unsupported_tflite_operators_are_all_listed() {
    let mut b = bytes("tflite-ops", "residual_block.tflite");
    let conv = find_code(&b, 3);
    // CONV_2D becomes LSTM, in both fields.
    for at in conv {
        b[at] = 16;
    }
    let e = tflite::import(&b, "net.tflite").unwrap_err();
    let ImportError::Unsupported { nodes, .. } = &e else { panic!("{e}") };
    assert_eq!(nodes.len(), 2, "{e}");
    assert!(nodes.iter().all(|n| n.operator == "LSTM" && !n.node.is_empty()));
    assert!(e.to_string().contains("; docs/tflite.md lists the "), "{e}");
}

/// Positions of an operator's code in a file: bytes whose change makes the file import as another operator's.
fn find_code(file: &[u8], code: u8) -> Vec<usize> {
    let unknown =
        |b: &[u8]| matches!(tflite::import(b, ""), Err(ImportError::Unsupported { nodes, .. }) if !nodes.is_empty());
    let places = (0..file.len()).filter(|&i| file[i] == code);
    let changed = |i: usize| {
        let mut b = file.to_vec();
        b[i] = 16;
        unknown(&b).then_some(i)
    };
    let found: Vec<usize> = places.filter_map(changed).collect();
    assert!(!found.is_empty());
    found
}

#[test]
fn a_file_of_no_known_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.h5");
    std::fs::write(&path, b"\x89HDF").unwrap();
    assert!(
        import(&path)
            .unwrap_err()
            .to_string()
            .contains("models are read from ONNX (.onnx), PyTorch (.pt2) or TFLite (.tflite) files")
    );
    let missing = folder.path().join("none.tflite");
    assert!(import(&missing).unwrap_err().to_string().starts_with("cannot read "));
}

#[test]
fn damaged_pytorch_files_give_errors() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases");
    for name in ["22-torch-loop", "22-torch-2.6", "22-torch-structure"] {
        let whole = std::fs::read(cases.join(name).join("model.pt2")).unwrap();
        torture(&whole, |b| Ok(pytorch::import_traced(b, name, &ImportOptions::default())?.0));
    }
}

#[test]
fn damaged_onnx_files_give_errors() {
    for name in ["model.onnx", "model_qdq_perchannel.onnx"] {
        torture(&bytes("lenet-mnist", name), |b| onnx::import(b, name, None, Sizes::default()));
    }
    let e = onnx::import(b"hello", "x.onnx", None, Sizes::default()).unwrap_err().to_string();
    assert!(e.starts_with("x.onnx is not a usable model: it is no ONNX file"), "{e}");
}

/// The file with every `from` replaced by a text of the same length.
fn replaced(file: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let (mut b, mut hits) = (file.to_vec(), 0);
    for i in 0..b.len() - from.len() {
        if &b[i..i + from.len()] == from.as_bytes() {
            b[i..i + from.len()].copy_from_slice(to.as_bytes());
            hits += 1;
        }
    }
    assert!(hits > 0);
    b
}

#[test]
fn unsupported_onnx_operators_are_all_listed() {
    let file = replaced(&bytes("lenet-mnist", "model.onnx"), "MaxPool", "LpPool2");
    let e = onnx::import(&file, "net.onnx", None, Sizes::default()).unwrap_err();
    let ImportError::Unsupported { nodes, .. } = &e else { panic!("{e}") };
    assert_eq!(nodes.iter().map(|n| n.operator.as_str()).collect::<Vec<_>>(), ["LpPool2", "LpPool2"]);
    assert!(e.to_string().starts_with("net.onnx: unsupported operators: LpPool2 (nodes `"), "{e}");
}

#[test]
fn shapes_that_do_not_fit_name_the_node() {
    // Without its Flatten, the Gemm gets four dimensions.
    let file = replaced(&bytes("lenet-mnist", "model.onnx"), "Flatten", "Softmax");
    let e = onnx::import(&file, "net.onnx", None, Sizes::default()).unwrap_err();
    let ImportError::Node { operator, reason, .. } = &e else { panic!("{e}") };
    assert_eq!(operator, "Gemm");
    assert!(reason.contains("`data` must be of 2 dimensions"), "{e}");
}

#[test]
fn data_files_outside_the_folder_are_refused() {
    use crate::frontend::onnx::testing::external_constant;
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(folder.path().join("secret"), [0; 16]).unwrap();
    std::fs::write(inner.join("weights"), 1.5f32.to_le_bytes().repeat(5)).unwrap();
    let take = |name: &str| onnx::import(&external_constant(name, 4), "net.onnx", Some(&inner), Sizes::default());
    for name in ["../secret", folder.path().join("secret").to_str().unwrap(), "a/../../secret"] {
        let e = take(name).unwrap_err().to_string();
        assert!(e.contains("must be named by a path below the model's folder"), "{e}");
    }
    assert!(take("none").unwrap_err().to_string().contains("cannot read its data from"));
    let g = take("weights").unwrap();
    let y = eval(&g, &[Tensor::vector(vec![1f32; 4])]).unwrap();
    assert_eq!(y[0].as_slice::<f32>().unwrap(), [2.5; 4]);
}

#[test]
fn damaged_files_with_regions_give_errors() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases");
    let values = [
        ("axes", Tensor::vector(vec![-1i64])),
        ("shape", Tensor::vector(vec![1i64, 1, 4, -1])),
        ("scales", Tensor::vector(vec![1.0f32, 1.0, 2.0, 1.5])),
    ];
    let values: BTreeMap<String, Tensor> = values.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    for name in ["16-loop-until", "16-scan-and-branch", "16-values-of-inputs", "16-samples", "16-spectrum"] {
        let bytes = std::fs::read(folder.join(name).join("model.onnx")).unwrap();
        let values = if name == "16-values-of-inputs" { values.clone() } else { BTreeMap::new() };
        let options = ImportOptions { values, ..ImportOptions::default() };
        torture(&bytes, |b| onnx::import(b, name, None, &options));
    }
}
