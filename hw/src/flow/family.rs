//! Families of parts. A family is one [`Definition`] in a file of its own; [`Family`] lists them.

mod clock;
mod definition;
mod delays;
mod ecp5;
mod gowin;
mod ice40;
mod nexus;
mod processor;
mod xc7;
mod xcup;

use serde::Deserialize;

pub(super) use definition::{
    BitstreamReader, CellKind, CellKinds, Chip, Definition, Files, Logic, Pin, Programs, SPRAM_KIB, SdramCells,
};
pub use definition::{Part, Text};
pub(super) use delays::{CellDelay, Delays, PortDelay};
pub(super) use processor::Processor;

/// Makes the enum of families, with the definition of each.
macro_rules! families {
    ($($(#[$doc:meta])* $family:ident = $definition:path,)*) => {
        /// A family of parts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum Family {
            $($(#[$doc])* $family,)*
        }

        impl Family {
            /// All.
            pub const ALL: [Family; [$(stringify!($family)),*].len()] = [$(Family::$family),*];

            /// What the flow knows about it.
            pub(super) fn definition(self) -> &'static Definition {
                match self {
                    $(Family::$family => &$definition,)*
                }
            }
        }
    };
}

families! {
    /// Lattice iCE40 LP, HX and UP.
    Ice40 = ice40::ICE40,
    /// Lattice ECP5.
    Ecp5 = ecp5::ECP5,
    /// Gowin LittleBee and Arora.
    Gowin = gowin::GOWIN,
    /// Lattice Nexus: CrossLink-NX, Certus-NX.
    Nexus = nexus::NEXUS,
    /// AMD Zynq-7000. Synthesized for its resources; the bitstream is the vendor tool's.
    Xc7 = xc7::XC7,
    /// AMD Zynq UltraScale+. As [`Family::Xc7`].
    Xcup = xcup::XCUP,
}

impl Family {
    /// The name in board files.
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// Its parts.
    pub fn parts(self) -> &'static [Part] {
        self.definition().parts
    }

    /// The part that board files name so.
    pub fn part(self, name: &str) -> Option<&'static Part> {
        self.parts().iter().find(|part| part.name == name)
    }

    /// Whether a processor beside the fabric is the host, and the core its peripheral.
    pub fn has_processor(self) -> bool {
        self.definition().processor.is_some()
    }

    /// The place-and-route program, if there is an open one.
    pub fn router(self) -> Option<&'static str> {
        self.definition().programs.router
    }

    /// The program that makes a bitstream of what the router wrote.
    pub fn packer(self) -> &'static str {
        self.definition().programs.packer
    }

    /// The bitstream.
    pub fn bitstream_file(self) -> &'static str {
        self.definition().files.bitstream
    }

    /// The Yosys commands that map a design whose top module is `top` to the cells of a part; none for a part that is
    /// not the family's.
    pub fn synthesis(self, part: &str, top: &str) -> Vec<String> {
        self.part(part).map_or(Vec::new(), |part| (self.definition().synthesis)(part, top))
    }

    /// The files that [`Family::synthesis`] reads: what cells take that are no tables, where Yosys does not know, or
    /// what the router wants otherwise than synthesis makes it.
    pub fn synthesis_files(self) -> &'static [Text] {
        self.definition().synthesis_files
    }

    /// The modules of the core for which the family has cells of its own: the file among [`crate::rtl::SOURCES`], and
    /// what it says in its place, a module without contents until [`Family::synthesis`] maps it.
    pub fn own_modules(self) -> &'static [Text] {
        self.definition().own_modules
    }

    /// How Yosys is told the times of [`Family::own_modules`], whose files lie in a folder, once it has read the
    /// sources.
    pub fn own_times(self, folder: &str) -> impl Iterator<Item = String> {
        let times = move |name: &str| format!("read_verilog -lib -specify -overwrite -D TW_TIMES {folder}/{name}");
        self.own_modules().iter().map(move |module| times(module.name))
    }

    /// The simulation models of the family's cells, in Yosys's folder of shared files.
    pub fn cell_models(self) -> &'static str {
        self.definition().cell_models
    }

    /// Models of the cells of the family that a board's design names itself, for its clock and its pins: plain Verilog.
    /// None where it names none.
    pub fn board_cells(self) -> Option<&'static str> {
        self.definition().board_cells
    }
}

#[cfg(test)]
mod tests {
    use super::Family;

    /// Board files name families by the names of the enum's variants.
    #[test]
    fn families_are_read_by_the_names_that_they_tell() {
        for family in Family::ALL {
            let read: Result<Family, _> = serde_json::from_value(family.name().into());
            assert_eq!(read.ok(), Some(family), "{}", family.name());
        }
    }
}
