//! Models whose inputs can have several shapes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tilewright::device::DeviceKind;
use tilewright::model::quantize::{Compiled, Prepared, QuantizeOptions};
use tilewright::model::{self, CompileRequest, Jit, ModelFile, Sizes};
use tilewright_compiler::frontend::onnx;
use tilewright_compiler::graph::op::{Clip, Dense, GlobalAvgPool, Layout, Reshape};
use tilewright_compiler::graph::{DType, GraphBuilder, Tensor, TensorType, ValueId, eval};
use tilewright_compiler::passes::{OptLevel, optimize};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{Artifact, BlobId, Dim};
use tilewright_runtime::device::SharedDevice;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::{DynamicSession, Session, TensorMut, TensorRef};
use tilewright_runtime::tensor;

use crate::{arrays, carried, eight_channels, largest, open};

/// The height that the network is quantized for.
const HEIGHT: usize = 200;

fn conv(b: &mut GraphBuilder, x: ValueId, stride: usize, seed: usize) -> ValueId {
    let sum = eight_channels(b, x, stride, seed);
    b.node("relu", Clip { lo: 0.0, hi: f32::INFINITY }, &[sum]).unwrap()
}

fn image(height: usize) -> Tensor {
    Tensor::from_fn(&[1, 8, height, 12], |i| ((i * 29) % 101) as f32 / 50.0 - 1.0)
}

/// The file of a quantized network that classifies images of any height `h`.
fn network(folder: &Path) -> PathBuf {
    let mut b = GraphBuilder::new("heights");
    let x = b.input("x", TensorType::new(DType::F32, &[1, 8, HEIGHT, 12]));
    let first = conv(&mut b, x, 1, 1);
    let second = conv(&mut b, first, 2, 2);
    let mean = b.node("mean", GlobalAvgPool { layout: Layout::Nchw, lo: -128, hi: 127 }, &[second]).unwrap();
    let flat = b.node("flat", Reshape { shape: vec![1, 8] }, &[mean]).unwrap();
    let w = b.constant("w", Tensor::from_fn(&[4, 8], |i| (i % 5) as f32 - 2.0));
    let y = b.node("dense", Dense { data_zero_point: 0, weight_zero_point: 0 }, &[flat, w]).unwrap();
    b.output("y", y);
    let file = folder.join("heights.onnx");
    std::fs::write(&file, onnx::write(&b.finish().unwrap()).unwrap()).unwrap();
    let (prepared, engine) = (Prepared::read(&file, Sizes::default()).unwrap(), Compiled::new(&HwConfig::default()));
    let done = prepared.quantize(&[vec![image(HEIGHT)]], &QuantizeOptions::default(), &engine, &mut |_, _, _| {});
    let mut bytes = onnx::write(&done.unwrap().graph).unwrap();
    assert_eq!(leave_open(&mut bytes, b'h'), 1, "only the input has this size");
    std::fs::write(&file, bytes).unwrap();
    file
}

/// Gives the dimensions of 200 in an ONNX file a name instead. Returns how many there are.
fn leave_open(bytes: &mut [u8], name: u8) -> usize {
    // A dimension's message: the number 200, or a name that takes as many bytes.
    let (number, name) = ([0x0a, 3, 0x08, 200, 1], [0x0a, 3, 0x12, 1, name]);
    let at: Vec<usize> = (0..bytes.len() - 5).filter(|&at| bytes[at..at + 5] == number).collect();
    for at in &at {
        bytes[*at..*at + 5].copy_from_slice(&name);
    }
    at.len()
}

fn compiled_for(file: &Path, sizes: Sizes, config: &HwConfig) -> Artifact {
    let (request, file) = (CompileRequest::default(), ModelFile::from(file));
    request.compile_file(&file, &sizes.into(), config, DeviceKind::CSIM, &mut |_, _| {}).unwrap().artifact
}

fn jit_of(file: &Path, level: u8, config: &HwConfig) -> Jit {
    let request = CompileRequest { level, ..CompileRequest::default() };
    request.jit(&file.into(), Sizes::default(), config, DeviceKind::CSIM).unwrap()
}

