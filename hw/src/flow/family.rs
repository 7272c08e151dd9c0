//! Families of parts.
//!
//! Everything that the flow knows about a family is its `Definition`, in a file of its own. A new family is such a
//! file, its `mod` line, and its line in the list of [`Family`] below.

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
    BitstreamReader, CellKind, CellKinds, Chip, Definition, Files, FormInput, Logic, LoopBuffer, OpenInputs, Pin,
    Programs, SPRAM_KIB, SdramCells,
};
pub use definition::{Part, Text};
pub(super) use delays::{CellDelay, Delays, PortDelay};
pub(super) use processor::Processor;

/// Makes the enum of families from the list of their definitions.
macro_rules! families {
    ($($(#[$doc:meta])* $family:ident = $definition:path,)*) => {
        /// A family of parts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum Family {
            $($(#[$doc])* $family,)*
        }

        impl Family {
            /// All families.
            pub const ALL: [Family; [$(stringify!($family)),*].len()] = [$(Family::$family),*];

            /// Returns what the flow knows about it.
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
    /// AMD Zynq-7000. Synthesis counts its resources; Vivado makes the bitstream.
    Xc7 = xc7::XC7,
    /// AMD Zynq UltraScale+. Made as [`Family::Xc7`] is.
    Xcup = xcup::XCUP,
}

impl Family {
    /// Returns the name in board files.
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// Returns its parts.
    pub fn parts(self) -> &'static [Part] {
        self.definition().parts
    }

    /// Returns the part with this name in board files.
    pub fn part(self, name: &str) -> Option<&'static Part> {
        self.parts().iter().find(|part| part.name == name)
    }

    /// Returns whether its parts have a processor, which is the host, with the core as its peripheral.
    pub fn has_processor(self) -> bool {
        self.definition().processor.is_some()
    }

    /// Returns the place-and-route program; `None` if no open program routes its parts.
    pub fn router(self) -> Option<&'static str> {
        self.definition().programs.router
    }

    /// Returns the program that makes a bitstream of the router's output.
    pub fn packer(self) -> &'static str {
        self.definition().programs.packer
    }

    /// Returns the name of the bitstream's file.
    pub fn bitstream_file(self) -> &'static str {
        self.definition().files.bitstream
    }

    /// Returns the Yosys commands that map a design with the top module `top` to the cells of a part; none for a part
    /// of another family.
    pub fn synthesis(self, part: &str, top: &str) -> Vec<String> {
        self.part(part).map_or(Vec::new(), |part| (self.definition().synthesis)(part, top))
    }

    /// Returns the files that the commands of [`Family::synthesis`] read: delays of cells that Yosys does not know, and
    /// mappings to cells that the router expects.
    pub fn synthesis_files(self) -> &'static [Text] {
        self.definition().synthesis_files
    }

    /// Returns the modules of the core that the family replaces with its own cells.
    ///
    /// Names are paths in [`crate::rtl::SOURCES`]; texts declare modules without contents, which the commands of
    /// [`Family::synthesis`] map.
    pub fn own_modules(self) -> &'static [Text] {
        self.definition().own_modules
    }

    /// Returns the Yosys commands that read the delays of [`Family::own_modules`], which are in `folder`. Run them
    /// after reading the sources.
    pub fn own_times(self, folder: &str) -> impl Iterator<Item = String> {
        let times = move |name: &str| format!("read_verilog -lib -specify -overwrite -D TW_TIMES {folder}/{name}");
        self.own_modules().iter().map(move |module| times(module.name))
    }

    /// Returns the file with the simulation models of the family's cells, relative to Yosys's folder of shared files.
    pub fn cell_models(self) -> &'static str {
        self.definition().cell_models
    }

    /// Returns Verilog models of the cells that a board's design instantiates, for its clock and its pins; `None` if
    /// there are none.
    pub fn board_cells(self) -> Option<&'static str> {
        self.definition().board_cells
    }
}

#[cfg(test)]
mod tests {
    use super::Family;

    /// A board's file names a family by the lowercase name of its variant.
    #[test]
    fn families_are_read_by_the_names_that_they_tell() {
        for family in Family::ALL {
            let read: Result<Family, _> = serde_json::from_value(family.name().into());
            assert_eq!(read.ok(), Some(family), "{}", family.name());
        }
    }
}
