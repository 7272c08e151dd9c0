//! What goes wrong on a link, with what to do.

use tilewright_hw::device::DeviceError;
use tilewright_hw::host::WrongHardware;

/// What went wrong on a port.
#[derive(Debug, thiserror::Error)]
#[error("{port}: {fault}; {}", fault.remedy())]
pub struct LinkError {
    /// The port.
    pub port: String,
    /// What was seen.
    pub fault: Fault,
}

/// What a link's bytes go through on this machine.
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

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No such file.
    #[error("there is no such device file")]
    NoFile {
        /// What it should be.
        kind: PortKind,
        /// The ports that there are.
        there_are: Vec<String>,
    },
    /// The file may not be opened.
    #[error("may not be opened: permission denied")]
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
    /// Nothing came.
    #[error("nothing came within {millis} ms, {waited_for}")]
    Silent {
        /// How long.
        millis: u64,
        /// What was due.
        waited_for: &'static str,
    },
    /// Bytes do not go out.
    #[error("the port takes no more bytes")]
    Full,
    /// Bytes came, and no frame.
    #[error("no board answers: {bytes} bytes came, no frame among them")]
    Garbage {
        /// How many.
        bytes: usize,
    },
    /// Another version of the link.
    #[error("the board speaks version {found} of the link, this program version {known}")]
    OtherLink {
        /// The board's.
        found: u8,
        /// The program's.
        known: u8,
    },
    /// What is behind the link is not what the program is for.
    #[error(transparent)]
    Wrong(#[from] WrongHardware),
    /// Beats of another size than the configuration's.
    #[error("the board's bus has {found} bytes, that of {name} {asked}")]
    OtherBus {
        /// The board's.
        found: u64,
        /// The configuration's.
        asked: u32,
        /// Its name.
        name: String,
    },
    /// The port is gone.
    #[error("the connection broke: {reason}")]
    Unplugged {
        /// The system's reason.
        reason: String,
    },
    /// The board refused a frame.
    #[error("the board refused a frame: {}", match reason { 1 => "its CRC was wrong", 2 => "its kind is unknown", _ => "for no reason that is known" })]
    Refused {
        /// The reason's code.
        reason: u8,
    },
    /// What came is no frame.
    #[error("what came is no frame: {what}")]
    BadFrame {
        /// Why not.
        what: String,
    },
    /// A frame that is no answer to anything.
    #[error("the board sent {found} {while_doing}")]
    Unexpected {
        /// The frame.
        found: &'static str,
        /// What was due.
        while_doing: &'static str,
    },
    /// A command neither runs nor ends.
    #[error("the command neither goes on nor ends: cycle {cycle}, status {status:#x}")]
    Stuck {
        /// The cycle counter.
        cycle: u64,
        /// The status register.
        status: u32,
    },
    /// The link failed while a command ran that may not be run again.
    #[error("{fault}, while a command ran {why}, so that it is not run again")]
    NotAgain {
        /// What failed.
        fault: Box<Fault>,
        /// Why it may not.
        why: Once,
    },
}

/// Why a command may be run once alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Once {
    /// It reads what others left in scratchpads.
    Scratchpads,
    /// It writes into memory of the board, where nothing takes that back.
    BoardMemory,
}

impl std::fmt::Display for Once {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Once::Scratchpads => "that reads what others left in scratchpads",
            Once::BoardMemory => "whose memory is the board's, where what it has written cannot be taken back",
        })
    }
}

impl Fault {
    /// What to do.
    pub fn remedy(&self) -> String {
        let text = match self {
            Fault::NoFile { kind: PortKind::Serial, there_are } if there_are.is_empty() => {
                "plug the board in; there is no serial port now"
            }
            Fault::NoFile { kind: PortKind::Spi, there_are } if there_are.is_empty() => {
                "turn SPI on (a device-tree overlay such as dtparam=spi=on, and the module spidev); there is no /dev/spidevB.C now"
            }
            Fault::NoFile { there_are, .. } => {
                return format!("plug the board in, or name its port; there are {}", there_are.join(", "));
            }
            Fault::Denied { kind: PortKind::Serial } => {
                "let your user open serial ports (sudo usermod -aG dialout $USER, then log in again), or close what holds it"
            }
            Fault::Denied { kind: PortKind::Spi } => {
                "let your user open SPI ports (sudo usermod -aG spi $USER, then log in again), or run as root"
            }
            Fault::Open { kind, .. } => return format!("name {kind} that no other program holds"),
            Fault::Silent { .. } | Fault::Full => {
                "see that the board has power, is flashed with Tilewright's bitstream, and that this is its port and not its \
                 programmer's"
            }
            Fault::Garbage { .. } => {
                "give the bitstream's speed (serial:PATH@BAUD; spi:PATH@HZ, an eighth of the core's clock at the most), and see that \
                 the board runs Tilewright's bitstream"
            }
            Fault::OtherLink { .. } => "synthesize and flash the board with this version",
            Fault::Wrong(wrong) => wrong.remedy(),
            Fault::OtherBus { .. } => "give the configuration of its bitstream (--hw), or flash it with this one",
            Fault::Unplugged { .. } => "see to cable and power, then run again",
            Fault::Refused { .. } | Fault::BadFrame { .. } => {
                "run again; where it comes back, take shorter wires, or a lower speed: a bitstream's baud rate, or spi:PATH@HZ"
            }
            Fault::Unexpected { .. } => "run again; where it comes back, look at the board's power",
            Fault::Stuck { .. } => "run again; where it comes back, report it with the program",
            Fault::NotAgain { .. } => "run the whole program again",
        };
        text.into()
    }

    /// Whether the same may go well when it is tried again.
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
        DeviceError::Tool { tool: port, reason: fault.to_string(), remedy: fault.remedy() }
    }
}
