//! Models that are compiled for several sizes of their open dimensions, into one artifact.

use std::collections::BTreeMap;

use anyhow::{Context, Error, Result};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::Artifact;

use super::{CompileRequest, Compiled, DumpIr, ImportOptions, ModelFile, buckets, open_inputs};
use crate::device::DeviceKind;

/// Sizes to compile a model for.
#[derive(Debug, Clone, Default)]
pub struct Shapes {
    /// Sizes of open dimensions, by symbol. The model is compiled for all combinations; the first symbol changes last.
    pub sizes: Vec<(String, Vec<usize>)>,
    /// Let inputs of other sizes be padded to the next larger one.
    pub bucket: bool,
}

impl Shapes {
    /// Checks that each symbol has sizes, and none in `import`.
    ///
    /// # Errors
    /// The first that is wrong, as text.
    pub fn check(&self, import: &ImportOptions) -> Result<(), String> {
        for (symbol, sizes) in &self.sizes {
            if sizes.is_empty() {
                return Err(format!("shapes gives no size of {symbol}; give one or more"));
            }
            if import.sizes.symbols.contains_key(symbol) {
                return Err(format!("bind and shapes both give sizes of {symbol}; leave one of them out"));
            }
        }
        if self.bucket && self.sizes.is_empty() {
            return Err("bucket pads to the sizes of shapes; give shapes too".into());
        }
        Ok(())
    }

    /// All combinations of the sizes.
    fn combinations(&self) -> Vec<BTreeMap<String, usize>> {
        self.sizes.iter().fold(vec![BTreeMap::new()], |combinations, (symbol, sizes)| {
            let with = |known: &BTreeMap<String, usize>, size: usize| {
                known.iter().map(|(name, size)| (name.clone(), *size)).chain([(symbol.clone(), size)]).collect()
            };
            combinations.iter().flat_map(|known| sizes.iter().map(move |size| with(known, *size))).collect()
        })
    }
}

impl CompileRequest {
    /// Reads a model file and compiles it for each combination of sizes, into one artifact. `import` has the sizes of
    /// the other open dimensions. Without sizes it is compiled once, as by [`CompileRequest::compile_file`].
    ///
    /// # Errors
    /// The same as [`CompileRequest::compile_file`]; a symbol without sizes, or that `import` binds too; and a size
    /// that cannot be padded, with the operator that is in the way.
    pub fn compile_shapes(
        &self,
        file: &ModelFile,
        import: &ImportOptions,
        shapes: &Shapes,
        config: &HwConfig,
        device: DeviceKind,
        dump: &mut DumpIr,
    ) -> Result<Compiled> {
        if shapes.sizes.is_empty() {
            return self.compile_file(file, import, config, device, dump);
        }
        shapes.check(import).map_err(Error::msg)?;
        let inputs = open_inputs(file)?;
        let mut artifacts: Vec<Artifact> = Vec::new();
        let mut all: Option<Compiled> = None;
        for (number, sizes) in shapes.combinations().into_iter().enumerate() {
            let mut import = import.clone();
            import.sizes.data.clear();
            import.sizes.symbols.extend(sizes.clone());
            // The code of all shapes can be linked together.
            let prefix = self.symbols.as_deref().unwrap_or("tw");
            let symbols = if number == 0 { self.symbols.clone() } else { Some(format!("{prefix}_s{number}")) };
            let request = CompileRequest { symbols, ..self.clone() };
            let mut compiled = request.compile_file(file, &import, config, device, dump)?;
            if shapes.bucket {
                compiled.artifact.manifest.buckets = buckets(file, import, &inputs, &sizes)?;
            }
            artifacts.push(compiled.artifact.clone());
            match &mut all {
                None => all = Some(compiled),
                Some(all) => {
                    all.replay.add(compiled.replay);
                    all.load_s += compiled.load_s;
                    all.compile_s += compiled.compile_s;
                }
            }
        }
        let all = all.context("the model was not compiled")?;
        Ok(Compiled { artifact: Artifact::of_shapes(inputs, &artifacts)?, ..all })
    }
}
