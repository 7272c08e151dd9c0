//! The commands of files.
//!
//! | command | input | output |
//! |---|---|---|
//! | `pass NAME...`, `optimize LEVEL`, `cpu_passes LEVEL`, `float_passes` | a graph | the patches, the graph after them, and the notes |
//! | `verify graph` | a graph | every error, or `sound` |
//! | `verify tir` | a function | every error, or `sound` |
//! | `schedule` | steps, one a line or between `;`, and a function | the function after the steps, or why one cannot be applied |
//! | `te` | a graph of one operator | the function that computes it |
//! | `calls` | a tensor expression with calls of operators | the expression spelled out, or why it is none |
//! | `lower HW [KEY=VALUE...]` | a `.te` file | the accelerator's program, or why the schedule cannot become one |
//! | `accel HW [KEY=VALUE...] [-O LEVEL]` | an integer graph | where each node runs and why, and the accelerator's programs |
//!
//! In graphs, `blob "N bytes"`, `blob "N words"` and `blob "N floats"` stand for constants of so many numbers.

use super::meaning;
use crate::codegen::accel::scheduled::Mapping;
use crate::graph::text::{self, Blobs};
use crate::graph::{Graph, GraphError, Op};
use crate::partition::{self, Code};
use crate::passes::{self, OptLevel, Pass, pipelines};
use crate::schedule::{Schedule, file, text as steps};
use crate::suite::Numbers;
use crate::{te, tir};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use tilewright_hw::HwConfig;

/// The output of a command.
///
/// # Errors
/// Why the file is malformed, or how a program changed its meaning.
pub fn run(command: &str, input: &str) -> Result<String, String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["pass", names @ ..] if !names.is_empty() => {
            rewrite(input, &names.iter().map(|name| pass(name)).collect::<Result<Vec<_>, _>>()?)
        }
        ["optimize", name] => rewrite(input, &pipelines::passes(level(name)?)),
        ["cpu_passes", name] => rewrite(input, &pipelines::cpu_passes(level(name)?)),
        ["float_passes"] => rewrite(input, &pipelines::float_passes()),
        ["verify", "graph"] => Ok(match text::parse(input, &blobs(input)) {
            Ok(g) => {
                meaning::reads_back(&g)?;
                "sound\n".into()
            }
            Err(e) => lines(e.list().iter().map(|e| e.to_string())),
        }),
        ["verify", "tir"] => Ok(match tir::parse(input).and_then(|f| tir::verify(&f).map(|()| f)) {
            Ok(f) => {
                meaning::function_reads_back(&f)?;
                "sound\n".into()
            }
            Err(tir::TirError::Malformed { problems, .. }) => lines(problems),
            Err(e) => lines([e.to_string()]),
        }),
        ["schedule"] => schedule(input),
        ["te"] => tensor_expression(input),
        ["calls"] => calls(input),
        ["accel", hw, options @ ..] => accel(input, hw, options),
        ["lower", hw, options @ ..] => lowered(input, hw, options),
        _ => Err(format!("unknown command `{command}`; filetests/commands.rs lists them")),
    }
}

/// Texts under test can call operators.
const LIBRARY: te::text::Names = te::text::Names { sizes: &[], operators: &te::ops::Library };

fn calls(input: &str) -> Result<String, String> {
    let program = match te::text::parse_with(input, &LIBRARY) {
        Ok(program) => program,
        Err(e) => return Ok(format!("{e}\n")),
    };
    let text = program.to_string();
    if te::text::parse(&text).as_ref() != Ok(&program) {
        return Err(format!("the text does not read back to the same expression:\n{text}"));
    }
    tir::lower(&program).map_err(|e| format!("{e}\n{text}"))?;
    Ok(text)
}

fn lines(list: impl IntoIterator<Item = String>) -> String {
    list.into_iter().map(|line| line + "\n").collect()
}