/// Images of a batch of any size.
fn batch(size: usize) -> Tensor {
    Tensor::from_fn(&[size, 8, 5, 6], |i| ((i * 31) % 97) as f32 / 48.0 - 1.0)
}

/// A batch that the model is not compiled for is padded to the next larger one, and the results are those of the batch
/// alone.
#[test]
fn a_batch_is_padded_to_the_next_larger_one() {
    let folder = tempfile::tempdir().unwrap();
    let config = HwConfig::load("1x8x8").unwrap();
    let mut b = GraphBuilder::new("batches");
    let x = b.input("x", TensorType::new(DType::F32, &[200, 8, 5, 6]));
    let first = conv(&mut b, x, 1, 1);
    let second = conv(&mut b, first, 2, 2);
    let mean = b.node("mean", GlobalAvgPool { layout: Layout::Nchw, lo: -128, hi: 127 }, &[first]).unwrap();
    b.output("image", second);
    b.output("mean", mean);
    let file = folder.path().join("batches.onnx");
    std::fs::write(&file, onnx::write(&b.finish().unwrap()).unwrap()).unwrap();
    let (prepared, engine) = (Prepared::read(&file, Sizes::default()).unwrap(), Compiled::new(&config));
    let done = prepared.quantize(&[vec![batch(200)]], &QuantizeOptions::default(), &engine, &mut |_, _, _| {});
    let mut bytes = onnx::write(&done.unwrap().graph).unwrap();
    assert!(leave_open(&mut bytes, b'n') >= 1);
    std::fs::write(&file, bytes).unwrap();

    let inputs = model::open_inputs(&file).unwrap();
    let sizes = |n: usize| Sizes { symbols: [("n".to_string(), n)].into(), ..Sizes::default() };
    let compiled = |n: usize| {
        let mut artifact = compiled_for(&file, sizes(n), &config);
        artifact.manifest.buckets =
            model::buckets(&file, sizes(n).into(), &inputs, &[("n".to_string(), n)].into()).unwrap();
        artifact
    };
    let artifact = Artifact::of_shapes(inputs.clone(), &[1, 2, 5].map(compiled)).unwrap();
    let artifact = Artifact::decode("batches", &artifact.encode()).unwrap();
    let expected = |n: usize| -> Vec<tensor::Tensor> {
        let (graph, _) = optimize(model::import(&file, sizes(n)).unwrap(), OptLevel::O2, Default::default()).unwrap();
        eval(&graph, &[batch(n)]).unwrap().iter().map(Into::into).collect()
    };
    let mut session = DynamicSession::of_artifact(artifact.clone(), Registry::global(), Some(device(&config))).unwrap();
    for (n, made) in [(3, 1), (5, 1), (4, 1), (2, 2), (1, 3)] {
        let given: tensor::Tensor = (&batch(n)).into();
        let (outputs, _) = session.run(std::slice::from_ref(&given)).unwrap();
        assert_eq!(outputs, expected(n), "batch of {n}");
        assert_eq!(session.specialized(), made, "batch of {n}");
        assert_eq!(session.submit(vec![given.clone()]).unwrap().wait().unwrap().0, expected(n));
        let about = session.description_for(&refs(std::slice::from_ref(&given))).unwrap();
        let mut found = expected(n);
        for (found, (_, id)) in found.iter_mut().zip(about.named_outputs()) {
            assert_eq!(about.values[id.0 as usize].shape, found.shape);
            found.bytes = vec![0; found.bytes.len()].into();
        }
        let mut memory: Vec<Vec<u8>> = found.iter().map(|tensor| tensor.bytes.to_vec()).collect();
        let mut outputs: Vec<TensorMut> = (found.iter().zip(&mut memory))
            .map(|(tensor, bytes)| TensorMut { dtype: tensor.dtype, shape: &tensor.shape, bytes })
            .collect();
        session.run_into(&refs(&[given]), &mut outputs).unwrap();
        assert!(memory.iter().map(Vec::as_slice).eq(expected(n).iter().map(|tensor| &tensor.bytes[..])));
    }
    let e = session.run(&[(&batch(6)).into()]).unwrap_err().to_string();
    assert!(e.contains("it has the model for 1x8x5x6, 2x8x5x6, 5x8x5x6; compile it with --shapes for others"), "{e}");
    // Without a session: a batch of 3 is three runs of 1, unless there is only a larger one.
    let data = |n: usize| [(None, batch(n).shape().to_vec()).into()];
    let (part, larger) = model::for_data(artifact.clone(), &data(3)).unwrap();
    assert_eq!((part.manifest.input_values()[0].shape[0], larger), (1, None));
    let few = Artifact::of_shapes(inputs.clone(), &[2, 5].map(compiled)).unwrap();
    let (part, larger) = model::for_data(few.clone(), &data(3)).unwrap();
    assert_eq!((part.manifest.input_values()[0].shape[0], larger.is_some()), (5, true));
    assert_eq!(model::for_data(few, &data(4)).unwrap().1, None, "4 is two runs of 2");
    // Without the rows, nothing is padded.
    let mut strict = artifact;
    strict.manifest.buckets.clear();
    strict.manifest.variants.iter_mut().for_each(|variant| variant.buckets.clear());
    let mut session = DynamicSession::of_artifact(strict, Registry::global(), Some(device(&config))).unwrap();
    session.run(&[(&batch(3)).into()]).unwrap_err();
    // Rows of an image are not independent.
    let file = network(folder.path());
    let inputs = model::open_inputs(&file).unwrap();
    let h = Sizes { symbols: [("h".to_string(), 9)].into(), ..Sizes::default() };
    let e = model::buckets(&file, h.into(), &inputs, &[("h".to_string(), 9)].into()).unwrap_err().to_string();
    assert!(e.contains("heights.onnx cannot be padded along h: node ") && e.contains("(conv2d)"), "{e}");
}

