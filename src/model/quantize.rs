//! Post-training quantization of a model file: runs networks as compiled code and converts arrays to samples.

mod data;
mod pictures;
mod report;
mod request;

use std::path::Path;

use tilewright_compiler::frontend::onnx::{self, WriteError};
use tilewright_compiler::graph::{DType, Graph, Tensor, TensorType};
use tilewright_compiler::quantize::{self, Engine, QuantizeError, RunnableNetwork};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{Manifest, ValueId, ValueInfo};
use tilewright_runtime::files::Unfinished;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::Session;
use tilewright_runtime::tensor;

pub use crate::model::inference::Scaling;
use crate::model::inference::{self, InputError, Labels};
use crate::model::{self, ImportOptions, ModelError, Offload, Options, Sizes};

pub use data::{Data, Feeding};
pub use pictures::{FolderError, folder, folder_shape};
pub use report::Report;
pub use request::{Finished, QuantizeRequest};
pub use tilewright_compiler::quantize::{
    Layer, Method, MethodChoice, Options as QuantizeOptions, Params, Quantized, Told, Weak, WeightBits,
};

/// Why a model was not quantized.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be imported.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The network cannot be quantized.
    #[error("{file}: {source}")]
    Quantize {
        /// The model's file.
        file: String,
        /// The quantizer's error.
        source: QuantizeError,
    },
    /// The quantized network has no ONNX form.
    #[error("{file}: {source}")]
    Write {
        /// The model's file.
        file: String,
        /// The writer's error.
        source: WriteError,
    },
    /// Data that does not match the model's inputs, or labels that do not match its output.
    #[error("{file}: {source}")]
    Data {
        /// The data's file.
        file: String,
        /// What is wrong.
        source: InputError,
    },
    /// The network cannot be run.
    #[error("{0}")]
    Run(String),
    /// The quantized network's file cannot be written.
    #[error("cannot write {path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The written file does not match the network.
    #[error("{file}: the quantized file {reason}; this is a bug in tilewright, please report it; no file was written")]
    Written {
        /// The model's file.
        file: String,
        /// The mismatch.
        reason: String,
    },
}

/// Runs networks as compiled code on this machine's CPU.
#[derive(Debug, Clone)]
pub struct Compiled {
    config: HwConfig,
}

impl Compiled {
    /// Makes an engine; nothing is offloaded to `config`.
    pub fn new(config: &HwConfig) -> Compiled {
        Compiled { config: config.clone() }
    }
}

impl Engine for Compiled {
    fn open(&self, graph: &Graph) -> Result<Box<dyn RunnableNetwork>, String> {
        let options = Options { offload: Offload::None, ..Options::new(&self.config) };
        let artifact = model::build(graph.clone(), &options, &mut |_, _| {}).map_err(|e| e.to_string())?;
        let session = Session::new(artifact, Registry::global(), None).map_err(|e| e.to_string())?;
        Ok(Box::new(Native { session }))
    }
}

struct Native {
    session: Session,
}

impl RunnableNetwork for Native {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
        let inputs: Vec<tensor::Tensor> = inputs.iter().map(tensor::Tensor::from).collect();
        let (outputs, _) = self.session.run(&inputs).map_err(|e| e.to_string())?;
        outputs.iter().map(|t| Tensor::try_from(t).map_err(|e| e.to_string())).collect()
    }
}

/// A float network, prepared for quantization.
#[derive(Debug, Clone)]
pub struct Prepared {
    file: String,
    graph: Graph,
}

impl Prepared {
    /// Imports a model file and prepares it, for example by folding constants.
    ///
    /// # Errors
    /// [`Error::Model`] or [`Error::Quantize`].
    pub fn read(path: &Path, options: impl Into<ImportOptions>) -> Result<Prepared, Error> {
        let file = path.display().to_string();
        let graph = quantize::prepare(model::import(path, options)?);
        let graph = graph.map_err(|source| Error::Quantize { file: file.clone(), source })?;
        Ok(Prepared { file, graph })
    }

