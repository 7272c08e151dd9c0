//! Models whose inputs can have several shapes: one session for each shape that was seen lately.

use std::num::NonZeroUsize;

use tilewright_driver::DriverError;

use super::{Frames, Pending, RunReport, Session, SessionError, TensorMut, TensorRef};
use crate::artifact::{Artifact, Larger, Manifest, OpenValue};
use crate::device::SharedDevice;
use crate::function::AnyError;
use crate::registry::Registry;
use crate::tensor::{Tensor, refs, shape_text};

/// A model that can be compiled for several input shapes.
pub trait Specialize: Send {
    /// Its name in messages.
    fn name(&self) -> &str;

    /// Its inputs; sizes that differ between shapes have names.
    fn inputs(&self) -> &[OpenValue];

    /// The model, compiled for the shapes of these inputs, and for their values where it needs them. The shapes suit the
    /// inputs' known sizes, and equal names have equal sizes; elements can be missing.
    ///
    /// # Errors
    /// Why it cannot be had for these inputs.
    fn specialize(&self, inputs: &[TensorRef]) -> Result<Artifact, AnyError>;

    /// Larger shapes to pad to; `None` if the model has code for these shapes.
    fn larger(&self, _shapes: &[&[usize]]) -> Option<Larger> {
        None
    }

    /// A description of the model, if there is one for all shapes.
    fn manifest(&self) -> Option<&Manifest> {
        None
    }
}

/// The shapes that an artifact has the model for.
#[derive(Debug)]
pub struct OfArtifact {
    artifact: Artifact,
    inputs: Vec<OpenValue>,
}

impl OfArtifact {
    /// The shapes of this artifact.
    pub fn new(artifact: Artifact) -> OfArtifact {
        OfArtifact { inputs: artifact.inputs(), artifact }
    }
}

impl Specialize for OfArtifact {
    fn name(&self) -> &str {
        &self.artifact.path
    }

    fn inputs(&self) -> &[OpenValue] {
        &self.inputs
    }

    fn specialize(&self, inputs: &[TensorRef]) -> Result<Artifact, AnyError> {
        let shapes: Vec<&[usize]> = inputs.iter().map(|tensor| tensor.shape).collect();
        let unknown = || self.artifact.known_shapes();
        self.artifact.for_shapes(&shapes).ok_or_else(|| unknown().into())
    }

    fn larger(&self, shapes: &[&[usize]]) -> Option<Larger> {
        self.artifact.larger(shapes)
    }

    fn manifest(&self) -> Option<&Manifest> {
        Some(&self.artifact.manifest)
    }
}

/// How many shapes a session keeps ready by default.
const KEPT: NonZeroUsize = NonZeroUsize::new(32).unwrap();

/// How many frames of a shape are computed at once by default.
const FRAMES: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// What a caller gives of the inputs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Given {
    /// Types, shapes and elements.
    Elements,
    /// Types and shapes; the elements can be missing.
    Shapes,
}

/// A shape that is ready.
struct Ready {
    session: Session,
    /// Its frames, once one was submitted.
    frames: Option<Frames>,
}

/// Sessions of one model, one for each shape of its inputs, on one device. A shape that is seen for the first time is
/// specialized; the shapes that were not used for the longest time go when there are too many, or when the device's
/// memory is full.
pub struct DynamicSession {
    source: Option<Box<dyn Specialize>>,
    inputs: Vec<OpenValue>,
    functions: Registry,
    device: Option<SharedDevice>,
    /// The one that was used last is last.
    ready: Vec<Ready>,
    kept: usize,
    frames: NonZeroUsize,
    made: u64,
}

impl DynamicSession {
    /// Prepares a model. Nothing is compiled or loaded before a shape is seen.
    pub fn new(source: Box<dyn Specialize>, functions: &Registry, device: Option<SharedDevice>) -> DynamicSession {
        DynamicSession {
            inputs: source.inputs().to_vec(),
            source: Some(source),
            functions: functions.clone(),
            device,
            ready: Vec::new(),
            kept: KEPT.get(),
            frames: FRAMES,
            made: 0,
        }
    }

