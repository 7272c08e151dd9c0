//! `serve`: lends this machine's device to other machines.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tilewright::device::{DeviceKind, Spec, help, lends};
use tilewright_rpc::Access;
use tilewright_rpc::endpoint::{Endpoint, token_from_environment};
use tilewright_rpc::server::{Lends, Limits, Native, Options, Server, Tls};
use tilewright_rpc::tracker::{Station, is_kind};

use super::{Hw, Verdict, write_or_print};

/// Arguments of `serve`.
#[derive(clap::Args)]
pub struct Serve {
    #[arg(
        long,
        default_value = "csim",
        value_name = "DEVICE",
        value_parser = |name: &str| DeviceKind::among(name, Spec::can_be_lent),
        help = format!("Device to lend: {}", help(Spec::can_be_lent))
    )]
    device: DeviceKind,
    #[command(flatten)]
    hw: Hw,
    #[command(flatten)]
    listen: Listen,
    /// Sessions that have a device at the same time; each has a simulator of its own
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    devices: u16,
    /// Sessions at the same time, those that wait included
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    max_sessions: u16,
    /// Longest time of a single run or read
    #[arg(long, default_value_t = 600, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    max_seconds: u32,
    /// Cycles of a run at most, whatever a client asks; instructions on a device without cycles [default: the device's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_cycles: Option<u64>,
    /// MiB of memory that the models and the arguments of a session can take
    #[arg(long, default_value_t = 1024, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    max_memory: u32,
    /// MiB that inputs and outputs of a session's frames can take, from submitting to waiting
    #[arg(long, default_value_t = 1024, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    max_frame_memory: u32,
    /// Tracker that hands out this server's devices. It is shown this server's token; TILEWRIGHT_TLS_CERT turns TLS on
    #[arg(long, value_name = "HOST:PORT")]
    tracker: Option<Endpoint>,
    /// Kind of the devices at the tracker [default: the configuration's name]
    #[arg(long, requires = "tracker", value_name = "KIND", value_parser = kind)]
    kind: Option<String>,
    /// Address that the tracker tells clients [default: the one that this server listens on, with the host from which
    /// the tracker sees it if it listens on all]
    #[arg(long, requires = "tracker", value_name = "HOST:PORT")]
    announce: Option<Endpoint>,
    /// Run CPU code of uploaded artifacts, each in a process with limits. A client then can do what your user can: allow
    /// it only to those whom you trust
    #[arg(long)]
    allow_native: bool,
    /// CPU time of such a process, all threads together
    #[arg(long, default_value_t = 3600, value_name = "SECONDS", requires = "allow_native", value_parser = clap::value_parser!(u32).range(1..))]
    native_seconds: u32,
    /// Program that runs this one, with arguments separated by spaces, for tests on an emulated processor
    #[arg(long, hide = true, requires = "allow_native", value_name = "PROGRAM …")]
    native_runner: Option<String>,
    /// Time without a request after which a session loses the device if others wait
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    idle: u32,
    /// Time after which a session loses the device if others wait
    #[arg(long, default_value_t = 600, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    lease: u32,
}

/// Where a server listens, and whom it lets in.
#[derive(clap::Args)]
pub struct Listen {
    /// Address to listen on; port 0 lets the system choose one. Beyond this machine it needs a token and TLS [default:
    /// 127.0.0.1, port 7878 of serve and 7879 of tracker]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<Endpoint>,
    /// File with the token that clients must have [default: TILEWRIGHT_TOKEN, or the file TILEWRIGHT_TOKEN_FILE]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Certificate for TLS, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Listen beyond this machine without a token or TLS
    #[arg(long)]
    insecure: bool,
}

impl Listen {
    /// What is given; `default` is where it listens otherwise.
    pub fn options(&self, default: &str) -> Result<Options> {
        let listen = self.listen.clone().map_or_else(|| default.parse(), Ok)?;
        let mut options = Options::new(listen);
        options = match &self.token_file {
            Some(path) => options.with_token_file(path)?,
            None => Options { token: token_from_environment()?, ..options },
        };
        if let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) {
            options.tls = Some(Tls::read(certificate, key)?);
        }
        Ok(Options { insecure: self.insecure, ..options })
    }
}

/// Writes the server's log to standard error: what it says itself, and why the network's layer closes connections.
/// RUST_LOG changes that.
pub fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| "warn,tilewright=info,tilewright_rpc=info,tonic::transport=debug".into());
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // Fails only if there is a log already.
    let _ = log.try_init();
}

/// Where it listens without `--listen`.
const LISTEN: &str = "127.0.0.1:7878";

/// The hidden command that runs a client's CPU code.
const RUN_NATIVE: &str = "run-native";

/// Serves the server that started this process.
pub fn run_native() -> Result<Verdict> {
    tilewright_rpc::native::serve().map_err(anyhow::Error::from_boxed)?;
    Ok(Verdict::Fine)
}

/// Checks a kind of devices.
fn kind(text: &str) -> Result<String, String> {
    let wanted = || format!("{text:?} names no kind; use letters, digits, dots, hyphens and underscores, at most 64");
    is_kind(text).then(|| text.to_string()).ok_or_else(wanted)
}

/// The address that the tracker tells clients.
fn announced(listens: SocketAddr) -> String {
    if listens.ip().is_unspecified() { format!(":{}", listens.port()) } else { listens.to_string() }
}

impl Serve {
    /// How CPU code of clients runs.
    fn native(&self) -> Result<Option<Native>> {
        if !self.allow_native {
            return Ok(None);
        }
        let own = Native::this_program(&[RUN_NATIVE], self.native_seconds.into())?;
        let Some(runner) = &self.native_runner else { return Ok(Some(own)) };
        let mut words = runner.split_whitespace().map(OsString::from);
        let program = words.next().context("--native-runner is empty; name a program")?;
        let arguments = words.chain([own.program.into_os_string()]).chain(own.arguments).collect();
        Ok(Some(Native { program: program.into(), arguments, ..own }))
    }

    /// Prints the address, then serves until the process ends.
    pub fn run(self) -> Result<Verdict> {
        log();
        if self.idle > self.lease {
            bail!("--idle {} is longer than --lease {}; give a shorter one", self.idle, self.lease);
        }
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        let limits = Limits {
            sessions: self.max_sessions.into(),
            connections: usize::from(self.max_sessions) * 2 + 16,
            idle: seconds(self.idle),
            lease: seconds(self.lease),
            run: seconds(self.max_seconds),
            cycles: self.max_cycles,
            memory: u64::from(self.max_memory) << 20,
            frames: u64::from(self.max_frame_memory) << 20,
        };
        let options = Options { limits, ..self.listen.options(LISTEN)? };
        let config = self.hw.load()?;
        let (token, config_name, devices) = (options.token.clone(), config.name.clone(), self.devices.into());
        let lends = Lends { native: self.native()?, ..lends(self.device, config, self.devices.into())? };
        let server = Server::bind(options, lends)?;
        let mut running = server.start()?;
        if let Some(tracker) = &self.tracker {
            let station = Station {
                kind: self.kind.clone().unwrap_or_else(|| config_name.clone()),
                address: self.announce.as_ref().map_or_else(|| announced(running.address()), Endpoint::to_string),
                device: self.device.to_string(),
                config_name,
                devices,
            };
            let access = Access { token, ..Access::from_environment()? };
            running.keep(station.register(tracker, &access)?);
        }
        write_or_print(None, format!("{}\n", running.address()).as_bytes())?;
        running.wait()?;
        Ok(Verdict::Fine)
    }
}