    /// The network.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Names and types of the inputs.
    pub fn inputs(&self) -> Vec<(&str, &TensorType)> {
        self.graph.inputs().map(|(name, v)| (name, self.graph.ty(v))).collect()
    }

    /// Quantizes the network.
    ///
    /// # Errors
    /// [`Error::Quantize`].
    pub fn quantize(
        &self,
        samples: &[Vec<Tensor>],
        options: &QuantizeOptions,
        engine: &dyn Engine,
        told: &mut Told,
    ) -> Result<Quantized, Error> {
        let done = quantize::quantize(&self.graph, samples, options, engine, told);
        done.map_err(|source| Error::Quantize { file: self.file.clone(), source })
    }

    /// Writes a quantized network as an ONNX file under a temporary name, reads it back and runs it on a sample.
    /// Inputs, outputs and results must match the network. [`Unfinished::finish`] renames the file to its final name.
    ///
    /// # Errors
    /// [`Error::Write`] if the network has no ONNX form, [`Error::File`] if the file cannot be written,
    /// [`Error::Written`] if it does not match the network. In each case no file is left.
    pub fn write(
        &self,
        path: &Path,
        quantized: &Quantized,
        sample: &[Tensor],
        engine: &dyn Engine,
    ) -> Result<Unfinished, Error> {
        let bytes = onnx::write(&quantized.graph);
        let bytes = bytes.map_err(|source| Error::Write { file: self.file.clone(), source })?;
        self.written(path, &bytes, quantized, sample, engine)
    }

    fn written(
        &self,
        path: &Path,
        bytes: &[u8],
        quantized: &Quantized,
        sample: &[Tensor],
        engine: &dyn Engine,
    ) -> Result<Unfinished, Error> {
        let cannot = |source| Error::File { path: path.display().to_string(), source };
        let unfinished = Unfinished::new(path, bytes).map_err(cannot)?;
        let read = std::fs::read(unfinished.path()).map_err(cannot)?;
        match check(&read, quantized, sample, engine) {
            Ok(()) => Ok(unfinished),
            Err(reason) => Err(Error::Written { file: self.file.clone(), reason }),
        }
    }

    /// Checks labels against the first output.
    ///
    /// # Errors
    /// [`Error::Data`].
    pub fn labels(&self, labels: &tensor::Tensor, file: &str, runs: usize) -> Result<Labels, Error> {
        let shape = self.graph.outputs().first().and_then(|(_, v)| self.graph.ty(*v).shape()).unwrap_or_default();
        let checked = Labels::of(labels, &shape, runs);
        checked.map_err(|source| Error::Data { file: file.to_string(), source })
    }
}

/// Checks that a file matches the quantized network that it was written from; the error says how it differs.
fn check(file: &[u8], quantized: &Quantized, sample: &[Tensor], engine: &dyn Engine) -> Result<(), String> {
    let network = &quantized.graph;
    let again = onnx::import(file, "the file", None, Sizes::default()).map_err(|e| format!("cannot be read: {e}"))?;
    let edges = |g: &Graph| {
        let inputs = g.inputs().map(|(name, v)| format!("{name} {}", g.ty(v)));
        let outputs = g.outputs().iter().map(|(name, v)| format!("{name} {}", g.ty(*v)));
        inputs.chain(outputs).collect::<Vec<_>>().join(", ")
    };
    let (found, wanted) = (edges(&again), edges(network));
    if found != wanted {
        return Err(format!("has the inputs and outputs {found} instead of {wanted}"));
    }
    let run = |graph: &Graph| engine.open(graph).and_then(|mut run| run.run(sample));
    let found = run(&again).map_err(|e| format!("does not run: {e}"))?;
    let wanted = run(network).map_err(|e| format!("cannot be compared, because the network does not run: {e}"))?;
    // Noise-to-signal ratio that quantization adds to each float output.
    let mut noise = quantized.output_db.iter().map(|db| 10f64.powf(-db / 10.0));
    for (((name, _), found), wanted) in network.outputs().iter().zip(&found).zip(&wanted) {
        let noise = if wanted.ty().dtype == DType::F32 { noise.next().unwrap_or(0.0) } else { 0.0 };
        if !near(found, wanted, noise.max(0.01)) {
            return Err(format!("computes other values for output `{name}` than the network does"));
        }
    }
    Ok(())
}