    /// Prepares an artifact. If it has the model for one shape only, it is loaded at once.
    ///
    /// # Errors
    /// As [`Session::on`].
    pub fn of_artifact(
        artifact: Artifact,
        functions: &Registry,
        device: Option<SharedDevice>,
    ) -> Result<DynamicSession, SessionError> {
        if artifact.manifest.variants.is_empty() {
            return Ok(DynamicSession::from(Session::on(artifact, functions, device)?));
        }
        if let Some(device) = &device {
            artifact.check_hardware(device.config())?;
        }
        Ok(DynamicSession::new(Box::new(OfArtifact::new(artifact)), functions, device))
    }

    /// Keeps at most this many shapes ready.
    #[must_use]
    pub fn keeping(mut self, shapes: NonZeroUsize) -> DynamicSession {
        self.kept = shapes.get();
        self
    }

    /// Computes at most this many submitted frames of a shape at once.
    #[must_use]
    pub fn with_frames(mut self, frames: NonZeroUsize) -> DynamicSession {
        self.frames = frames;
        self
    }

    /// The model's inputs; sizes that differ between shapes have names.
    pub fn inputs(&self) -> &[OpenValue] {
        &self.inputs
    }

    /// The model's name in messages.
    pub fn name(&self) -> &str {
        let last = || self.last().map_or("", |session| &session.artifact().path);
        self.source.as_deref().map_or_else(last, Specialize::name)
    }

    /// A description of the model, if there is one for all of its shapes.
    pub fn manifest(&self) -> Option<&Manifest> {
        let last = || self.last().map(|session| &session.artifact().manifest);
        self.source.as_deref().map_or_else(last, Specialize::manifest)
    }

    /// How often a shape was specialized and loaded.
    pub fn specialized(&self) -> u64 {
        self.made
    }

    /// The session of the shape that was used last, if there is one.
    pub fn last(&self) -> Option<&Session> {
        self.ready.last().map(|ready| &ready.session)
    }

    /// The session for inputs of these types and shapes, which is made if it is not ready.
    ///
    /// # Errors
    /// The input variants of [`SessionError`], [`SessionError::Specialize`], or as [`Session::on`].
    pub fn session_for(&mut self, inputs: &[TensorRef]) -> Result<&mut Session, SessionError> {
        Ok(&mut self.ready_for(inputs)?.session)
    }

    fn ready_for(&mut self, inputs: &[TensorRef]) -> Result<&mut Ready, SessionError> {
        match self.ready.iter().rposition(|ready| ready.session.takes(inputs)) {
            Some(at) if at + 1 == self.ready.len() => {}
            Some(at) => self.ready[at..].rotate_left(1),
            // The only session says what is wrong with the inputs.
            None if self.source.is_none() => {}
            None => self.specialize(inputs)?,
        }
        self.ready.last_mut().ok_or(SessionError::Busy)
    }

    /// Runs the model once on inputs in its order.
    ///
    /// # Errors
    /// As [`Session::run`] and [`DynamicSession::session_for`].
    pub fn run(&mut self, inputs: &[Tensor]) -> Result<(Vec<Tensor>, RunReport), SessionError> {
        let larger = self.larger(&refs(inputs), Given::Elements)?;
        let Some(larger) = larger else { return self.session_for(&refs(inputs))?.run(inputs) };
        let padded = larger.pad(&refs(inputs));
        let (outputs, report) = self.session_for(&refs(&padded))?.run(&padded)?;
        Ok((larger.cut(outputs), report))
    }

    /// The shapes to which these inputs are padded, if they are; the model is then ready for them, so that the system has
    /// the memory.
    fn larger(&mut self, inputs: &[TensorRef], given: Given) -> Result<Option<Larger>, SessionError> {
        let Some(source) = &self.source else { return Ok(None) };
        if self.ready.iter().any(|ready| ready.session.takes(inputs)) {
            return Ok(None);
        }
        self.check(inputs, given)?;
        let larger = source.larger(&inputs.iter().map(|tensor| tensor.shape).collect::<Vec<_>>());
        if let Some(larger) = &larger {
            let pairs = larger.shapes.iter().zip(inputs);
            let padded: Vec<_> =
                pairs.map(|(shape, input)| TensorRef { dtype: input.dtype, shape, bytes: &[] }).collect();
            self.ready_for(&padded)?;
        }
        Ok(larger)
    }

