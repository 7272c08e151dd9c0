//! Errors of a link, with remedies.

use tilewright_hw::device::DeviceError;
use tilewright_hw::host::WrongHardware;
use tilewright_hw::interrupt::Interrupted;

/// An error on a port.
#[derive(Debug, thiserror::Error)]
#[error("{port}: {fault}; {}", fault.remedy())]
pub struct LinkError {
    /// The port.
    pub port: String,
    /// What happened.
    pub fault: Fault,
}

/// Kind of port that a link's bytes go through on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortKind {
    /// A serial port.
    Serial,
    /// An SPI port.
    Spi,
}

impl std::fmt::Display for PortKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PortKind::Serial => "a serial port",
            PortKind::Spi => "an SPI port (/dev/spidevB.C)",
        })
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No such file.
    #[error("there is no such device file")]
    NoFile {
        /// What it should be.
        kind: PortKind,
        /// The existing ports.
        there_are: Vec<String>,
    },
    /// Opening the file is not permitted.
    #[error("cannot be opened: permission denied")]
    Denied {
        /// What it should be.
        kind: PortKind,
    },
    /// The file cannot be opened.
    #[error("cannot be opened: {reason}")]
    Open {
        /// What it should be.
        kind: PortKind,
        /// The system's reason.
        reason: String,
    },
    /// Nothing arrived.
    #[error("nothing came within {millis} ms {waited_for}")]
    Silent {
        /// Milliseconds of waiting.
        millis: u64,
        /// What the host waited for.
        waited_for: &'static str,
    },
    /// The port accepts no bytes.
    #[error("the port accepts no more bytes")]
    Full,
    /// Bytes arrived, but no frame.
    #[error("no board answers: {bytes} bytes came, but no frame")]
    Garbage {
        /// Number of bytes.
        bytes: usize,
    },
    /// Another version of the link.
    #[error("the board uses version {found} of the link, but this program uses version {known}")]
    OtherLink {
        /// The board's version.
        found: u8,
        /// The program's version.
        known: u8,
    },
    /// The hardware at the other end does not match the program.
    #[error(transparent)]
    Wrong(#[from] WrongHardware),
    /// The size of beats differs from the configuration's.
    #[error("the board's bus is {found} bytes wide, but that of {name} is {asked}")]
    OtherBus {
        /// The board's bytes.
        found: u64,
        /// The configuration's bytes.
        asked: u32,
        /// Name of the configuration.
        name: String,
    },
    /// The port is gone.
    #[error("the connection broke: {reason}")]
    Unplugged {
        /// The system's reason.
        reason: String,
    },
    /// The board refused a frame.
    #[error("the board refused a frame: {}", match reason { 1 => "its CRC was wrong", 2 => "its kind is unknown", _ => "the reason is unknown" })]
    Refused {
        /// The reason's code.
        reason: u8,
    },
    /// The received bytes are not a valid frame.
    #[error("received an invalid frame: {what}")]
    BadFrame {
        /// Why not.
        what: String,
    },
    /// A frame that answers nothing.
    #[error("the board sent {found} {while_doing}")]
    Unexpected {
        /// The frame.
        found: &'static str,
        /// What the host was waiting for or doing.
        while_doing: &'static str,
    },
    /// A command makes no progress and does not end.
    #[error("the command makes no progress and does not end: cycle {cycle}, status {status:#x}")]
    Stuck {
        /// The cycle counter.
        cycle: u64,
        /// The status register.
        status: u32,
    },
    /// The work was stopped from outside.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The link failed during a command that must not be run again.
    #[error("{fault}, during a command that is not run again because {why}")]
    NotAgain {
        /// What failed.
        fault: Box<Fault>,
        /// Why it must not be run again.
        why: Once,
    },
}

/// Why a command must run only once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Once {
    /// It reads what earlier commands left in scratchpads.
    Scratchpads,
    /// It writes to memory on the board, where writes cannot be undone.
    BoardMemory,
}

impl std::fmt::Display for Once {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Once::Scratchpads => "it reads what earlier commands left in scratchpads",
            Once::BoardMemory => "it writes to the board's memory, where writes cannot be undone",
        })
    }
}

impl Fault {
    /// What the user can do.
    pub fn remedy(&self) -> String {
        let text = match self {
            Fault::NoFile { kind: PortKind::Serial, there_are } if there_are.is_empty() => {
                "plug the board in; no serial port was found"
            }
            Fault::NoFile { kind: PortKind::Spi, there_are } if there_are.is_empty() => {
                "enable SPI (a device-tree overlay such as dtparam=spi=on, and the module spidev); no /dev/spidevB.C was found"
            }
            Fault::NoFile { there_are, .. } => {
                return format!("plug the board in, or name its port; there are {}", there_are.join(", "));
            }
            Fault::Denied { kind: PortKind::Serial } => {
                "let your user open serial ports (sudo usermod -aG dialout $USER, then log in again), or end the program that uses it"
            }
            Fault::Denied { kind: PortKind::Spi } => {
                "let your user open SPI ports (sudo usermod -aG spi $USER, then log in again), or run as root"
            }
            Fault::Open { kind, .. } => return format!("name {kind} that no other program uses"),
            Fault::Silent { .. } | Fault::Full => {
                "check that the board has power and Tilewright's bitstream, and that this is its port and not its \
                 programmer's"
            }
            Fault::Garbage { .. } => {
                "set the bitstream's speed (serial:PATH@BAUD; spi:PATH@HZ, at most an eighth of the core's clock), and check that \
                 the board runs Tilewright's bitstream"
            }
            Fault::OtherLink { .. } => "synthesize and flash the board with this version",
            Fault::Wrong(wrong) => wrong.remedy(),
            Fault::OtherBus { .. } => {
                "pass the configuration of its bitstream with --hw, or flash a bitstream of this configuration"
            }
            Fault::Unplugged { .. } => "check the cable and the power, then run again",
            Fault::Refused { .. } | Fault::BadFrame { .. } => {
                "run again; if it fails again, use shorter wires or a lower speed (the bitstream's baud rate, or spi:PATH@HZ)"
            }
            Fault::Unexpected { .. } => "run again; if it fails again, check the board's power",
            Fault::Interrupted(_) => "run it again",
            Fault::Stuck { .. } => "run again; if it fails again, report it with the program",
            Fault::NotAgain { .. } => "run the whole program again",
        };
        text.into()
    }

    /// Whether repeating the operation can succeed.
    pub(super) fn is_passing(&self) -> bool {
        matches!(
            self,
            Fault::Silent { .. }
                | Fault::Full
                | Fault::Garbage { .. }
                | Fault::Refused { .. }
                | Fault::BadFrame { .. }
                | Fault::Unexpected { .. }
                | Fault::Stuck { .. }
        )
    }
}

impl From<LinkError> for DeviceError {
    fn from(error: LinkError) -> DeviceError {
        let LinkError { port, fault } = error;
        if let Fault::Interrupted(stopped) = fault {
            return stopped.into();
        }
        DeviceError::Tool { tool: port, reason: fault.to_string(), remedy: fault.remedy() }
    }
}
