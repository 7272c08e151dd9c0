//! Processors as LLVM targets: this machine, and others by name ([`names`]).

mod names;

use std::sync::OnceLock;

use inkwell::attributes::AttributeLoc;
use inkwell::context::Context;
use inkwell::module::{FlagBehavior, Linkage, Module};
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine};
use inkwell::values::{FunctionValue, GlobalValue};
use inkwell::{AddressSpace, OptimizationLevel};

use tilewright_compiler::records::Workload;

use crate::EmitError;
pub use names::{Known, known};

/// A kind of instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64.
    X86,
    /// 64-bit Arm.
    Arm,
    /// 32-bit Arm.
    Arm32,
    /// 64-bit RISC-V.
    RiscV,
    /// WebAssembly with 32-bit addresses.
    Wasm,
}

/// A processor to generate code for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processor {
    /// Target triple.
    pub triple: String,
    /// LLVM's processor name, which selects the instructions used.
    pub cpu: String,
    /// Features, each with its sign, separated by commas.
    pub features: String,
    /// The processor to schedule instructions for, if different.
    pub tuned_for: Option<String>,
}

impl Processor {
    /// Returns this machine's processor.
    ///
    /// # Errors
    /// If there is no code generator for it.
    pub fn detect() -> Result<Processor, EmitError> {
        let triple = TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned();
        if Architecture::of(&triple).is_none() {
            let known = names::triples().join(", ");
            return Err(EmitError::Program(format!("CPU code is available for {known}, but this machine is {triple}")));
        }
        ready()?;
        let cpu = TargetMachine::get_host_cpu_name().to_string();
        let features = TargetMachine::get_host_cpu_features().to_string();
        Ok(Processor { triple, cpu, features, tuned_for: None })
    }

    /// Identifies the processor in a log of `tune`, by all that selects instructions.
    pub fn key(&self) -> String {
        let tuned_for = self.tuned_for.as_deref().unwrap_or_default();
        Workload::new(&format!("cpu {} {} {} {tuned_for}", self.triple, self.cpu, self.features)).hash
    }

    /// Returns its architecture.
    pub fn architecture(&self) -> Architecture {
        // `detect` and `named` create only these.
        Architecture::of(&self.triple).unwrap_or(Architecture::X86)
    }

    /// Returns whether the processor has a feature, by LLVM's name.
    pub fn has(&self, feature: &str) -> bool {
        self.features.split(',').any(|f| f.strip_prefix('+') == Some(feature))
    }

    /// Returns whether this machine can run its code.
    pub fn runs_here(&self) -> bool {
        let plus = |features: &str| -> Vec<String> {
            features.split(',').filter(|f| f.starts_with('+')).map(str::to_string).collect()
        };
        Processor::detect().is_ok_and(|own| {
            let have = plus(&own.features);
            own.architecture() == self.architecture() && plus(&self.features).iter().all(|f| have.contains(f))
        })
    }

    /// Returns the processor for a function that computes with floats, or with integers alone. On 32-bit Arm, vectors of
    /// floats take the smallest numbers as 0, so only functions of integers use vectors.
    pub fn for_function(&self, floats: bool) -> Processor {
        let mut own = self.clone();
        if floats && self.architecture() == Architecture::Arm32 {
            own.features = self.features.replace("+neon", "-neon");
        }
        own
    }