fn expected(file: &Path, height: usize) -> Vec<tensor::Tensor> {
    let sizes = Sizes { symbols: [("h".to_string(), height)].into(), ..Sizes::default() };
    let (graph, _) = optimize(model::import(file, sizes).unwrap(), OptLevel::O2, Default::default()).unwrap();
    eval(&graph, &[image(height)]).unwrap().iter().map(Into::into).collect()
}

fn refs(tensors: &[tensor::Tensor]) -> Vec<TensorRef<'_>> {
    tensors.iter().map(|t| TensorRef { dtype: t.dtype, shape: &t.shape, bytes: &t.bytes }).collect()
}

fn device(config: &HwConfig) -> SharedDevice {
    SharedDevice::new(open(DeviceKind::CSIM, config).unwrap().unwrap())
}

#[test]
fn a_model_is_compiled_when_a_shape_is_first_seen() {
    let folder = tempfile::tempdir().unwrap();
    let (file, config) = (network(folder.path()), HwConfig::load("1x8x8").unwrap());
    let jit = || jit_of(&file, 1, &config).with_cache(Some(folder.path().join("cache")));
    let mut session = DynamicSession::new(Box::new(jit()), Registry::global(), Some(device(&config)));
    let dims: Vec<Dim> = [Dim::Size(1), Dim::Size(8), Dim::Symbol("h".into()), Dim::Size(12)].into();
    assert_eq!(session.inputs()[0].dims, dims);
    let mut memory: Vec<BTreeSet<(*const u8, usize)>> = Vec::new();
    for height in [17, 40, 17, 6, 40] {
        let (outputs, report) = session.run(&[(&image(height)).into()]).unwrap();
        assert_eq!(outputs, expected(&file, height), "height {height}");
        assert!(report.cycles().is_some_and(|cycles| cycles > 0));
        let artifact = session.last().unwrap().artifact();
        let blobs = (0..artifact.manifest.blobs.len() as u32).map(|id| artifact.blob(BlobId(id)));
        memory.push(blobs.map(|blob| (blob.as_ptr(), blob.len())).collect());
    }
    assert_eq!(session.specialized(), 3);
    // What is equal for two heights, such as the weights, is in memory once.
    let [first, second] = [&memory[0], &memory[1]];
    let shared: usize = first.intersection(second).map(|(_, bytes)| bytes).sum();
    assert!(shared > 0 && first != second, "{first:?}, {second:?}");
    // Frames have tensors of their own on the device.
    let images = [5, 3, 8, 2].map(|seed| Tensor::from_fn(&[1, 8, 17, 12], |i| ((i * seed) % 89) as f32 / 40.0 - 1.0));
    let alone = images.each_ref().map(|image| session.run(&[image.into()]).unwrap().0);
    assert!(alone.iter().enumerate().all(|(at, outputs)| !alone[..at].contains(outputs)));
    let frames = images.each_ref().map(|image| session.submit(vec![image.into()]).unwrap());
    assert_eq!(frames.map(|frame| frame.wait().unwrap().0), alone);

    // Another process finds what is in the cache folder, even if the model could not be compiled any more.
    let again = jit();
    let kept = std::fs::read(&file).unwrap();
    std::fs::write(&file, &kept[..kept.len() / 2]).unwrap();
    let mut session = DynamicSession::new(Box::new(again), Registry::global(), Some(device(&config)));
    let (outputs, _) = session.run(&[(&image(17)).into()]).unwrap();
    let e = session.run(&[(&image(18)).into()]).unwrap_err().to_string();
    assert!(e.contains("heights.onnx for inputs of 1x8x18x12: "), "{e}");
    std::fs::write(&file, &kept).unwrap();
    assert_eq!(outputs, expected(&file, 17));
    session.run(&[(&image(18)).into()]).unwrap();

    // What another file is compiled to is not kept as that of this one.
    let stale = jit();
    let renamed = kept.windows(7).position(|part| part == b"heights").expect("the graph's name");
    let mut other = kept.clone();
    other[renamed..renamed + 7].copy_from_slice(b"changed");
    std::fs::write(&file, other).unwrap();
    let entries = || std::fs::read_dir(folder.path().join("cache")).unwrap().count();
    let before = entries();
    let mut session = DynamicSession::new(Box::new(stale), Registry::global(), Some(device(&config)));
    session.run(&[(&image(21)).into()]).unwrap();
    assert_eq!(entries(), before);
    std::fs::write(&file, kept).unwrap();

    let wide = Tensor::from_fn(&[1, 8, 5, 13], |_| 0f32);
    let e = session.run(&[(&wide).into()]).unwrap_err().to_string();
    assert_eq!(e, "input x has shape 1x8x5x13, but the model expects 1x8xhx12");
}