    /// Makes the model ready for inputs of these types and shapes, and describes it: its outputs have the shapes that
    /// [`DynamicSession::run`] returns.
    ///
    /// # Errors
    /// As [`DynamicSession::session_for`].
    pub fn description_for(&mut self, inputs: &[TensorRef]) -> Result<Manifest, SessionError> {
        let Some(larger) = self.larger(inputs, Given::Shapes)? else {
            return Ok(self.session_for(inputs)?.artifact().manifest.clone());
        };
        let mut manifest = self.last().map(|session| session.artifact().manifest.clone()).ok_or(SessionError::Busy)?;
        for (place, id) in manifest.outputs.clone().into_iter().enumerate() {
            let shape = &mut manifest.values[id.0 as usize].shape;
            *shape = larger.kept_shape(place, shape);
        }
        Ok(manifest)
    }

    /// Submits a frame, which is computed beside those that were submitted before; see [`Frames::submit`].
    ///
    /// # Errors
    /// As [`Frames::new`], [`Frames::submit`] and [`DynamicSession::session_for`].
    pub fn submit(&mut self, inputs: Vec<Tensor>) -> Result<Pending, SessionError> {
        if let Some(larger) = self.larger(&refs(&inputs), Given::Elements)? {
            let padded = larger.pad(&refs(&inputs));
            return Ok(self.submit(padded)?.keeping(larger));
        }
        let most = self.frames;
        let ready = self.ready_for(&refs(&inputs))?;
        let frames = match &mut ready.frames {
            Some(frames) => frames,
            none => none.insert(Frames::new(&ready.session, most)?),
        };
        frames.submit(inputs)
    }

    /// Like [`DynamicSession::run`], but on the caller's memory.
    ///
    /// # Errors
    /// As [`Session::run_into`] and [`DynamicSession::session_for`].
    pub fn run_into(&mut self, inputs: &[TensorRef], outputs: &mut [TensorMut]) -> Result<RunReport, SessionError> {
        let larger = self.larger(inputs, Given::Elements)?;
        let Some(larger) = larger else { return self.session_for(inputs)?.run_into(inputs, outputs) };
        let padded = larger.pad(inputs);
        let session = self.session_for(&refs(&padded))?;
        session.check_outputs(outputs, |place, shape| larger.kept_shape(place, shape))?;
        let (found, report) = session.run(&padded)?;
        for (output, found) in outputs.iter_mut().zip(larger.cut(found)) {
            output.bytes.copy_from_slice(&found.bytes);
        }
        Ok(report)
    }

    fn specialize(&mut self, inputs: &[TensorRef]) -> Result<(), SessionError> {
        self.check(inputs, Given::Shapes)?;
        let Some(source) = &self.source else { return Ok(()) };
        let shapes: Vec<&[usize]> = inputs.iter().map(|tensor| tensor.shape).collect();
        let wrong = |reason: String| SessionError::Specialize {
            model: source.name().to_string(),
            shapes: shapes.iter().map(|shape| shape_text(shape)).collect::<Vec<_>>().join(" and "),
            reason,
        };
        let artifact = source.specialize(inputs).map_err(|error| wrong(error.to_string()))?;
        while self.ready.len() >= self.kept {
            self.ready.remove(0);
        }
        let session = loop {
            match Session::on(artifact.clone(), &self.functions, self.device.clone()) {
                // The memory of shapes that were used before is perhaps enough.
                Err(SessionError::Accel { source: DriverError::DoesNotFit { .. }, .. }) if !self.ready.is_empty() => {
                    self.ready.remove(0);
                }
                done => break done?,
            }
        };
        if !session.takes(inputs) {
            let found = session.artifact().manifest.input_values().into_iter().map(|value| shape_text(&value.shape));
            let found = found.collect::<Vec<_>>().join(" and ");
            return Err(wrong(format!("it was compiled for {found} instead")));
        }
        self.ready.push(Ready { session, frames: None });
        self.made += 1;
        Ok(())
    }

