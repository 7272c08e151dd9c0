//! `compile --dump`: the stages of layers as text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tilewright_compiler::codegen::accel::scheduled::Mapping;
use tilewright_compiler::schedule::text::parse_steps;
use tilewright_compiler::schedule::{Schedule, Step};
use tilewright_compiler::{te, tir};
use tilewright_hw::HwConfig;
use tilewright_hw::isa::{Insn, parse_program, print_insn};

use crate::models::{carried, lenet};
use crate::{Outcome, fine, refused, tilewright};

/// Files of a folder with their texts.
fn texts(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|p| (p.file_name().unwrap().to_str().unwrap().into(), std::fs::read_to_string(p).unwrap())).collect()
}

fn ending<'t>(texts: &'t BTreeMap<String, String>, ending: &str) -> Vec<&'t String> {
    texts.iter().filter(|(name, _)| name.rsplit('.').next() == Some(ending)).map(|(_, text)| text).collect()
}

/// Returns the loops after steps for the accelerator.
fn mapped(config: &str, program: &te::Program, steps: Vec<Step>) -> Result<tir::Function, String> {
    let mut mapping = Mapping::new(&HwConfig::load(config).unwrap(), program).map_err(|e| e.to_string())?;
    steps.into_iter().try_for_each(|step| mapping.apply(step).map(drop)).map_err(|e| e.to_string())?;
    Ok(mapping.function())
}

/// Checks that expressions, steps and loops parse back, and that the steps lead from an expression to its loops.
/// Returns the number of expressions.
#[track_caller]
fn replay(texts: &BTreeMap<String, String>, config: &str) -> usize {
    let mut count = 0;
    for (name, expression) in texts.iter().filter(|(name, _)| name.ends_with(".te")) {
        let of = |ending: &str| &texts[&format!("{}.{ending}", name.strip_suffix(".te").unwrap())];
        let program = te::text::parse(expression).unwrap_or_else(|e| panic!("{name}: {e}\n{expression}"));
        assert_eq!(&program.to_string(), expression, "{name}");
        let loops = tir::parse(of("tir")).unwrap_or_else(|e| panic!("{name}: {e}\n{}", of("tir")));
        assert_eq!(&loops.to_string(), of("tir"), "{name}");
        let steps = parse_steps(of("schedule")).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let steps: Vec<_> = steps.into_iter().map(|(_, step)| step).collect();
        let mut schedule = Schedule::with_intrinsics(tir::lower(&program).unwrap(), &loops.intrinsics);
        let replayed = match schedule.replay(&steps) {
            Ok(()) => schedule.into_function(),
            // Only a mapping rewrites terms under conditions for `tensorize`.
            Err(_) => mapped(config, &program, steps).unwrap_or_else(|e| panic!("{name}: {e}")),
        };
        assert_eq!(&replayed.to_string(), of("tir"), "{name}");
        count += 1;
    }
    assert_eq!(count, ending(texts, "tir").len());
    assert_eq!(count, ending(texts, "schedule").len());
    count
}

#[test]
fn dumped_steps_lead_from_the_expression_to_the_loops() {
    let dir = tempfile::tempdir().unwrap();
    let mut on_accel = 0;
    let models =
        ["tflite-ops/residual_block.tflite", "tflite-ops/softmax.tflite", "vit-tiny-mnist/model_qdq_perchannel.onnx"];
    let mut runs: Vec<(String, Vec<&str>)> = ["0", "1", "2", "3"].map(|level| (lenet(), vec!["-O", level])).into();
    runs.extend(models.map(|model| (carried(model), vec![])));
    runs.extend(models.map(|model| (carried(model), vec!["--offload", "none"])));
    runs.push((carried("lenet-mnist/model.onnx"), vec!["--offload", "none", "-O", "0"]));
    runs.push((carried("ppocr-cls/model.onnx"), vec!["--offload", "none", "--shape", "x=1x3x48x192"]));
    runs.push((carried("tflite-ops/dwconv3x3.tflite"), vec!["--hw", "1x8x8"]));
    runs.push((carried("tflite-ops/avgpool3x3_same.tflite"), vec!["--hw", "1x8x8"]));
    runs.push((lenet(), vec!["--offload", "none", "--cpu-target", "aarch64-linux-gnu"]));
    for (number, (model, options)) in runs.iter().enumerate() {
        let folder = number.to_string();
        let arguments = ["compile", model, "--dump", "te,tir,schedule", "--dump-dir", &folder];
        fine(dir.path(), &[&arguments[..], options].concat());
        let texts = texts(&dir.path().join(folder));
        assert!(texts.keys().any(|name| name.ends_with(".te")), "{model} {options:?}");
        let hw = options.iter().skip_while(|option| **option != "--hw").nth(1);
        replay(&texts, hw.unwrap_or(&"1x16x16"));
        on_accel += ending(&texts, "tir").iter().filter(|loops| loops.contains(" in inp\n")).count();
    }
    assert!(on_accel > 0, "layers of the accelerator are among them");
}