/// Whether two outputs match up to single quantization steps: the energy of the difference is at most `noise` times
/// that of the signal. For types other than f32, only type and shape are compared, since the numbers can be positions
/// or classes.
fn near(found: &Tensor, wanted: &Tensor, noise: f64) -> bool {
    if found.ty() != wanted.ty() {
        return false;
    }
    let (Ok(found), Ok(wanted)) = (found.as_slice::<f32>(), wanted.as_slice::<f32>()) else { return true };
    let square = |x: f32| f64::from(x) * f64::from(x);
    let same = |a: f32, b: f32| a == b || a.is_nan() && b.is_nan();
    let apart = found.iter().zip(wanted).filter(|(a, b)| !same(**a, **b));
    let difference: f64 = apart.map(|(a, b)| square(a - b)).sum();
    difference == 0.0 || difference <= noise * wanted.iter().map(|x| square(*x)).filter(|x| x.is_finite()).sum::<f64>()
}

/// The fraction of correct answers in a network's first output.
///
/// # Errors
/// [`Error::Run`].
pub fn accuracy(
    graph: &Graph,
    engine: &dyn Engine,
    samples: &[Vec<Tensor>],
    labels: &Labels,
    told: &mut dyn FnMut(usize),
) -> Result<f64, Error> {
    let mut run = engine.open(graph).map_err(Error::Run)?;
    let mut all = Vec::with_capacity(samples.len());
    for (index, sample) in samples.iter().enumerate() {
        let outputs = run.run(sample).map_err(Error::Run)?;
        let first = outputs.first().map(tensor::Tensor::from).ok_or_else(|| Error::Run("it has no output".into()))?;
        all.push(first);
        told(index + 1);
    }
    Ok(tensor::Tensor::concat(&all).map_or(0.0, |t| labels.accuracy(&t)))
}

/// What to do with a model whose products are all in floats, so that nothing can be offloaded; none for other models.
pub fn advice(manifest: &Manifest, file: &str) -> Option<String> {
    if manifest.macs() == 0 || manifest.offloaded_macs() > 0 {
        return None;
    }
    let products = || manifest.nodes.iter().filter(|node| node.macs > 0);
    // Int8 weights alone do not make an integer product.
    let activation = |id: &ValueId| {
        let value = &manifest.values[id.0 as usize];
        value.constant.is_none() && matches!(value.dtype, tensor::DType::I8 | tensor::DType::U8)
    };
    let steps = products().filter_map(|node| Some(&manifest.steps[node.step? as usize]));
    if steps.into_iter().any(|step| step.inputs.iter().chain(&step.outputs).any(activation)) {
        return None;
    }
    if products().any(|node| node.op.starts_with("hybrid_")) {
        return Some(format!(
            "nothing of {file} can be offloaded: its weights are int8, but its activations are floats, and the \
             accelerator needs both in int8; make an int8 model from the original float model with \
             tilewright quantize FLOAT_MODEL --calibrate SAMPLES -o OUT.onnx"
        ));
    }
    if manifest.nodes.iter().any(|node| node.op == "quantize") {
        return Some(format!(
            "nothing of {file} can be offloaded: it is quantized, but in a form that leaves its products in floats; the accelerator \
             needs int8 data with one scale and zero point, and int8 weights with one of each, or one per output \
             channel"
        ));
    }
    Some(format!(
        "nothing of {file} can be offloaded: it computes in floats, but the accelerator computes in int8; make an \
         int8 model with tilewright quantize {file} --calibrate SAMPLES -o OUT.onnx"
    ))
}

