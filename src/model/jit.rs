//! Models that are compiled when the shapes of their inputs are first seen.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sha2::{Digest, Sha256};
use tilewright_compiler::frontend;
use tilewright_compiler::graph::{Dim, TensorType};
use tilewright_compiler::passes::any_added;
use tilewright_compiler::records::OtherShapes;
use tilewright_driver::StreamCache;
use tilewright_hw::cache;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{self, Artifact, Larger, OpenValue};
use tilewright_runtime::files::write_whole;
use tilewright_runtime::function::AnyError;
use tilewright_runtime::session::Specialize;
use tilewright_runtime::tensor::{DType, TensorRef};

use super::request::{Prepared, describe};
use super::{CompileRequest, Datum, ImportOptions, ModelError, ModelFile, Options, Sizes, build, import_traced};
use crate::device::DeviceKind;

/// A model's inputs, with the sizes that its file leaves open.
///
/// # Errors
/// [`ModelError`], which names the file.
pub fn open_inputs(file: &Path) -> Result<Vec<OpenValue>, ModelError> {
    Ok(open_values(frontend::open_inputs(file)?))
}

fn open_values(inputs: Vec<(String, TensorType)>) -> Vec<OpenValue> {
    let value = |(name, ty): (String, TensorType)| {
        let dims = ty.dims.iter().map(|dim| match dim {
            Dim::Fixed(size) => artifact::Dim::Size(*size),
            Dim::Symbol(symbol) => artifact::Dim::Symbol(symbol.clone()),
        });
        // The runtime has all of the graph's element types.
        let dtype = DType::from_name(ty.dtype.name()).unwrap_or(DType::F32);
        OpenValue { name, dtype, dims: dims.collect() }
    };
    inputs.into_iter().map(value).collect()
}

/// The part of an artifact for data of these shapes; an artifact for one shape is its own part. If no shape is that of
/// the data, the first shape that differs only in its outermost dimension is used, since data can hold several runs.
/// Otherwise, data of one run can be padded to a larger shape, where the artifact allows it; then that is returned
/// too.
///
/// # Errors
/// [`ModelError::Shapes`] if the artifact does not have the model for such data.
pub fn for_data(artifact: Artifact, data: &[Datum]) -> Result<(Artifact, Option<Larger>), ModelError> {
    if artifact.manifest.variants.is_empty() {
        return Ok((artifact, None));
    }
    let wrong = |reason: String| ModelError::Shapes { file: artifact.path.clone(), reason };
    let inputs = artifact.inputs();
    let dim = |dim: &artifact::Dim| match dim {
        artifact::Dim::Size(size) => Dim::Fixed(*size),
        artifact::Dim::Symbol(name) => Dim::Symbol(name.clone()),
    };
    let dtype = |dtype: DType| tilewright_compiler::graph::DType::from_name(dtype.name());
    let ty =
        |input: &OpenValue| Some(TensorType { dtype: dtype(input.dtype)?, dims: input.dims.iter().map(dim).collect() });
    let types: Vec<TensorType> = inputs.iter().filter_map(ty).collect();
    let named: Vec<(&str, &TensorType)> = inputs.iter().map(|input| input.name.as_str()).zip(&types).collect();
    let given = Sizes { data: data.to_vec(), ..Sizes::default() }.given(&named).map_err(wrong)?;
    let shapes = artifact
        .manifest
        .of_each_shape()
        .map(|manifest| manifest.input_values().into_iter().map(|value| value.shape.as_slice()).collect::<Vec<_>>());
    let suits = |shapes: &Vec<&[usize]>| {
        let mut sizes = inputs.iter().zip(shapes).flat_map(|(input, shape)| input.dims.iter().zip(*shape));
        sizes.all(|(dim, size)| match dim {
            artifact::Dim::Symbol(name) => given.get(name).is_none_or(|given| given == size),
            artifact::Dim::Size(known) => known == size,
        })
    };
    let all: Vec<Vec<&[usize]>> = shapes.collect();
    let exact = |shapes: &&Vec<&[usize]>| {
        data.iter().all(|Datum { name, shape: given, .. }| {
            let mut named = inputs.iter().zip(shapes.iter());
            named.any(|(input, shape)| name.as_ref().is_none_or(|name| *name == input.name) && shape == given)
        })
    };
    // Data of several runs: the first dimension has that of the model several times.
    let whole = |shapes: &&Vec<&[usize]>| {
        let runs = |(shape, given): (&&[usize], &Vec<usize>)| match (shape.first(), given.first()) {
            (Some(one), Some(all)) => *one > 0 && all % one == 0,
            _ => true,
        };
        shapes.iter().zip(data.iter().map(|data| &data.shape)).all(runs)
    };
    let suitable: Vec<&Vec<&[usize]>> = all.iter().filter(|shapes| suits(shapes)).collect();
    let best = suitable.iter().copied().find(exact).or(suitable.iter().copied().find(whole));
    let part = |shapes: Option<&Vec<&[usize]>>| shapes.and_then(|shapes| artifact.for_shapes(shapes));
    if let Some(found) = part(best) {
        return Ok((found, None));
    }
    let named = |input: &OpenValue| data.iter().position(|data| data.name.as_ref() == Some(&input.name));
    let mut unnamed = (0..data.len()).filter(|at| data[*at].name.is_none());
    let places: Option<Vec<usize>> = inputs.iter().map(|input| named(input).or_else(|| unnamed.next())).collect();
    let larger =
        places.and_then(|places| artifact.larger(&places.iter().map(|at| &*data[*at].shape).collect::<Vec<_>>()));
    let padded = larger.and_then(|larger| {
        let shapes: Vec<&[usize]> = larger.shapes.iter().map(Vec::as_slice).collect();
        Some((artifact.for_shapes(&shapes)?, Some(larger)))
    });
    // `Session::run` reports what is wrong with the data.
    padded.or_else(|| Some((part(suitable.first().copied())?, None))).ok_or_else(|| {
        let given = given.iter().map(|(name, size)| format!("{name}={size}")).collect::<Vec<_>>().join(", ");
        wrong(format!("is not for {given}: {}", artifact.known_shapes()))
    })
}

