//! The table of devices: the one place that says what each can do.

/// What computes a whole model if there is no accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelRunner {
    /// This machine's processor.
    Cpu,
    /// This machine's GPU.
    Gpu,
}

impl ModelRunner {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            ModelRunner::Cpu => "CPU",
            ModelRunner::Gpu => "GPU",
        }
    }
}

/// How programs of a device are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By the functional simulator.
    Functional,
    /// By the cycle model.
    Cycle,
    /// By the Verilated design.
    Design,
    /// By a board behind a port.
    Board,
    /// By the device of a server.
    Remote,
    /// Not at all: the host computes everything.
    None(ModelRunner),
}

/// A row of the table of devices.
#[derive(Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its name; for boards, the kind of port.
    pub name: &'static str,
    /// How messages write it.
    pub short: &'static str,
    /// How help writes it.
    pub usage: &'static str,
    /// What it is good for, in help.
    pub about: &'static str,
    /// How its programs run.
    pub way: Way,
    /// Whether it reports exact cycles, and when each instruction ran.
    pub exact: bool,
    /// Whether it records the design's signals.
    pub waves: bool,
    /// Whether it refuses programs that are correct only by accident of timing.
    pub strict: bool,
}

/// A device without any of the extras.
const PLAIN: Spec =
    Spec { name: "", short: "", usage: "", about: "", way: Way::Functional, exact: false, waves: false, strict: false };

/// All devices.
pub static DEVICES: [Spec; 10] = [
    Spec { name: "fsim", short: "fsim", usage: "fsim", about: "answers", way: Way::Functional, ..PLAIN },
    Spec {
        name: "csim",
        short: "csim",
        usage: "csim",
        about: "answers and exact cycles",
        way: Way::Cycle,
        exact: true,
        strict: true,
        ..PLAIN
    },
    Spec {
        name: "rtl",
        short: "rtl",
        usage: "rtl",
        about: "the design itself",
        way: Way::Design,
        exact: true,
        waves: true,
        ..PLAIN
    },
    Spec {
        name: "cpu",
        short: "cpu",
        usage: "cpu",
        about: "nothing is offloaded",
        way: Way::None(ModelRunner::Cpu),
        ..PLAIN
    },
    Spec {
        name: "cuda",
        short: "cuda",
        usage: "cuda",
        about: "everything on the GPU",
        way: Way::None(ModelRunner::Gpu),
        ..PLAIN
    },
    Spec {
        name: "serial",
        short: "serial:PATH",
        usage: "serial:PATH[@BAUD]",
        about: "a board at a serial port",
        way: Way::Board,
        ..PLAIN
    },
    Spec {
        name: "spi",
        short: "spi:PATH",
        usage: "spi:PATH[@HZ]",
        about: "a board at an SPI port",
        way: Way::Board,
        ..PLAIN
    },
    Spec {
        name: "uio",
        short: "uio",
        usage: "uio[:NAME[@BUFFER]]",
        about: "the core next to this processor",
        way: Way::Board,
        ..PLAIN
    },
    Spec {
        name: "remote",
        short: "remote:HOST:PORT",
        usage: "remote:HOST:PORT",
        about: "the device of a server",
        way: Way::Remote,
        ..PLAIN
    },
    Spec {
        name: "tracker",
        short: "tracker:HOST:PORT/KIND",
        usage: "tracker:HOST:PORT/KIND",
        about: "a device that a tracker chooses",
        way: Way::Remote,
        ..PLAIN
    },
];

/// The devices that `wanted` accepts, as a list for messages: `fsim, csim or rtl`.
pub fn names(wanted: impl Fn(&Spec) -> bool) -> String {
    let names: Vec<&str> = DEVICES.iter().filter(|spec| wanted(spec)).map(|spec| spec.short).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => one.to_string(),
        [all @ .., last] => format!("{} or {last}", all.join(", ")),
    }
}

/// The devices that `wanted` accepts, for the help of an option: `fsim (answers), csim (answers and exact cycles)`.
pub fn help(wanted: impl Fn(&Spec) -> bool) -> String {
    let wanted = DEVICES.iter().filter(|spec| wanted(spec));
    wanted.map(|spec| format!("{} ({})", spec.usage, spec.about)).collect::<Vec<_>>().join(", ")
}

impl Spec {
    /// Whether values of single layers can be read from it: simulators, boards and this processor.
    pub fn keeps_values(&self) -> bool {
        self.way != Way::None(ModelRunner::Gpu)
    }

    /// Whether it is a board behind a port.
    pub fn is_board(&self) -> bool {
        self.way == Way::Board
    }

    /// Whether its runs may report cycles; what a server lends is known when it is opened.
    pub fn may_count_cycles(&self) -> bool {
        self.exact || matches!(self.way, Way::Board | Way::Remote)
    }

    /// Whether each opening gives a new device, which other programs cannot see.
    pub fn is_simulator(&self) -> bool {
        matches!(self.way, Way::Functional | Way::Cycle | Way::Design)
    }

    /// Whether it runs the accelerator's programs.
    pub fn is_accelerator(&self) -> bool {
        !matches!(self.way, Way::None(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_the_devices_that_are_wanted() {
        assert_eq!(names(|spec| spec.exact), "csim or rtl");
        assert_eq!(names(|spec| spec.waves), "rtl");
        assert_eq!(names(|_| false), "");
        assert_eq!(help(|spec| spec.exact), "csim (answers and exact cycles), rtl (the design itself)");
    }
}
