//! The RTL's sources, carried in the library so that an installed binary can build a simulator or a netlist.

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        /// Name and text of every SystemVerilog source, packages first; `tw_cfg_pkg` is written per configuration by
        /// [`crate::isa::config_package`] and comes before them all.
        pub const SOURCES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../rtl/", $name)))),*];
    };
}

sources!("gen/tw_isa_pkg.sv",);

/// The top module.
pub const TOP: &str = "tw_core";