fn level(name: &str) -> Result<OptLevel, String> {
    match name {
        "O0" => Ok(OptLevel::O0),
        "O1" => Ok(OptLevel::O1),
        "O2" => Ok(OptLevel::O2),
        "O3" => Ok(OptLevel::O3),
        _ => Err(format!("there is no level `{name}`; there are O0, O1, O2, O3")),
    }
}

fn pass(name: &str) -> Result<Box<dyn Pass>, String> {
    let all: Vec<Box<dyn Pass>> = vec![
        Box::new(passes::DeadCode),
        Box::new(passes::Canonicalize),
        Box::new(passes::FoldScale),
        Box::new(passes::FoldBias),
        Box::new(passes::SinkDequantize),
        Box::new(passes::LegalizeQdq),
        Box::new(passes::FoldConstants),
        Box::new(passes::FoldPad),
        Box::new(passes::FoldClip),
        Box::new(passes::FuseLayerNorm),
        Box::new(passes::ChannelsLast),
    ];
    let names: Vec<&str> = all.iter().map(|p| p.name()).collect();
    let unknown = format!("there is no pass `{name}`; there are {}", names.join(", "));
    all.into_iter().find(|p| p.name() == name).ok_or(unknown)
}

/// The constants that an input names by their sizes.
fn blobs(input: &str) -> Blobs {
    let mut blobs = Blobs::new();
    for name in input.split("blob \"").skip(1).filter_map(|rest| rest.split('"').next()) {
        let Some((count, kind)) = name.split_once(' ') else { continue };
        let (Ok(count), mut numbers) = (count.parse::<usize>(), Numbers::new(3)) else { continue };
        let bytes: Vec<u8> = match kind {
            "bytes" => (0..count).map(|_| numbers.int(-128, 127) as i8 as u8).collect(),
            "words" => (0..count).flat_map(|_| (numbers.int(-3000, 3000) as i32).to_le_bytes()).collect(),
            "floats" => (0..count).flat_map(|_| numbers.float().to_le_bytes()).collect(),
            _ => continue,
        };
        blobs.insert(name.into(), bytes);
    }
    blobs
}

/// A graph of a file that must be sound.
fn graph(input: &str) -> Result<Graph, String> {
    text::parse(input, &blobs(input)).map_err(|e: GraphError| format!("the input is no sound graph: {e}"))
}

/// A graph's text, in which the input's constants keep their names.
fn print(g: &Graph, input: &str) -> String {
    let mut text = text::print(g);
    for (name, bytes) in blobs(input) {
        let hash: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
        text = text.replace(&hash, &name);
    }
    text
}

fn rewrite(input: &str, passes: &[Box<dyn Pass>]) -> Result<String, String> {
    let before = graph(input)?;
    let (after, report) = match passes::run(before.clone(), passes, passes::Options::default()) {
        Ok(done) => done,
        Err(e) => return Ok(format!("{e}\n")),
    };
    meaning::same_results(&before, &after, passes.iter().all(|p| p.exact()))?;
    let mut out = lines(report.applied.iter().map(|a| format!("{}: {} at `{}`", a.pass, a.what, a.node)));
    out += &if after == before { "unchanged\n".into() } else { print(&after, input) };
    out += &lines(report.notes.iter().map(|(node, note)| format!("note on `{node}`: {note}")));
    Ok(out)
}

fn schedule(input: &str) -> Result<String, String> {
    let at = input.find("function").ok_or("the input has no function")?;
    let f = tir::parse(&input[at..]).map_err(|e| e.to_string())?;
    tir::verify(&f).map_err(|e| e.to_string())?;
    let mut s = Schedule::new(f.clone());
    for (_, step) in steps::parse_steps(&input[..at]).map_err(|(line, e)| format!("line {line}: {e}"))? {
        if let Err(e) = s.apply(step) {
            meaning::same_function(&f, &s)?;
            return Ok(format!("{e}\n"));
        }
    }
    meaning::same_function(&f, &s)?;
    Ok(s.function().to_string())
}