/// All shapes of one artifact run on one device, and what they have in common is stored once.
#[test]
fn an_artifact_has_the_model_for_several_shapes() {
    let folder = tempfile::tempdir().unwrap();
    let (file, config) = (network(folder.path()), HwConfig::load("1x8x8").unwrap());
    let compiled = |height: usize| {
        let sizes = Sizes { symbols: [("h".to_string(), height)].into(), ..Sizes::default() };
        compiled_for(&file, sizes, &config)
    };
    let alone: Vec<Artifact> = [9, 30].map(compiled).into();
    let artifact = Artifact::of_shapes(model::open_inputs(&file).unwrap(), &alone).unwrap();
    assert!(artifact.blob_bytes() < alone.iter().map(Artifact::blob_bytes).sum());
    let artifact = Artifact::decode("heights", &artifact.encode()).unwrap();
    let device = device(&config);
    let free = device.free_bytes();
    let mut session = DynamicSession::of_artifact(artifact.clone(), Registry::global(), Some(device.clone())).unwrap();
    for height in [30, 9, 30, 9] {
        let (outputs, _) = session.run(&[(&image(height)).into()]).unwrap();
        assert_eq!(outputs, expected(&file, height), "height {height}");
    }
    assert_eq!(session.specialized(), 2);
    drop(session);
    assert_eq!(device.free_bytes(), free, "a session gives its memory back");

    let data = |height: usize| vec![(None, vec![1, 8, height, 12]).into()];
    let (part, _) = model::for_data(artifact.clone(), &data(30)).unwrap();
    assert_eq!(part.manifest.input_values()[0].shape, [1, 8, 30, 12]);
    let e = model::for_data(artifact, &data(31)).unwrap_err().to_string();
    let known = "it has the model for 1x8x9x12, 1x8x30x12; compile it with --shapes for others";
    assert_eq!(e, format!("heights is not for h=31: {known}"));
}

