//! The host as LLVM's target.

use std::sync::OnceLock;

use inkwell::OptimizationLevel;
use inkwell::attributes::AttributeLoc;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine};
use inkwell::values::FunctionValue;

use crate::EmitError;

/// Processor and features of the machine that compiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Target triple.
    pub triple: String,
    /// Processor.
    pub cpu: String,
    /// Features, each with its sign, separated by commas.
    pub features: String,
}

impl Host {
    /// The machine that this runs on.
    ///
    /// # Errors
    /// Where LLVM has no code generator for it.
    pub fn detect() -> Result<Host, EmitError> {
        static READY: OnceLock<Result<(), String>> = OnceLock::new();
        READY
            .get_or_init(|| Target::initialize_native(&InitializationConfig::default()))
            .clone()
            .map_err(EmitError::Llvm)?;
        let triple = TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned();
        if !triple.starts_with("x86_64") {
            return Err(EmitError::Program(format!("CPU code is made for x86-64 only, this machine is {triple}")));
        }
        let cpu = TargetMachine::get_host_cpu_name().to_string();
        Ok(Host { triple, cpu, features: TargetMachine::get_host_cpu_features().to_string() })
    }

    /// Whether the processor has an extension of its instructions, by LLVM's name.
    pub fn has(&self, feature: &str) -> bool {
        self.features.split(',').any(|f| f.strip_prefix('+') == Some(feature))
    }

    fn machine(&self) -> Result<TargetMachine, EmitError> {
        let triple = inkwell::targets::TargetTriple::create(&self.triple);
        let target = Target::from_triple(&triple)?;
        target
            .create_target_machine(
                &triple,
                &self.cpu,
                &self.features,
                OptimizationLevel::Aggressive,
                RelocMode::PIC,
                CodeModel::Small,
            )
            .ok_or_else(|| EmitError::Llvm(format!("no code generator for {}", self.cpu)))
    }

    /// Names the processor and its features on a function; without them LLVM may take others.
    pub fn mark(&self, context: &Context, f: FunctionValue<'_>) {
        for (key, value) in [("target-cpu", &self.cpu), ("target-features", &self.features)] {
            f.add_attribute(AttributeLoc::Function, context.create_string_attribute(key, value));
        }
        let nounwind = inkwell::attributes::Attribute::get_named_enum_kind_id("nounwind");
        f.add_attribute(AttributeLoc::Function, context.create_enum_attribute(nounwind, 0));
    }

    /// Optimises a module and makes a position-independent object of it.
    ///
    /// # Errors
    /// When the module is not well formed, or LLVM refuses it.
    pub fn object(&self, module: &Module<'_>) -> Result<Vec<u8>, EmitError> {
        let machine = self.machine()?;
        module.set_triple(&machine.get_triple());
        module.set_data_layout(&machine.get_target_data().get_data_layout());
        module.verify()?;
        let options = PassBuilderOptions::create();
        options.set_loop_vectorization(true);
        options.set_loop_slp_vectorization(true);
        options.set_loop_unrolling(true);
        module.run_passes("default<O3>", &machine, options)?;
        let buffer = machine.write_to_memory_buffer(module, FileType::Object)?;
        Ok(buffer.as_slice().to_vec())
    }
}
