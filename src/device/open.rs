//! Opens devices.

use std::path::Path;

use tilewright_driver::port::Board;
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Device, DeviceError};
use tilewright_rpc::client::Asked;
use tilewright_sim::{Csim, CsimOptions, Fsim, Rtl, RtlOptions, rtl};

use super::extras::Extras;
use super::name::DeviceKind;
use super::remote::open_remote;
use super::table::{Spec, Way, names};

/// Opens a device; returns none for the CPU and the GPU, which run no accelerator programs. The configuration's DRAM
/// section sets the simulators' memory model. `told` receives the steps that take time.
///
/// # Errors
/// [`DeviceError::Unsupported`] if the device does not have one of the extras, [`DeviceError::Tool`] if a tool is
/// missing, or a board does not answer or has another configuration.
pub fn open(
    kind: DeviceKind,
    config: &HwConfig,
    extras: Extras,
    told: &dyn Fn(&str),
) -> Result<Option<Box<dyn Device>>, DeviceError> {
    let spec = kind.spec();
    let unsupported = |what: String| Err(DeviceError::Unsupported { device: kind.to_string(), what });
    let use_one = |can: fn(&Spec) -> bool| format!("use --device {}", names(can).replace(" or ", " or --device "));
    if extras.waves.is_some() && !spec.waves {
        return unsupported(format!("record waves; {}", use_one(|spec| spec.waves)));
    }
    // A server says itself what its device cannot do.
    if extras.strict && !spec.strict && kind.lender().is_none() {
        return unsupported(format!("check programs strictly; {}", use_one(|spec| spec.strict)));
    }
    if extras.spans && !kind.may_trace() {
        let why = if kind.port().is_some() { "" } else { " because it is untimed" };
        return unsupported(format!("trace instructions{why}; {}", use_one(|spec| spec.exact)));
    }
    if extras.max_cycles.is_some() && !kind.is_accelerator() {
        let simulators = names(Spec::is_simulator);
        return unsupported(format!("limit cycles; use --device {simulators}"));
    }
    if let Some(path) = extras.waves {
        // The RTL simulator writes the file only at the end of the run, and does not report a failure.
        tilewright_runtime::files::check_writable(path).map_err(|e| DeviceError::Tool {
            tool: format!("--waves {}", path.display()),
            reason: e.to_string(),
            remedy: "name a file in a folder that can be written".into(),
        })?;
    }
    if let Some(lender) = kind.lender() {
        let Extras { strict, spans, max_cycles, .. } = extras;
        let asked = Asked { strict, spans, max_cycles };
        return open_remote(kind, lender, config, asked, told).map(Some);
    }
    let device: Box<dyn Device> = match (spec.way, kind.port()) {
        (Way::None(_), _) => return Ok(None),
        (_, Some(port)) => Board::open(port, config, told)?.into_device(extras.max_cycles),
        // The name of a board always has a port, that of a server an address.
        (Way::Board | Way::Remote, None) => return unsupported("run programs without a port".into()),
        (Way::Functional, None) => {
            Box::new(Fsim::new(config.clone(), config.memory_bytes()).with_cycle_limit(extras.max_cycles))
        }
        (Way::Cycle, None) => {
            let options = CsimOptions { strict: extras.strict, spans: extras.spans, ..CsimOptions::default() };
            let csim = Csim::new(config.clone(), config.memory_bytes(), options);
            Box::new(csim.with_cycle_limit(extras.max_cycles))
        }
        (Way::Design, None) => {
            let options =
                RtlOptions { waves: extras.waves.map(Path::to_path_buf), spans: extras.spans, ..RtlOptions::default() };
            let rtl = Rtl::with_progress(config.clone(), config.memory_bytes(), &options, &|at| tell_build(at, told))?;
            Box::new(rtl.with_cycle_limit(extras.max_cycles))
        }
    };
    Ok(Some(device))
}

/// Reports the progress of building a design's simulator.
pub fn tell_build(progress: rtl::Progress, told: &dyn Fn(&str)) {
    match progress {
        rtl::Progress::Cached | rtl::Progress::Built => told(""),
        rtl::Progress::Verilating => told("building the RTL simulator: Verilator"),
        rtl::Progress::SlowEdges => told(
            "note: this version of Verilator evaluates both edges of the clock, which makes the simulator slower than \
             with others\n",
        ),
        rtl::Progress::Training => told("building the RTL simulator: profiling run"),
        rtl::Progress::Compiling(done, all, optimized) => {
            told(&format!("building the RTL simulator: C++ file {done} of {all}, {optimized} of them optimized"));
        }
    }
}