/// Runs a model in one session on inputs of each shape, twice, and compares the outputs with the graph's evaluation. The
/// second time, nothing is made.
fn runs_at_each_shape(file: &Path, level: u8, shapes: &[Vec<Tensor>]) {
    let (config, cache) = (HwConfig::default(), tempfile::tempdir().unwrap());
    let jit = jit_of(file, level, &config).with_cache(Some(cache.path().to_path_buf()));
    let mut session = DynamicSession::new(Box::new(jit), Registry::global(), Some(device(&config)));
    for pass in 0..2 {
        for inputs in shapes {
            let given: Vec<tensor::Tensor> = inputs.iter().map(Into::into).collect();
            let (outputs, _) = session.run(&given).unwrap();
            if pass == 0 {
                let named = session.inputs().iter().map(|input| input.name.clone());
                let inputs_of = named.zip(inputs.iter().map(|x| x.shape().to_vec())).collect();
                let graph = model::import(file, Sizes { inputs: inputs_of, ..Sizes::default() }).unwrap();
                let (graph, _) = optimize(graph, OptLevel::O2, Default::default()).unwrap();
                let wanted: Vec<tensor::Tensor> = eval(&graph, inputs).unwrap().iter().map(Into::into).collect();
                let far = largest(&outputs, &wanted);
                assert!(far < 1e-4, "{:?}: {far}", given[0].shape);
            }
        }
        assert_eq!(session.specialized(), shapes.len() as u64);
    }
}

/// A small BERT with an open batch and length.
fn sentences(count: usize) -> Vec<Vec<Tensor>> {
    let ids = |batch: usize, length: usize| Tensor::from_fn(&[batch, length], |i| (i * 37 % 64) as i64);
    let mask = |batch: usize, length: usize| {
        let row = move |i: usize| i64::from(i % length + 3 * (i / length) < length.max(8));
        Tensor::from_fn(&[batch, length], row)
    };
    let shape = |number: usize| (1 + number % 3, 5 + 11 * number % 92);
    (0..count).map(shape).map(|(batch, length)| vec![ids(batch, length), mask(batch, length)]).collect()
}

#[test]
fn a_language_model_runs_at_any_length() {
    let file = carried("bert-open/model.onnx");
    runs_at_each_shape(&file, 2, &sentences(5));
    let inputs = arrays(&file, "input");
    let config = HwConfig::default();
    let mut session = DynamicSession::new(Box::new(jit_of(&file, 2, &config)), Registry::global(), None);
    let far = largest(&session.run(&inputs).unwrap().0, &arrays(&file, "expected"));
    assert!(far < 1e-5, "differs from ONNX Runtime by {far}");
}

#[test]
#[ignore = "compiles networks twenty times"]
fn networks_run_at_twenty_shapes() {
    runs_at_each_shape(&carried("bert-open/model.onnx"), 3, &sentences(20));
    let image = |n: usize| {
        let shape = [1 + n % 2, 3, 24 + 4 * (n % 7), 20 + 3 * n];
        vec![Tensor::from_fn(&shape, |i| ((i * 29) % 101) as f32 / 50.0 - 1.0)]
    };
    runs_at_each_shape(&carried("resnet8-open/model_qdq.onnx"), 2, &(0..20).map(image).collect::<Vec<_>>());
    let file = carried("ppocr-cls/model.onnx");
    let full = Tensor::try_from(&arrays(&file, "input")[0]).unwrap();
    let values = full.as_slice::<f32>().unwrap();
    let image = |number: usize| {
        // The network takes no image of less than 48 rows.
        let [height, width] = [48 + 16 * (number % 5), 64 + 32 * (number / 5)];
        vec![Tensor::from_fn(&[1, 3, height, width], |i| values[i * 7 % values.len()])]
    };
    runs_at_each_shape(&file, 2, &(0..20).map(image).collect::<Vec<_>>());
}

