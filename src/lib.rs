//! Tilewright: facade library.