#[test]
fn code_of_every_place_is_dumped() {
    let dir = tempfile::tempdir().unwrap();
    fine(dir.path(), &["compile", &lenet(), "--dump", "llvm,asm", "--dump-dir", "all", "-o", "l.twa"]);
    let mixed = texts(&dir.path().join("all"));
    // The layers' instructions are those of the program, each layer's in the stream's order. Instructions of
    // neighboring layers can alternate.
    let all = parse_program(&fine(dir.path(), &["disasm", "l.twa"])).unwrap();
    let parts: Vec<_> = ending(&mixed, "tw").iter().map(|text| parse_program(text).unwrap()).collect();
    let sorted = |insns: Vec<&Insn>| {
        let mut texts: Vec<String> = insns.into_iter().map(print_insn).collect();
        texts.sort_unstable();
        texts
    };
    assert_eq!(sorted(parts.iter().flatten().collect()), sorted(all.iter().collect()));
    let in_order = |part: &Vec<Insn>| {
        let mut rest = all.iter();
        part.iter().all(|insn| rest.any(|other| other == insn))
    };
    assert!(parts.len() > 2 && parts.iter().all(in_order));
    let functions = ending(&mixed, "ll");
    assert!(!functions.is_empty() && functions.len() == ending(&mixed, "s").len());
    assert!(functions.iter().all(|text| text.contains("define i32 @tw_")), "{}", functions[0]);
    assert!(ending(&mixed, "s").iter().all(|text| text.contains(".globl\ttw_") && text.contains("ret")));
    // A layer alone has the same files.
    let name = mixed.keys().find(|name| name.ends_with(".ll")).unwrap();
    let layer = name.strip_suffix(".ll").unwrap();
    let arguments = ["compile", &lenet(), "--dump", "llvm", "--dump-dir", "one", "--dump-layer", layer];
    fine(dir.path(), &arguments);
    assert_eq!(texts(&dir.path().join("one")), BTreeMap::from([(name.clone(), mixed[name].clone())]));
}

#[test]
fn gpu_code_is_dumped() {
    let dir = tempfile::tempdir().unwrap();
    let dump = |stages, folder| {
        vec!["compile".to_string(), lenet()]
            .into_iter()
            .chain(
                ["--offload", "none", "--fallback", "cuda", "--dump", stages, "--dump-dir", folder].map(String::from),
            )
            .collect::<Vec<_>>()
    };
    let arguments = dump("te,tir,schedule,cuda", "cuda");
    fine(dir.path(), &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let all = texts(&dir.path().join("cuda"));
    assert_eq!(replay(&all, "1x16x16"), ending(&all, "cu").len());
    assert!(ending(&all, "cu").iter().all(|text| text.contains("extern \"C\" __global__ void")));
    // PTX needs NVRTC. Without it there is CUDA C, and the reason.
    let arguments = dump("ptx", "ptx");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.args(&arguments).current_dir(dir.path()).env("LD_LIBRARY_PATH", nvrtc_folders().join(":"));
    let outcome = Outcome::of(command.output().unwrap());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let found = texts(&dir.path().join("ptx"));
    if outcome.stderr.contains("--dump ptx writes CUDA C instead of PTX: ") {
        assert_eq!(found.values().collect::<Vec<_>>(), ending(&all, "cu"));
        return tilewright_testing::skip("PTX needs NVRTC; run `scripts/setup.sh --cuda`");
    }
    assert_eq!(ending(&found, "ptx").len(), found.len());
    assert_eq!(found.len(), ending(&all, "cu").len());
    assert!(found.values().all(|text| text.contains(".visible .entry tw_")));
}

/// Folders of the NVRTC of the Python package, if it is installed in the project's environment.
fn nvrtc_folders() -> Vec<String> {
    let list = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    let venv = list(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/lib"));
    let packages = venv.iter().flat_map(|python| list(&python.join("site-packages/nvidia")));
    packages.map(|package| package.join("lib").display().to_string()).collect()
}

#[test]
fn what_cannot_be_dumped_is_said_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let model = carried("tflite-ops/softmax.tflite");
    let dump = |stages, extra: &[&'static str]| -> Vec<&str> {
        let base = ["compile", &model, "-o", "s.twa", "--offload", "none", "--dump-dir", "d", "--dump", stages];
        [&base[..], extra].concat()
    };
    let outcome = tilewright(dir.path(), &dump("te,ast", &[]));
    let values = "[possible values: te, tir, schedule, llvm, asm, cuda, ptx]";
    assert!(
        outcome.code == 2 && outcome.stderr.contains("'ast'") && outcome.stderr.contains(values),
        "{}",
        outcome.stderr
    );
    refused(
        dir.path(),
        &dump("te", &["--dump-layer", "conv"]),
        &format!("{model}: --dump-layer conv: the model has no such layer; its layers are Identity"),
    );
    refused(
        dir.path(),
        &dump("te,ptx", &[]),
        &format!(
            "{model}: --dump ptx: no layer here has this stage; they run on cpu, and have te, tir, schedule, llvm, asm; \
             compile for a GPU with --fallback cuda"
        ),
    );
    for missing in [&["compile", "m.onnx", "--dump", "te"][..], &["compile", "m.onnx", "-o", "x", "--dump-layer", "a"]]
    {
        let outcome = tilewright(dir.path(), missing);
        assert!(outcome.code == 2 && outcome.stderr.contains("--dump"), "{}", outcome.stderr);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    // The folder is checked before the model is compiled.
    std::fs::write(dir.path().join("d"), "").unwrap();
    let outcome = tilewright(dir.path(), &dump("te", &[]));
    assert!(
        outcome.code == 2 && outcome.stderr.starts_with("error: --dump-dir: cannot write into d"),
        "{}",
        outcome.stderr
    );
    assert_eq!(std::fs::read(dir.path().join("d")).unwrap(), b"");
    assert!(!dir.path().join("s.twa").exists());
}