#[test]
fn a_session_compiles_for_each_value_that_an_operator_needs() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/16-values-of-inputs/model.onnx");
    let (config, cache) = (HwConfig::default(), tempfile::tempdir().unwrap());
    let opened = || {
        let request = CompileRequest { level: 2, ..CompileRequest::default() };
        let jit = request.jit(&ModelFile::from(&*file), Sizes::default(), &config, DeviceKind::CPU).unwrap();
        let jit = jit.with_cache(Some(cache.path().to_path_buf()));
        DynamicSession::new(Box::new(jit), Registry::global(), None)
    };
    let x = |seed: usize| Tensor::from_fn(&[2, 3, 4], |i| ((i * 29 + seed * 7) % 101) as f32 / 50.0 - 1.0);
    let inputs = |seed: usize, axis: i64, shape: [i64; 4], scale: f32| {
        let scales = Tensor::vector(vec![1.0f32, 1.0, 2.0, scale]);
        [x(seed), Tensor::vector(vec![axis]), Tensor::vector(shape.to_vec()), scales]
    };
    let runs = [
        inputs(0, -1, [1, 1, 4, -1], 1.5),
        inputs(1, -1, [1, 1, 4, -1], 1.5),
        inputs(2, 0, [1, 2, 6, 2], 1.5),
        inputs(3, 0, [1, 2, 6, 2], 3.0),
    ];
    for (process, made) in [(0, [1, 1, 2, 3]), (1, [1, 1, 2, 3])] {
        let mut session = opened();
        for (given, made) in runs.iter().zip(made) {
            let names = ["x", "axes", "shape", "scales"].map(str::to_string);
            let values = names.into_iter().zip(given.iter().cloned()).skip(1).collect();
            let options = model::ImportOptions { values, ..model::ImportOptions::default() };
            let wanted = eval(&model::import(&file, options).unwrap(), given).unwrap();
            let given: Vec<tensor::Tensor> = given.iter().map(Into::into).collect();
            let (outputs, _) = session.run(&given).unwrap();
            assert!(largest(&outputs, &[(&wanted[0]).into()]) < 1e-5, "{:?}", given[1]);
            assert_eq!(session.specialized(), made, "process {process}");
        }
        // A session for one value refuses others.
        let mut one = Session::new(session.last().unwrap().artifact().clone(), Registry::global(), None).unwrap();
        let other: Vec<tensor::Tensor> = runs[0].iter().map(Into::into).collect();
        let e = one.run(&other).unwrap_err().to_string();
        let want = "input axes is -1, but the model is compiled for 0 alone; compile it for the other value";
        assert_eq!(e, want);
    }
    // The second process found all three in the cache.
    let files = std::fs::read_dir(cache.path()).unwrap().count();
    assert_eq!(files, 4, "three models and the names of the inputs");
    let e = model::import(&file, Sizes::default()).unwrap_err().to_string();
    let want = "node `s` (ReduceSum): operand 1, `axes`, must be a constant; it follows from the input `axes`, and the model \
                can be compiled for one value: --value axes=NUMBERS";
    assert!(e.contains(want), "{e}");
    let import = |name: &str, value: Tensor| {
        let values = [(name.to_string(), value)].into();
        let options = model::ImportOptions { values, ..model::ImportOptions::default() };
        model::import(&file, options).unwrap_err().to_string()
    };
    let e = import("axes", Tensor::vector(vec![0.5f32]));
    assert!(e.ends_with("has an input axes of i64[1], which the value given for it, f32[1], does not suit"), "{e}");
    let e = import("nothing", Tensor::scalar(1i64));
    assert!(e.ends_with("has no input nothing; it has x, axes, shape, scales"), "{e}");
}
