//! Hardware to bitstreams: board shells and netlist checks.

pub mod netlist_check;
pub mod synth;
