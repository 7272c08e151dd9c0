//! Analyzes runs: comparison, bisection, dumps, traces, profiles, benchmarks.

pub mod bench;
pub mod bisect;
pub mod diff;
pub mod dump;
pub mod explain;
pub mod fit;
pub mod layers;
pub mod levels;
pub mod mapping;
pub mod parts;
pub mod profile;
pub mod stalls;
pub mod trace;
