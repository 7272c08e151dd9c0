//! Devices by the names that `--device` takes.

mod port;

use std::path::Path;

use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Device, DeviceError};
use tilewright_sim::{Csim, CsimOptions, Fsim, Rtl, RtlOptions, rtl};

pub use port::{Board, Port};

/// Where the offloaded part of a model runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// The functional simulator: meaning without time.
    Fsim,
    /// The cycle model: meaning and exact cycles, many times faster than the design.
    Csim,
    /// The Verilated design: exact cycles, signal by signal.
    Rtl,
    /// None: everything runs on this machine's processor.
    Cpu,
    /// None: everything runs on this machine's GPU.
    Cuda,
    /// A board behind a port. Ports live as long as the program, so that a kind can be copied.
    Board(&'static Port),
}

/// A name that is no device, with what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceNameError {
    /// A device that this version has not.
    #[error("device {name} is not available in this version; use fsim for answers, or csim for exact cycles too")]
    NotYet {
        /// The name.
        name: String,
    },
    /// A port without a path, or with something else than a number as its speed.
    #[error(
        "{name} names no port; give serial:PATH or serial:PATH@BAUD (bits a second, those of the board's bitstream), spi:PATH or \
         spi:PATH@HZ, or uio, uio:NAME or uio:NAME@BUFFER"
    )]
    Port {
        /// The name.
        name: String,
    },
    /// No device at all.
    #[error("no device is named {name}; use fsim, csim, rtl, cpu, cuda, serial:PATH, spi:PATH or uio")]
    Unknown {
        /// The name.
        name: String,
    },
}

impl std::str::FromStr for DeviceKind {
    type Err = DeviceNameError;

    fn from_str(name: &str) -> Result<DeviceKind, DeviceNameError> {
        match name {
            "fsim" => Ok(DeviceKind::Fsim),
            "csim" => Ok(DeviceKind::Csim),
            "rtl" => Ok(DeviceKind::Rtl),
            "cpu" => Ok(DeviceKind::Cpu),
            "cuda" => Ok(DeviceKind::Cuda),
            _ if name.starts_with("remote:") => Err(DeviceNameError::NotYet { name: name.to_string() }),
            _ if let Some(port) = Port::parse(name) => {
                let port = port.ok_or_else(|| DeviceNameError::Port { name: name.to_string() })?;
                Ok(DeviceKind::Board(Box::leak(Box::new(port))))
            }
            _ => Err(DeviceNameError::Unknown { name: name.to_string() }),
        }
    }
}

impl DeviceKind {
    /// Whether it is an accelerator, or stands for one: else the machine itself computes everything.
    pub fn is_accelerator(self) -> bool {
        !matches!(self, DeviceKind::Cpu | DeviceKind::Cuda)
    }
}

impl std::fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            DeviceKind::Fsim => "fsim",
            DeviceKind::Csim => "csim",
            DeviceKind::Rtl => "rtl",
            DeviceKind::Cpu => "cpu",
            DeviceKind::Cuda => "cuda",
            DeviceKind::Board(port) => return write!(f, "{port}"),
        })
    }
}

/// What is asked of a device beyond running commands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras<'a> {
    /// File for the design's signals.
    pub waves: Option<&'a Path>,
    /// Programs with races, ports that only luck keeps from colliding, and reads of what nobody wrote are refused.
    pub strict: bool,
    /// Reports tell when each instruction started and retired, and what it waited for.
    pub spans: bool,
    /// A command that takes longer is given up: cycles, or instructions on a device that knows no time.
    pub max_cycles: Option<u64>,
}

/// Opens a device, or none for the CPU and the GPU, whose steps need none. The configuration's DRAM section says how memory behaves; `told` hears what takes
/// time.
///
/// # Errors
/// [`DeviceError::Unsupported`] where the device has not one of the extras, [`DeviceError::Tool`] where a tool that it needs
/// is missing, or a board is not there or another.
pub fn open(
    kind: DeviceKind,
    config: &HwConfig,
    extras: Extras,
    told: &dyn Fn(&str),
) -> Result<Option<Box<dyn Device>>, DeviceError> {
    let unsupported = |what| Err(DeviceError::Unsupported { device: kind.to_string(), what });
    let timed = matches!(kind, DeviceKind::Csim | DeviceKind::Rtl);
    if extras.waves.is_some() && kind != DeviceKind::Rtl {
        return unsupported("record waves; use --device rtl");
    }
    if extras.strict && kind != DeviceKind::Csim {
        return unsupported("check programs strictly; use --device csim");
    }
    if extras.spans && !timed {
        return match kind {
            DeviceKind::Board(_) => unsupported("trace instructions; use --device csim or --device rtl"),
            _ => unsupported("trace instructions, since it knows no time; use --device csim or --device rtl"),
        };
    }
    if extras.max_cycles.is_some() && !kind.is_accelerator() {
        return unsupported("limit cycles; use --device fsim, csim or rtl");
    }
    if let Some(path) = extras.waves {
        // The design writes the file at the run's end without a word, so that what it would not find is found here.
        tilewright_runtime::files::check_writable(path).map_err(|e| DeviceError::Tool {
            tool: format!("--waves {}", path.display()),
            reason: e.to_string(),
            remedy: "name a file in a folder that can be written".into(),
        })?;
    }
    match kind {
        DeviceKind::Cpu | DeviceKind::Cuda => Ok(None),
        DeviceKind::Fsim => {
            Ok(Some(Box::new(Fsim::new(config.clone(), config.memory_bytes()).with_cycle_limit(extras.max_cycles))))
        }
        DeviceKind::Board(port) => Ok(Some(Board::open(port, config, told)?.into_device(extras.max_cycles))),
        DeviceKind::Csim => {
            let options = CsimOptions { strict: extras.strict, spans: extras.spans, ..CsimOptions::default() };
            let csim = Csim::new(config.clone(), config.memory_bytes(), options);
            Ok(Some(Box::new(csim.with_cycle_limit(extras.max_cycles))))
        }
        DeviceKind::Rtl => {
            let options =
                RtlOptions { waves: extras.waves.map(Path::to_path_buf), spans: extras.spans, ..RtlOptions::default() };
            let rtl = Rtl::with_progress(config.clone(), config.memory_bytes(), &options, &|at| tell_build(at, told))?;
            Ok(Some(Box::new(rtl.with_cycle_limit(extras.max_cycles))))
        }
    }
}

/// Says how the build of a simulator of a design goes on.
pub fn tell_build(progress: rtl::Progress, told: &dyn Fn(&str)) {
    match progress {
        rtl::Progress::Cached | rtl::Progress::Built => told(""),
        rtl::Progress::Verilating => told("building the simulator of the design: Verilator"),
        rtl::Progress::SlowEdges => told(
            "note: this version of Verilator evaluates both edges of the clock, so the simulator is slower than with others\n",
        ),
        rtl::Progress::Training => told("building the simulator of the design: a run that shows what is done often"),
        rtl::Progress::Compiling(done, all, optimized) => {
            told(&format!(
                "building the simulator of the design: C++ file {done} of {all}, {optimized} of them optimized"
            ));
        }
    }
}