fn tensor_expression(input: &str) -> Result<String, String> {
    let g = graph(input)?;
    let nodes: Vec<_> = g.nodes().filter(|(_, n)| !matches!(n.op, Op::Constant(_))).map(|(id, _)| id).collect();
    let outputs: Vec<_> = g.outputs().iter().map(|o| o.1).collect();
    let region = match te::ops::program(&g, g.name(), &nodes, &outputs) {
        Ok(region) => region,
        Err(e) => return Ok(format!("{e}\n")),
    };
    let f = tir::lower(&region.program).map_err(|e| e.to_string())?;
    meaning::same_expression(&g, &nodes, &region, &f)?;
    Ok(f.to_string())
}

fn accel(input: &str, hw: &str, options: &[&str]) -> Result<String, String> {
    let g = graph(input)?;
    let (mut config, mut chosen) = (HwConfig::load(hw).map_err(|e| e.to_string())?, partition::Options::default());
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if *option == "-O" {
            let name = options.next().ok_or("-O needs a level")?;
            chosen = partition::Options::of_level(level(&format!("O{name}"))?);
        } else {
            config = with(&config, option)?;
        }
    }
    let inputs = meaning::data(&g).ok_or("its sizes are symbolic")?;
    let parts = partition::tests::check_split(&g, &config, &inputs, (chosen, &partition::tests::fsim));
    let mut out = lines(parts.explanations.iter().map(|e| format!("{} ({}) on {}: {}", e.name, e.op, e.place, e.why)));
    for region in &parts.regions {
        if let Code::Accel(accel) = &region.code {
            let text = accel.program.disassemble(&config).map_err(|(i, e)| format!("instruction {i}: {e}"))?;
            // The hash of the whole configuration changes with every new parameter.
            for line in text.lines().filter(|line| !line.starts_with("# configuration")) {
                let _ = writeln!(out, "{line}");
            }
        }
    }
    Ok(out)
}

/// The instructions of a `.te` file. They run and must give the evaluator's results.
fn lowered(input: &str, hw: &str, options: &[&str]) -> Result<String, String> {
    let mut config = HwConfig::load(hw).map_err(|e| e.to_string())?;
    for option in options {
        config = with(&config, option)?;
    }
    let file = match file::parse_with(input, &LIBRARY) {
        Ok(file) => file,
        Err(e) => return Ok(format!("{e}\n")),
    };
    let text = file.program.to_string();
    if te::text::parse(&text).as_ref() != Ok(&file.program) {
        return Err(format!("the text does not read back to the same expression:\n{text}"));
    }
    let mut mapping = Mapping::new(&config, &file.program).map_err(|e| e.to_string())?;
    for (line, step) in &file.steps {
        if let Err(e) = mapping.apply(step.clone()) {
            return Ok(format!("line {line}: {e}\n"));
        }
    }
    let lowered = match mapping.lower() {
        Ok(lowered) => lowered,
        Err(e) => return Ok(format!("{e}\n")),
    };
    let inputs = tilewright_tensor::testing::inputs(&mapping.function());
    let want = tir::evaluate(&file.program, &inputs).map_err(|e| e.to_string())?;
    let mut device = partition::tests::fsim(&config);
    let (got, _) = lowered.run(device.as_mut(), &inputs, &want).map_err(|e| e.to_string())?;
    if got != want {
        return Err("the instructions have another result".into());
    }
    let text = lowered.program.disassemble(&config).map_err(|(i, e)| format!("instruction {i}: {e}"))?;
    Ok(lines(text.lines().filter(|line| !line.starts_with('#')).map(String::from)))
}

/// A configuration with one parameter changed, as `KEY=VALUE` says.
fn with(config: &HwConfig, option: &str) -> Result<HwConfig, String> {
    let (key, value) = option.split_once('=').ok_or(format!("`{option}` is no KEY=VALUE"))?;
    let text = config.to_toml();
    let old = text.lines().find(|line| line.split(" = ").next() == Some(key));
    let old = old.ok_or(format!("there is no parameter `{key}`"))?;
    let text = text.replacen(&format!("{old}\n"), &format!("{key} = {value}\n"), 1);
    HwConfig::parse(&config.name, &text).map_err(|e| e.to_string())
}