    fn machine(&self) -> Result<TargetMachine, EmitError> {
        ready()?;
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

    /// Sets the processor and its features on a function. Without them LLVM could assume others.
    pub fn mark(&self, context: &Context, f: FunctionValue<'_>) {
        let tuned = self.tuned_for.as_ref().map(|name| ("tune-cpu", name));
        for (key, value) in [("target-cpu", &self.cpu), ("target-features", &self.features)].into_iter().chain(tuned) {
            f.add_attribute(AttributeLoc::Function, context.create_string_attribute(key, value));
        }
        let nounwind = inkwell::attributes::Attribute::get_named_enum_kind_id("nounwind");
        f.add_attribute(AttributeLoc::Function, context.create_enum_attribute(nounwind, 0));
    }

    /// Optimizes a module and compiles it to a position-independent object.
    ///
    /// # Errors
    /// If the module is not well formed, or LLVM rejects it.
    pub fn object(&self, module: &Module<'_>) -> Result<Vec<u8>, EmitError> {
        self.generate(module, FileType::Object)
    }

    /// Optimizes a module and compiles it to assembly.
    ///
    /// # Errors
    /// The same as [`Processor::object`].
    pub fn assembly(&self, module: &Module<'_>) -> Result<String, EmitError> {
        let text = self.generate(module, FileType::Assembly)?;
        Ok(String::from_utf8_lossy(&text).trim_end_matches('\0').to_string())
    }

    fn generate(&self, module: &Module<'_>, form: FileType) -> Result<Vec<u8>, EmitError> {
        let machine = self.machine()?;
        module.set_triple(&machine.get_triple());
        module.set_data_layout(&machine.get_target_data().get_data_layout());
        if self.architecture() == Architecture::RiscV {
            // Floats are passed in registers, as on Linux. Objects state this, and linkers refuse to mix ABIs.
            let abi = module.get_context().metadata_string("lp64d");
            module.add_metadata_flag(
                "target-abi",
                FlagBehavior::Error,
                module.get_context().metadata_node(&[abi.into()]),
            );
        }
        module.verify()?;
        let options = PassBuilderOptions::create();
        // Functions say by their features whether they can have vectors.
        let vectorizes = self.architecture() != Architecture::Arm32 || self.has("neon");
        options.set_loop_vectorization(vectorizes);
        options.set_loop_slp_vectorization(vectorizes);
        options.set_loop_unrolling(true);
        module.run_passes("default<O3>", &machine, options)?;
        let buffer = machine.write_to_memory_buffer(module, form)?;
        Ok(buffer.as_slice().to_vec())
    }

    /// Returns an object that contains only bytes, under the name `symbol`, aligned to 64.
    ///
    /// # Errors
    /// If LLVM rejects it.
    pub fn data_object(&self, symbol: &str, bytes: &[u8]) -> Result<Vec<u8>, EmitError> {
        let context = Context::create();
        let module = context.create_module("data");
        data(&module, symbol, bytes, Linkage::External);
        self.object(&module)
    }

    /// Returns an object with the bytes of an artifact and a function `NAME_open`, which opens them through the C
    /// interface of the runtime: `tw_status NAME_open(tw_value *out)`.
    ///
    /// # Errors
    /// If LLVM rejects it.
    pub fn library_object(&self, name: &str, artifact: &[u8]) -> Result<Vec<u8>, EmitError> {
        let context = Context::create();
        let module = context.create_module("library");
        let bytes = data(&module, &format!("{name}_artifact"), artifact, Linkage::Internal).as_pointer_value();
        let (pointer, status) = (context.ptr_type(AddressSpace::default()), context.i32_type());
        let size = context.ptr_sized_int_type(&self.machine()?.get_target_data(), None);
        let open = status.fn_type(&[pointer.into(), size.into(), pointer.into()], false);
        let open = module.add_function("tw_artifact_open_bytes", open, None);
        let function = module.add_function(&format!("{name}_open"), status.fn_type(&[pointer.into()], false), None);
        self.mark(&context, function);
        let builder = context.create_builder();
        builder.position_at_end(context.append_basic_block(function, ""));
        let out = function.get_first_param().ok_or_else(|| EmitError::Llvm("a parameter is missing".into()))?;
        let len = size.const_int(artifact.len() as u64, false);
        let call = builder.build_call(open, &[bytes.into(), len.into(), out.into()], "")?;
        builder.build_return(Some(
            &call.try_as_basic_value().basic().ok_or_else(|| EmitError::Llvm("a result is missing".into()))?,
        ))?;
        self.object(&module)
    }
}

/// Adds bytes to a module under a symbol, aligned to 64.
fn data<'c>(module: &Module<'c>, symbol: &str, bytes: &[u8], linkage: Linkage) -> GlobalValue<'c> {
    let data = module.get_context().const_string(bytes, false);
    let global = module.add_global(data.get_type(), None, symbol);
    global.set_initializer(&data);
    global.set_constant(true);
    global.set_linkage(linkage);
    global.set_alignment(64);
    global
}

impl Architecture {
    fn of(triple: &str) -> Option<Architecture> {
        match triple.split('-').next()? {
            "x86_64" => Some(Architecture::X86),
            "aarch64" => Some(Architecture::Arm),
            "armv7" => Some(Architecture::Arm32),
            "riscv64" => Some(Architecture::RiscV),
            "wasm32" => Some(Architecture::Wasm),
            _ => None,
        }
    }
}

/// Initializes LLVM's code generators.
fn ready() -> Result<(), EmitError> {
    static READY: OnceLock<Result<(), String>> = OnceLock::new();
    let begin = || {
        let config = InitializationConfig::default();
        Target::initialize_native(&config)?;
        Target::initialize_x86(&config);
        Target::initialize_aarch64(&config);
        Target::initialize_arm(&config);
        Target::initialize_riscv(&config);
        Target::initialize_webassembly(&config);
        Ok(())
    };
    READY.get_or_init(begin).clone().map_err(EmitError::Llvm)
}