/// Converts arrays to samples of the model's inputs, with the rules of [`inference::arrange`].
///
/// # Errors
/// [`InputError`], which names the input.
pub fn samples(
    inputs: &[(&str, &TensorType)],
    arrays: Vec<(Option<String>, tensor::Tensor)>,
    scaling: Scaling,
) -> Result<Vec<Vec<Tensor>>, InputError> {
    let missing = |name, ty| {
        let remedy = "give a .npz file with an array for each input, or a .npy file if the model has one input".into();
        InputError::Missing { name, ty, remedy }
    };
    let value = |(name, ty): &(&str, &TensorType)| {
        let found = ty.shape().zip(tensor::DType::from_name(ty.dtype.name()));
        let (shape, dtype) = found.ok_or_else(|| missing(name.to_string(), ty.to_string()))?;
        Ok(ValueInfo::new(name, dtype, shape))
    };
    let values = inputs.iter().map(value).collect::<Result<Vec<_>, InputError>>()?;
    let runs =
        inference::arrange(&values.iter().collect::<Vec<_>>(), arrays, None, (scaling, &[])).map_err(|e| match e {
            InputError::Missing { name, ty, .. } => missing(name, ty),
            other => other,
        })?;
    let of_run =
        |run: &Vec<tensor::Tensor>| run.iter().map(|t| Tensor::try_from(t).expect("of the model's type")).collect();
    Ok(runs.iter().map(of_run).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_compiler::graph::op::{Dequantize, HybridDense, MatMul, QMatMul, QuantRounding, Quantize};
    use tilewright_compiler::graph::{self, GraphBuilder};

    /// The advice for a network that `make` builds with data of shape `[1, 4]`.
    fn advised(data: DType, make: impl Fn(&mut GraphBuilder, graph::ValueId)) -> Option<String> {
        let mut b = GraphBuilder::new("net");
        let x = b.input("x", TensorType::new(data, &[1, 4]));
        make(&mut b, x);
        let config = HwConfig::default();
        let artifact = model::build(b.finish().unwrap(), &Options::new(&config), &mut |_, _| {}).unwrap();
        advice(&artifact.manifest, "net.onnx")
    }

    #[test]
    fn advice_goes_by_the_activations_of_products() {
        let float = advised(DType::F32, |b, x| {
            let w = b.constant("w", Tensor::from_fn(&[4, 2], |i| i as f32));
            let y = b.node("y", MatMul {}, &[x, w]).unwrap();
            b.output("y", y);
        });
        assert!(float.unwrap().contains("it computes in floats"));
        let hybrid = advised(DType::F32, |b, x| {
            let w = b.constant("w", Tensor::from_fn(&[2, 4], |i| i as i8));
            let [scale, bias] = [0.1f32, 0.0].map(|v| b.constant("", Tensor::vector(vec![v; 2])));
            let y = b.node("y", HybridDense { asymmetric: false }, &[x, w, scale, bias]).unwrap();
            b.output("y", y);
        });
        assert!(hybrid.unwrap().contains("its weights are int8, but its activations are floats"));
        let quantized = advised(DType::F32, |b, x| {
            let (scale, zero_point, rounding) = (vec![0.1; 4], vec![0; 4], QuantRounding::HalfEven);
            let q =
                Quantize { scale: scale.clone(), zero_point: zero_point.clone(), axis: 1, rounding, dtype: DType::I8 };
            let q = b.node("q", q, &[x]).unwrap();
            let x = b.node("dq", Dequantize { scale, zero_point, axis: 1 }, &[q]).unwrap();
            let w = b.constant("w", Tensor::from_fn(&[4, 2], |i| i as f32));
            let y = b.node("y", MatMul {}, &[x, w]).unwrap();
            b.output("y", y);
        });
        assert!(quantized.unwrap().contains("it is quantized, but in a form that leaves its products in floats"));
        let integer = advised(DType::I8, |b, x| {
            let w = b.constant("w", Tensor::from_fn(&[4, 2], |i| i as i8));
            let y = b.node("y", QMatMul { a_zero_point: 0, b_zero_point: 0 }, &[x, w]).unwrap();
            b.output("y", y);
        });
        assert_eq!(integer, None);
    }

    /// A product whose first weight is `weight`.
    fn product(weight: f32, output: &str) -> Graph {
        let mut b = GraphBuilder::new("net");
        let x = b.input("x", TensorType::new(DType::F32, &[1, 4]));
        let w = b.constant("w", Tensor::from_fn(&[4, 2], |i| if i == 0 { weight } else { i as f32 }));
        let y = b.node("y", MatMul {}, &[x, w]).unwrap();
        b.output(output, y);
        b.finish().unwrap()
    }

    #[test]
    fn a_file_that_is_not_the_network_gets_no_name() {
        let engine = quantize::Reference;
        let sample = vec![Tensor::from_fn(&[1, 4], |i| i as f32 - 1.5)];
        let options = QuantizeOptions { method: MethodChoice::All(Method::MinMax), ..QuantizeOptions::default() };
        let quantized = |graph: Graph| {
            let prepared = Prepared { file: "net.onnx".into(), graph };
            let quantized =
                prepared.quantize(std::slice::from_ref(&sample), &options, &engine, &mut |_, _, _| {}).unwrap();
            (prepared, quantized)
        };
        let (prepared, network) = quantized(product(0.0, "y"));
        let bytes = |graph| onnx::write(&quantized(graph).1.graph).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q.onnx");
        let files = || std::fs::read_dir(dir.path()).unwrap().count();
        let good = onnx::write(&network.graph).unwrap();
        let wrong = [
            (good[..good.len() / 2].to_vec(), "cannot be read: "),
            (
                bytes(product(0.0, "z")),
                "has the inputs and outputs x f32[1,4], z f32[1,2] instead of x f32[1,4], y f32[1,2]; this is",
            ),
            (bytes(product(-7.0, "y")), "computes other values for output `y` than the network does"),
        ];
        for (bytes, reason) in wrong {
            let e = prepared.written(&path, &bytes, &network, &sample, &engine).unwrap_err().to_string();
            assert!(e.starts_with(&format!("net.onnx: the quantized file {reason}")), "{e}");
            assert_eq!(files(), 0, "{reason}");
        }
        let unfinished = prepared.write(&path, &network, &sample, &engine).unwrap();
        assert!(!path.exists());
        unfinished.finish().unwrap();
        assert_eq!((files(), std::fs::read(&path).unwrap()), (1, good));
    }

    #[test]
    fn a_missing_input_comes_with_the_samples() {
        let ty = TensorType::new(DType::F32, &[1, 2]);
        let one = tensor::Tensor::from_f32(vec![1, 2], &[1.0, 2.0]).unwrap();
        let error = samples(&[("a", &ty), ("b", &ty)], vec![(None, one)], Scaling::NONE).unwrap_err().to_string();
        let remedy = "give a .npz file with an array for each input, or a .npy file if the model has one input";
        assert_eq!(error, format!("input b (f32 1x2) is missing; {remedy}"));
    }

    #[test]
    fn floats_of_any_width_are_samples() {
        let ty = TensorType::new(DType::F32, &[1, 3]);
        let numbers = [0.5f32, -1.0, 1.5, 0.0, 0.25, 3.0];
        let bytes = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        let single = tensor::Tensor::new(tensor::DType::F32, vec![2, 3], bytes).unwrap();
        for width in [tensor::DType::F16, tensor::DType::F32, tensor::DType::F64] {
            let array = single.to_floats(width).unwrap();
            let scaling = Scaling { mean: 0.0, scale: 1.0 };
            let all = samples(&[("x", &ty)], vec![(None, array)], scaling).unwrap();
            let found: Vec<&[f32]> = all.iter().map(|sample| sample[0].as_slice().unwrap()).collect();
            assert_eq!(found, [&numbers[..3], &numbers[3..]], "{width}");
        }
        let whole = TensorType::new(DType::I32, &[1, 3]);
        let wrong = samples(&[("x", &whole)], vec![(None, single)], Scaling { mean: 0.0, scale: 1.0 });
        assert!(matches!(wrong, Err(InputError::Type { .. })), "{wrong:?}");
    }
}