/// Prefix of compiled models' names in the cache folder.
const PREFIX: &str = "shape-";

/// A key as text.
fn hex(key: &[u8]) -> String {
    key[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How many shapes are kept in memory.
const KEPT: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// A model file that is compiled for each shape of its inputs when it is first seen. What was compiled is kept in memory
/// for the shapes used lately, and in the user's cache folder under a key of everything that it depends on.
pub struct Jit {
    file: ModelFile,
    name: String,
    inputs: Vec<OpenValue>,
    import: ImportOptions,
    request: CompileRequest,
    config: HwConfig,
    prepared: Prepared,
    /// Plans of the first shape.
    first: OtherShapes,
    /// The artifact of the shape that came first, whose weights the others share.
    weights: OnceLock<Artifact>,
    /// Names of the inputs whose values the model needs; it is compiled for each value.
    valued: Mutex<BTreeSet<String>>,
    /// Hash of the program, the model's bytes and the options.
    key: Vec<u8>,
    /// Hash of the model's bytes.
    model: Vec<u8>,
    kept: StreamCache<Artifact>,
    folder: Option<PathBuf>,
}

impl CompileRequest {
    /// A model file that is compiled for a device when its session sees a shape. Sizes of symbols in `import` are the same
    /// for all shapes; its other sizes are not used.
    ///
    /// # Errors
    /// The file cannot be read, a symbol is not in it, or options contradict the device.
    pub fn jit(
        &self,
        file: &ModelFile,
        import: impl Into<ImportOptions>,
        config: &HwConfig,
        device: DeviceKind,
    ) -> anyhow::Result<Jit> {
        let prepared = self.prepare(config, device)?;
        let mut import = import.into();
        import.sizes = Sizes { symbols: import.sizes.symbols, ..Sizes::default() };
        let open = frontend::open_inputs(file)?;
        let types: Vec<_> = open.iter().map(|(name, ty)| (name.as_str(), ty)).collect();
        let name = file.display().to_string();
        let wrong = |reason| ModelError::Shapes { file: name.clone(), reason };
        let given = import.sizes.given(&types).map_err(wrong)?;
        let mut inputs = open_values(open);
        for dim in inputs.iter_mut().flat_map(|input| &mut input.dims) {
            let size = if let artifact::Dim::Symbol(symbol) = &dim { given.get(symbol) } else { None };
            *dim = size.map_or_else(|| dim.clone(), |size| artifact::Dim::Size(*size));
        }
        let bytes =
            std::fs::read(&**file).map_err(|source| frontend::ImportError::Read { file: name.clone(), source })?;
        let options = format!("{import:?} {:?}", self.options(config, &prepared));
        let parts = [env!("TILEWRIGHT_SOURCES").as_bytes(), &bytes, options.as_bytes()];
        let mut sha = Sha256::new();
        parts.map(Sha256::digest).iter().for_each(|part| sha.update(part));
        let jit = Jit {
            file: file.clone(),
            name,
            inputs,
            import,
            request: self.clone(),
            config: config.clone(),
            prepared,
            first: OtherShapes::default(),
            weights: OnceLock::new(),
            valued: Mutex::default(),
            key: sha.finalize().to_vec(),
            model: Sha256::digest(&bytes).to_vec(),
            kept: StreamCache::new(KEPT),
            folder: None,
        };
        // A key of the file's bytes says nothing of data in other files.
        Ok(jit.with_cache(cache::folder().filter(|_| !frontend::has_external_data(&bytes))))
    }
}

impl Jit {
    /// Keeps what is compiled in this folder, or only in memory.
    #[must_use]
    pub fn with_cache(mut self, folder: Option<PathBuf>) -> Jit {
        let names = folder.as_deref().and_then(|folder| std::fs::read_to_string(self.names_of_valued(folder)).ok());
        self.valued = Mutex::new(names.iter().flat_map(|names| names.lines()).map(str::to_owned).collect());
        self.folder = folder;
        self
    }

    /// The key of what is compiled for inputs: of their shapes, and of the values that the model needs.
    fn key_of(&self, inputs: &[TensorRef]) -> Vec<u8> {
        let mut sha = Sha256::new_with_prefix(&self.key);
        let valued = self.valued.lock().unwrap_or_else(PoisonError::into_inner);
        for (input, open) in inputs.iter().zip(&self.inputs) {
            sha.update((input.shape.len() as u64).to_le_bytes());
            input.shape.iter().for_each(|size| sha.update((*size as u64).to_le_bytes()));
            if valued.contains(&open.name) {
                sha.update(input.bytes);
            }
        }
        sha.finalize().to_vec()
    }

    /// The file of the cache folder with the names of the inputs whose values the model needs.
    fn names_of_valued(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{PREFIX}{}-values", hex(&self.key)))
    }

    /// Adds inputs to those whose values the model needs.
    fn needs_values(&self, artifact: &Artifact, folder: Option<&Path>) {
        let fixed = artifact.manifest.input_values().into_iter().filter(|value| value.fixed.is_some());
        let mut valued = self.valued.lock().unwrap_or_else(PoisonError::into_inner);
        let known = valued.len();
        valued.extend(fixed.map(|value| value.name.clone()));
        if let Some(folder) = folder.filter(|_| valued.len() > known) {
            // Nothing depends on the cache, so errors are ignored.
            let names = valued.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
            let _ = write_whole(&self.names_of_valued(folder), &[names.as_bytes()]);
        }
    }

    /// The model compiled for these inputs, from memory, from the cache folder, or compiled now.
    fn compiled(&self, inputs: &[TensorRef]) -> Result<Arc<Artifact>, ModelError> {
        let shapes: Vec<&[usize]> = inputs.iter().map(|input| input.shape).collect();
        let key = self.key_of(inputs);
        self.kept.get(&self.config, &key, || {
            // A key says nothing of passes that the program added.
            let folder = self.folder.as_ref().filter(|_| !any_added());
            let path = |key: &[u8]| folder.map(|folder| folder.join(format!("{PREFIX}{}", hex(key))));
            let is_for = |known: &Artifact| {
                let mut fixed =
                    known.manifest.input_values().into_iter().map(|value| value.fixed.as_deref()).zip(inputs);
                known.inputs_have(&shapes) && fixed.all(|(fixed, input)| fixed.is_none_or(|fixed| fixed == input.bytes))
            };
            let known = path(&key).and_then(|path| Some((Artifact::read(&path).ok().filter(is_for)?, path)));
            if let Some((mut known, path)) = known {
                cache::touch(&path);
                known.path.clone_from(&self.name);
                return Ok(self.with_shared_weights(known));
            }
            let mut import = self.import.clone();
            import.sizes.symbols.clear();
            let named = || self.inputs.iter().map(|input| input.name.clone());
            import.sizes.inputs = named().zip(shapes.iter().map(|shape| shape.to_vec())).collect();
            // A model that needs no values is not told any.
            import.sizes.data = named().zip(inputs).map(|(name, input)| Datum::of(Some(name), *input)).collect();
            let mut artifact = self.compile(import)?;
            artifact.path.clone_from(&self.name);
            self.needs_values(&artifact, folder.map(PathBuf::as_path));
            // Nor of what is written into the file meanwhile.
            let is_same =
                || std::fs::read(&*self.file).is_ok_and(|bytes| Sha256::digest(bytes).as_slice() == self.model);
            if let (Some(folder), Some(path)) = (folder, path(&self.key_of(inputs)).filter(|_| is_same())) {
                // Nothing depends on the cache, so errors are ignored.
                let _ = std::fs::create_dir_all(folder);
                cache::remove_unused(folder, PREFIX);
                let _ = artifact.write(&path);
            }
            Ok(self.with_shared_weights(artifact))
        })
    }

    fn with_shared_weights(&self, artifact: Artifact) -> Artifact {
        let artifact = match self.weights.get() {
            Some(first) => artifact.sharing(first),
            None => artifact,
        };
        self.weights.get_or_init(|| artifact.clone());
        artifact
    }

    fn compile(&self, import: ImportOptions) -> Result<Artifact, ModelError> {
        let (graph, sources) = import_traced(&self.file, import)?;
        let known = self.request.options(&self.config, &self.prepared);
        let options = Options { any_shape: true, other_shapes: Some(&self.first), ..known };
        let mut artifact = build(graph, &options, &mut |_, _| {})?;
        describe(&mut artifact, &self.file, &sources)?;
        Ok(artifact)
    }
}

impl Specialize for Jit {
    fn name(&self) -> &str {
        &self.name
    }

    fn inputs(&self) -> &[OpenValue] {
        &self.inputs
    }

    fn specialize(&self, inputs: &[TensorRef]) -> Result<Artifact, AnyError> {
        Ok(self.compiled(inputs)?.as_ref().clone())
    }
}