    /// Checks inputs against what is known of the model's.
    fn check(&self, given: &[TensorRef], what: Given) -> Result<(), SessionError> {
        if self.inputs.len() != given.len() {
            let names = self.inputs.iter().map(|input| input.name.clone()).collect();
            return Err(SessionError::InputCount { given: given.len(), names });
        }
        let mut sizes = std::collections::HashMap::new();
        for (input, tensor) in self.inputs.iter().zip(given) {
            let name = || input.name.clone();
            if input.dtype != tensor.dtype {
                return Err(SessionError::InputType { name: name(), found: tensor.dtype, wanted: input.dtype });
            }
            let bytes = tensor.shape.iter().try_fold(tensor.dtype.size(), |bytes, size| bytes.checked_mul(*size));
            let whole = what == Given::Shapes && tensor.bytes.is_empty() || bytes == Some(tensor.bytes.len());
            let suits = whole
                && input.dims.len() == tensor.shape.len()
                && input.dims.iter().zip(tensor.shape).all(|(dim, size)| match dim.size() {
                    Some(known) => known == *size,
                    None => *size > 0 && *sizes.entry(dim).or_insert(*size) == *size,
                });
            if !suits {
                // A name with another size in an earlier dimension is written with that size.
                let wanted = input.dims.iter().enumerate().map(|(axis, dim)| match sizes.get(dim) {
                    Some(size) if tensor.shape.get(axis).is_some_and(|given| given != size) => format!("{dim}={size}"),
                    _ => dim.to_string(),
                });
                let mut wanted = wanted.collect::<Vec<_>>().join("x");
                if let Some(axis) = tensor.shape.iter().position(|size| *size == 0) {
                    wanted = format!("{wanted}, and dimension {axis} has no elements");
                }
                return Err(SessionError::OpenShape { name: name(), found: tensor.shape.to_vec(), wanted });
            }
        }
        Ok(())
    }
}

