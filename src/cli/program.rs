//! `asm` and `disasm`: programs as text and as instruction streams.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use tilewright::device::stream::{self, StreamError};
use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::{Insn, print_program};
use tilewright_runtime::artifact::{Artifact, StepKind};

use super::{Hw, ParamsOption, Verdict, progress, read_file, write_or_print};

/// Arguments of `asm`.
#[derive(clap::Args)]
pub struct Asm {
    /// File with the program's text
    file: PathBuf,
    /// Instruction stream to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    hw: Hw,
}

impl Asm {
    pub fn run(self) -> Result<Verdict> {
        let config = self.hw.load()?;
        let file = self.file.display().to_string();
        let bytes = read_file(&self.file)?;
        let program = text_program(&file, &bytes, &config)?;
        let stream = stream::to_file(&file, &program, &config)?;
        write_or_print(Some(&self.output), &stream)?;
        progress::say(&format!("{}: {} instructions for {}", self.output.display(), program.len(), config.name));
        Ok(Verdict::Fine)
    }
}

/// Arguments of `disasm`.
#[derive(clap::Args)]
pub struct Disasm {
    /// An instruction stream, or a compiled artifact, whose programs are printed one after another
    file: PathBuf,
    #[command(flatten)]
    params: ParamsOption,
    /// File to write instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    hw: Hw,
}

impl Disasm {
    pub fn run(self) -> Result<Verdict> {
        let bytes = read_file(&self.file)?;
        if Artifact::is_one(&bytes) {
            if !self.hw.is_default() {
                bail!(
                    "--hw is for streams, but {} is an artifact, which contains its configuration",
                    self.file.display()
                );
            }
            let artifact = self.params.decode(&self.file, &self.file.display().to_string(), &bytes)?;
            write_or_print(self.output.as_ref(), artifact_text(&artifact)?.as_bytes())?;
            return Ok(Verdict::Fine);
        }
        let config = self.hw.load()?;
        let program = stream::from_file(&self.file.display().to_string(), &bytes, &config)?;
        write_or_print(self.output.as_ref(), print_program(&program).as_bytes())?;
        Ok(Verdict::Fine)
    }
}

/// Disassembles every accelerator program of an artifact.
fn artifact_text(artifact: &Artifact) -> Result<String> {
    let Some(hardware) = &artifact.manifest.hardware else {
        bail!("{} contains no accelerator program; everything runs on the CPU", artifact.path);
    };
    let config = HwConfig::parse(&hardware.name, &hardware.toml)?;
    let mut text = String::new();
    for step in &artifact.manifest.steps {
        if let StepKind::Accel(accel) = &step.kind {
            let mut program = accel.program.clone();
            program.stream = artifact.blob(accel.stream).to_vec();
            let listing = program.disassemble(&config).map_err(|(index, source)| StreamError::Decode {
                file: artifact.path.clone(),
                index,
                source,
            })?;
            text.push_str(&format!("# step {}\n{listing}", step.name));
        }
    }
    Ok(text)
}

/// Parses a program's text for a configuration.
pub fn text_program(file: &str, bytes: &[u8], config: &HwConfig) -> Result<Vec<Insn>> {
    if stream::is_one(bytes) {
        bail!("{file} is already an assembled stream, not a program's text; print it with: tilewright disasm {file}");
    }
    let text = std::str::from_utf8(bytes).with_context(|| format!("{file} is not a program's text"))?;
    Ok(stream::parse(file, text, config)?)
}
