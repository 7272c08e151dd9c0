use super::*;

/// A netlist of these cells, with the ports `clk` (net 2), `a` (nets 3 to 6) and `y` (nets 7 to 10).
fn netlist(cells: &str, names: &str) -> Result<Circuit, NetlistError> {
    let text = format!(
        r#"{{"modules": {{"top": {{"ports": {{
            "clk": {{"direction": "input", "bits": [2]}}, "a": {{"direction": "input", "bits": [3, 4, 5, 6]}},
            "y": {{"direction": "output", "bits": [7, 8, 9, 10]}}}}, "cells": {{{cells}}}, "netnames": {{{names}}}}}}}}}"#
    );
    Circuit::read(text.as_bytes(), "top", "clk")
}

fn cell(name: &str, kind: &str, parameters: &str, connections: &str) -> String {
    format!(r#""{name}": {{"type": "{kind}", "parameters": {{{parameters}}}, "connections": {{{connections}}}}}"#)
}

/// The circuit with `a`, after whole cycles.
struct Bench(Simulation);

impl Bench {
    fn new(cells: &[String], names: &str) -> Bench {
        Bench(Simulation::new(netlist(&cells.join(","), names).expect("it is a netlist")))
    }

    fn a(&mut self, value: u64) -> &mut Bench {
        for bit in 0..4 {
            self.0.set(3 + bit, value >> bit & 1 == 1);
        }
        self.0.settle();
        self
    }

    fn cycle(&mut self) -> &mut Bench {
        self.0.clock(true);
        self.0.clock(false);
        self
    }

    fn y(&self) -> u64 {
        self.0.number(self.0.circuit().port("y").expect("it has the port"))
    }
}

#[test]
fn gates_and_tables_give_what_their_kinds_say() {
    let gates = [
        cell("and", "$_AND_", "", r#""A": [3], "B": [4], "Y": [7]"#),
        cell("mux", "$_MUX_", "", r#""A": [3], "B": [4], "S": [5], "Y": [8]"#),
        // High where three or more of four are.
        cell("lut", "$lut", r#""LUT": "1110100010000000", "WIDTH": "100""#, r#""A": [3, 4, 5, 6], "Y": [9]"#),
        cell("not", "$_ORNOT_", "", r#""A": [3], "B": ["1"], "Y": [10]"#),
    ];
    let mut bench = Bench::new(&gates, "");
    for a in 0..16u64 {
        let bit = |at: u32| a >> at & 1;
        let mux = if bit(2) == 1 { bit(1) } else { bit(0) };
        let expected = [bit(0) & bit(1), mux, u64::from(a.count_ones() >= 3), bit(0)];
        let expected = expected.iter().rev().fold(0, |all, bit| all << 1 | bit);
        assert_eq!(bench.a(a).y(), expected, "{a:04b}");
    }
}

#[test]
fn what_a_table_does_not_depend_on_it_does_not_read() {
    // A low input leaves the inverse of A, though C is the table's own output; high ones leave A or not B.
    let gates = [
        cell("self", "$lut", r#""LUT": "0000000001010101""#, r#""A": [3, 4, 7, "0"], "Y": [7]"#),
        cell("high", "$lut", r#""LUT": "1011000000000000""#, r#""A": [3, 4, "1", "1"], "Y": [8]"#),
        cell("one", "$lut", r#""LUT": "1111111111111111""#, r#""A": [9, 9, 9, 9], "Y": [9]"#),
    ];
    let mut bench = Bench::new(&gates, "");
    for (a, y) in [(0, 0b111), (1, 0b110), (2, 0b101), (3, 0b110)] {
        assert_eq!(bench.a(a).y(), y, "{a}");
    }
}

#[test]
fn every_gate_of_two_or_three_inputs_has_its_own_table() {
    let value = |kind: &str, a: bool, b: bool, s: bool| match kind {
        "$_BUF_" => a,
        "$_NOT_" => !a,
        "$_AND_" => a && b,
        "$_NAND_" => !(a && b),
        "$_OR_" => a || b,
        "$_NOR_" => !(a || b),
        "$_XOR_" => a != b,
        "$_XNOR_" => a == b,
        "$_ANDNOT_" => a && !b,
        "$_ORNOT_" => a || !b,
        "$_MUX_" => {
            if s {
                b
            } else {
                a
            }
        }
        "$_NMUX_" => {
            if s {
                !b
            } else {
                !a
            }
        }
        kind => panic!("{kind} is not listed here"),
    };
    for (kind, inputs, table) in circuit::GATES {
        for place in 0..1u32 << inputs.len() {
            let bit = |at: u32| place >> at & 1 == 1;
            assert_eq!(table >> place & 1 == 1, value(kind, bit(0), bit(1), bit(2)), "{kind} at {place}");
        }
    }
}

#[test]
fn registers_take_what_was_there_before_the_edge() {
    // A ring of two registers, of which one begins high, one that takes at the falling edge, and one with its own reset.
    let cells = [
        cell("r0", "$_DFF_P_", "", r#""C": [2], "D": [8], "Q": [7]"#),
        cell("r1", "$_DFF_P_", "", r#""C": [2], "D": [7], "Q": [8]"#),
        cell("r2", "$_DFF_N_", "", r#""C": [2], "D": [7], "Q": [9]"#),
        cell("r3", "$_DFF_PN1_", "", r#""C": [2], "D": [3], "R": [4], "Q": [10]"#),
    ];
    let mut bench = Bench::new(&cells, r#""r0": {"bits": [7], "attributes": {"init": "1"}}"#);
    assert_eq!(bench.y() & 7, 0b001);
    bench.0.clock(true);
    assert_eq!(bench.y() & 7, 0b010);
    bench.0.clock(false);
    assert_eq!(bench.y() & 7, 0b010);
    bench.0.clock(true);
    assert_eq!(bench.y() & 7, 0b001);
    bench.0.clock(false);
    assert_eq!(bench.y() & 7, 0b101);
    // Without its reset it follows the edge, with it nothing.
    assert_eq!(bench.a(0b00).y() >> 3, 1);
    assert_eq!(bench.a(0b10).y() >> 3, 1);
    assert_eq!(bench.cycle().y() >> 3, 0);
    assert_eq!(bench.a(0b00).y() >> 3, 1);
    assert_eq!(bench.cycle().y() >> 3, 1);
}

/// A memory of four words of two bits with two write ports, which `a` addresses.
fn memory() -> String {
    let numbers =
        [("WIDTH", "10"), ("SIZE", "100"), ("ABITS", "10"), ("OFFSET", "0"), ("RD_PORTS", "1"), ("WR_PORTS", "10")];
    let bits = [("RD_CLK_ENABLE", "0"), ("WR_CLK_ENABLE", "11"), ("WR_CLK_POLARITY", "11"), ("INIT", "11100100")];
    let all: Vec<String> = numbers.iter().chain(&bits).map(|(name, bits)| format!(r#""{name}": "{bits}""#)).collect();
    let ports = r#""RD_ADDR": [3, 4], "RD_DATA": [7, 8], "WR_ADDR": [3, 4, 3, 4], "WR_DATA": ["1", "1", "0", "0"],
        "WR_EN": [5, 5, "0", 6], "WR_CLK": [2, 2]"#;
    cell("memory", "$mem_v2", &all.join(","), ports)
}

#[test]
fn memories_are_read_at_once_and_written_at_the_edge() {
    let mut bench = Bench::new(&[memory()], "");
    for at in 0..4 {
        assert_eq!(bench.a(at).y(), at, "as it begins");
    }
    assert_eq!(bench.a(0b0101).y(), 1);
    assert_eq!(bench.cycle().y(), 3);
    // Of two ports the later counts, for the bits that it writes.
    assert_eq!(bench.a(0b1100).cycle().y(), 1);
    assert_eq!(bench.a(0b0000).cycle().y(), 1);
    assert_eq!(bench.a(0b0001).y(), 3);
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    let refused =
        |cells: &str| netlist(cells, r#""back": {"bits": [7]}"#).map(|_| ()).expect_err("it is refused").to_string();
    let ring = [
        cell("a", "$_AND_", "", r#""A": [3], "B": [8], "Y": [7]"#),
        cell("b", "$_OR_", "", r#""A": [4], "B": [7], "Y": [8]"#),
    ];
    assert!(
        refused(&ring.join(",")).starts_with("gates of the netlist stand in a ring, among them the one that drives ")
    );
    let of = |kind: &str, parameters: &str, connections: &str| refused(&cell("x", kind, parameters, connections));
    assert_eq!(of("SB_MAC16", "", ""), "cell x of the netlist is of kind SB_MAC16, which the simulator does not know");
    assert_eq!(of("$_AND_", "", r#""A": [3]"#), "cell x of the netlist: it has no port B");
    let clock = r#""C": [3], "D": [8], "Q": [7]"#;
    assert_eq!(of("$_DFF_P_", "", clock), "cell x of the netlist: its clock is not the design's");
    let wide = of("$lut", r#""LUT": "1""#, r#""A": [3, 4, 5, 6, 7], "Y": [8]"#);
    assert_eq!(wide, "cell x of the netlist: it has 5 inputs");
    let clocked = refused(&memory().replace(r#""RD_CLK_ENABLE": "0""#, r#""RD_CLK_ENABLE": "1""#));
    assert_eq!(clocked, "cell memory of the netlist: it has a read port with a clock");
    assert!(matches!(Circuit::read(b"{}", "top", "clk"), Err(NetlistError::Json(_))));
    let empty = br#"{"modules": {}}"#;
    assert_eq!(
        Circuit::read(empty, "top", "clk").map(|_| ()).unwrap_err().to_string(),
        "the netlist has no module top"
    );
}