impl From<Session> for DynamicSession {
    /// A session for the one shape that this one has.
    fn from(session: Session) -> DynamicSession {
        DynamicSession {
            source: None,
            inputs: session.artifact().inputs(),
            functions: Registry::new(),
            device: None,
            ready: vec![Ready { session, frames: None }],
            kept: 1,
            frames: FRAMES,
            made: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::{BlobId, Bucket, Dim, Step, StepKind, ValueId, ValueInfo};
    use crate::function::Function;
    use crate::tensor::DType;

    /// `y` is the function `len` of `x`, whose shape has one open size; the constant is the same for all.
    fn of_length(len: usize) -> Artifact {
        let value = |name: &str, shape: &[usize], constant: Option<u32>| ValueInfo {
            constant: constant.map(BlobId),
            ..ValueInfo::new(name, DType::I8, shape.to_vec())
        };
        let add = StepKind::Packed { function: "sum".into(), attributes: Default::default() };
        let step =
            Step { name: "sum".into(), kind: add, inputs: vec![ValueId(0), ValueId(1)], outputs: vec![ValueId(2)] };
        let manifest = Manifest {
            values: vec![value("x", &[2, len], None), value("w", &[4], Some(0)), value("y", &[1], None)],
            inputs: vec![ValueId(0)],
            outputs: vec![ValueId(2)],
            steps: vec![step],
            ..Manifest::new("sum", "test")
        };
        Artifact::new("sum", manifest, vec![vec![1, 2, 3, 4]]).unwrap()
    }

    fn open_input() -> Vec<OpenValue> {
        let dims = vec![Dim::Size(2), Dim::Symbol("length".into())];
        vec![OpenValue { name: "x".into(), dtype: DType::I8, dims }]
    }

    fn functions() -> Registry {
        let functions = Registry::new();
        functions.add(Function::new("sum", |args| {
            let sum: u8 = args.tensors(0)?.iter().flat_map(|t| t.bytes.iter()).sum();
            Ok(Tensor { dtype: DType::I8, shape: vec![1], bytes: vec![sum].into() }.into())
        }));
        functions
    }

    fn ones(len: usize) -> [Tensor; 1] {
        [Tensor::from_i8(vec![2, len], &vec![1; 2 * len]).unwrap()]
    }

    #[test]
    fn an_artifact_of_several_shapes_runs_each_and_stores_blobs_once() {
        let artifact = Artifact::of_shapes(open_input(), &[of_length(3), of_length(5), of_length(3)]).unwrap();
        assert_eq!((artifact.manifest.variants.len(), artifact.blob_bytes()), (1, 4));
        let artifact = Artifact::decode("sum", &artifact.encode()).unwrap();
        assert_eq!(artifact.inputs(), open_input());
        let mut session = DynamicSession::of_artifact(artifact, &functions(), None).unwrap();
        for len in [5, 3, 5] {
            let (outputs, _) = session.run(&ones(len)).unwrap();
            assert_eq!(outputs[0].bytes.as_ref(), [2 * len as u8 + 10]);
        }
        assert_eq!(session.specialized(), 2);

        let wrong = |session: &mut DynamicSession, inputs: &[Tensor]| session.run(inputs).unwrap_err().to_string();
        let unknown = "sum for inputs of 2x4: it has the model for 2x3, 2x5; compile it with --shapes for others";
        assert_eq!(wrong(&mut session, &ones(4)), unknown);
        let rows = Tensor::from_i8(vec![3, 3], &[0; 9]).unwrap();
        assert_eq!(wrong(&mut session, &[rows]), "input x has shape 3x3, but the model expects 2xlength");
        assert_eq!(wrong(&mut session, &[]), "0 inputs given, but the model has 1: x");
    }

    #[test]
    fn elements_are_missing_only_where_shapes_count() {
        let mut parts = [of_length(3), of_length(5)];
        for part in &mut parts {
            part.manifest.buckets = vec![Bucket { symbol: "length".into(), outputs: vec![None] }];
        }
        let artifact = Artifact::of_shapes(open_input(), &parts).unwrap();
        let mut session = DynamicSession::of_artifact(artifact, &functions(), None).unwrap();
        let given = ones(4);
        let empty = Tensor { bytes: Default::default(), ..given[0].clone() };
        let only_shape = TensorRef { bytes: &[], ..refs(&given)[0] };
        assert_eq!(session.description_for(&[only_shape]).unwrap().values[0].shape, [2, 5]);
        let wrong = "input x has shape 2x4, but the model expects 2xlength";
        assert_eq!(session.run(std::slice::from_ref(&empty)).unwrap_err().to_string(), wrong);
        assert_eq!(session.run_into(&[only_shape], &mut []).unwrap_err().to_string(), wrong);
        assert_eq!(session.submit(vec![empty]).err().unwrap().to_string(), wrong);
        assert_eq!(session.run(&given).unwrap().0[0].bytes.as_ref(), [18]);
    }

    /// Counts what it compiles.
    struct Any(Vec<OpenValue>, std::sync::Arc<std::sync::Mutex<Vec<usize>>>);

    impl Specialize for Any {
        fn name(&self) -> &str {
            "any"
        }

        fn inputs(&self) -> &[OpenValue] {
            &self.0
        }

        fn specialize(&self, inputs: &[TensorRef]) -> Result<Artifact, AnyError> {
            let len = inputs[0].shape[1];
            self.1.lock().unwrap().push(len);
            if len == 7 { Err("node `sum`: 7 elements are not possible".into()) } else { Ok(of_length(len)) }
        }
    }

    #[test]
    fn the_shapes_that_were_used_lately_stay_ready() {
        let compiled = std::sync::Arc::default();
        let source = Any(open_input(), std::sync::Arc::clone(&compiled));
        let session = DynamicSession::new(Box::new(source), &functions(), None);
        let mut session = session.keeping(NonZeroUsize::new(2).unwrap());
        for len in [1, 2, 1, 3, 1, 2] {
            let (outputs, _) = session.run(&ones(len)).unwrap();
            assert_eq!(outputs[0].bytes.as_ref(), [2 * len as u8 + 10]);
        }
        assert_eq!(*compiled.lock().unwrap(), [1, 2, 3, 2]);
        let failed = session.run(&ones(7)).unwrap_err().to_string();
        assert_eq!(failed, "any for inputs of 2x7: node `sum`: 7 elements are not possible");
        session.run(&ones(2)).unwrap();
        assert_eq!(compiled.lock().unwrap().len(), 5, "a failure takes no place");
    }

    #[test]
    fn variants_of_other_models_are_refused() {
        let mut other = of_length(5);
        other.manifest.values[0].name = "z".into();
        let other = other.with_manifest(other.manifest.clone()).unwrap();
        let e = Artifact::of_shapes(open_input(), &[of_length(3), other]).unwrap_err().to_string();
        assert!(e.contains("variant 0 is of another model or of other hardware"), "{e}");
        let mut open = open_input();
        open[0].dims[0] = Dim::Size(4);
        let e = Artifact::of_shapes(open, &[of_length(3)]).unwrap_err().to_string();
        assert!(e.contains("the inputs with open sizes are not those of the model"), "{e}");
    }
}
