//! Hardware to bitstreams: shells of boards, and checks of netlists.

pub mod netlist_check;
pub mod synth;
