use super::*;
use crate::board::sdram::SdramChip;
use std::time::Duration;
use tilewright_hw::flow::board::{Board, CoreMemory};
use tilewright_hw::link::ByteStream;

/// Creates a netlist of these cells with the ports `clk` (net 2), `a` (nets 3 to 6) and `y` (nets 7 to 10).
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

/// A simulation with helpers to set `a`, run whole cycles and read `y`.
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
        // High if three or more of the four inputs are high.
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
    // A low input leaves the inverse of A, though C is the table's own output. High inputs leave A or not B.
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
    // Two registers in a ring, one of them initially high; one on the falling edge; and one with an asynchronous reset.
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
    // Without the reset it follows the clock edge; with the reset it does not.
    assert_eq!(bench.a(0b00).y() >> 3, 1);
    assert_eq!(bench.a(0b10).y() >> 3, 1);
    assert_eq!(bench.cycle().y() >> 3, 0);
    assert_eq!(bench.a(0b00).y() >> 3, 1);
    assert_eq!(bench.cycle().y() >> 3, 1);
}

/// A memory of four 2-bit words with two write ports, addressed by `a`.
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
    // If two ports write, the later one wins for the bits that it enables.
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
    assert!(refused(&ring.join(",")).starts_with("the netlist has a combinational loop through the gate that drives "));
    let of = |kind: &str, parameters: &str, connections: &str| refused(&cell("x", kind, parameters, connections));
    assert_eq!(of("SB_MAC16", "", ""), "cell x of the netlist has type SB_MAC16, which the simulator does not support");
    assert_eq!(of("$_AND_", "", r#""A": [3]"#), "cell x of the netlist: it has no port B");
    let clock = r#""C": [3], "D": [8], "Q": [7]"#;
    assert_eq!(of("$_DFF_P_", "", clock), "cell x of the netlist: its clock is not the design's");
    let wide = of("$lut", r#""LUT": "1""#, r#""A": [3, 4, 5, 6, 7], "Y": [8]"#);
    assert_eq!(wide, "cell x of the netlist: it has 5 inputs, but at most 4 are supported");
    let clocked = refused(&memory().replace(r#""RD_CLK_ENABLE": "0""#, r#""RD_CLK_ENABLE": "1""#));
    assert_eq!(clocked, "cell memory of the netlist: it has a clocked read port, which is not supported");
    assert!(matches!(Circuit::read(b"{}", "top", "clk"), Err(NetlistError::Json(_))));
    let empty = br#"{"modules": {}}"#;
    assert_eq!(
        Circuit::read(empty, "top", "clk").map(|_| ()).unwrap_err().to_string(),
        "the netlist has no module top"
    );
}

/// Creates a netlist with the ports of a board with ulx3s-25f's SDRAM, whose clock is the inverse of the design's. Each
/// command pin is a constant, and so is the enable of the data pins.
fn with_sdram(command: &str, driven: &str) -> String {
    let bits = |range: std::ops::Range<u32>| range.map(|net| net.to_string()).collect::<Vec<_>>().join(", ");
    let constants = |bits: usize| vec!["\"0\""; bits].join(", ");
    let [ras, cas, we] = [0, 1, 2].map(|at| format!("\"{}\"", &command[at..=at]));
    let pins = [
        ("clk", "input", "2".to_string()),
        ("uart_rx", "input", "3".into()),
        ("uart_tx", "output", "\"1\"".into()),
        ("sdram_clk", "output", "4".into()),
        ("sdram_cke", "output", "\"1\"".into()),
        ("sdram_cs_n", "output", "\"0\"".into()),
        ("sdram_ras_n", "output", ras),
        ("sdram_cas_n", "output", cas),
        ("sdram_we_n", "output", we),
        ("sdram_a", "output", constants(13)),
        ("sdram_ba", "output", constants(2)),
        ("sdram_dqm", "output", constants(2)),
        ("sdram_dq", "inout", bits(20..36)),
        ("seen", "output", bits(40..56)),
    ];
    let ports =
        pins.map(|(name, direction, bits)| format!(r#""{name}": {{"direction": "{direction}", "bits": [{bits}]}}"#));
    let mut cells = vec![cell("not", "$_NOT_", "", r#""A": [2], "Y": [4]"#)];
    for bit in 0..16 {
        let enable = if bit == 0 { driven } else { "0" };
        let (pin, seen) = (20 + bit, 40 + bit);
        cells.push(cell(
            &format!("pad{bit}"),
            "$_TBUF_",
            "",
            &format!(r#""A": ["1"], "E": ["{enable}"], "Y": [{pin}]"#),
        ));
        cells.push(cell(&format!("in{bit}"), "$_BUF_", "", &format!(r#""A": [{pin}], "Y": [{seen}]"#)));
    }
    let (ports, cells) = (ports.join(","), cells.join(","));
    format!(r#"{{"modules": {{"top": {{"ports": {{{ports}}}, "cells": {{{cells}}}, "netnames": {{}}}}}}}}"#)
}

/// Creates a board from such a netlist, with a clock of 50 MHz.
fn board_with_sdram(netlist: &str) -> Result<NetlistBoard, NetlistError> {
    let CoreMemory::Sdram(chip) = Board::load("ulx3s-25f").expect("a board").memory else { panic!("has an SDRAM") };
    let circuit = Circuit::read(netlist.as_bytes(), "top", "clk").expect("a netlist");
    NetlistBoard::new(circuit, 4, 50e6, Some(SdramChip::new(&chip, 50.0)))
}

#[test]
fn a_chip_at_a_netlists_pins_sees_its_commands_and_tells_what_is_wrong() {
    let run = |command, driven| {
        let mut board = board_with_sdram(&with_sdram(command, driven)).expect("it has the pins");
        board.receive(&mut [0], Duration::from_micros(10)).map_err(|error| error.to_string())
    };
    assert_eq!(run("111", "0"), Ok(0));
    for (command, driven, said) in [
        ("101", "0", "SDRAM, edge 0: word accessed before the mode is set"),
        ("011", "0", "SDRAM, edge 0: row opened before the mode is set"),
        ("010", "0", "SDRAM, edge 0: the first command comes 0 us after power-up"),
        ("000", "0", "mode set outside the power-up sequence"),
        ("111", "1", "SDRAM, edge 0: only data pins 0x1 are driven"),
    ] {
        let error = run(command, driven).expect_err(said);
        assert!(error.contains(said), "{said}: {error}");
    }
}

#[test]
fn pins_of_both_directions_read_what_drives_them() {
    let mut board = board_with_sdram(&with_sdram("111", "1")).expect("it has the pins");
    let _ = board.receive(&mut [0], Duration::from_micros(1));
    let seen = board.port("seen");
    // Undriven bits have the socket's floating level.
    assert_eq!((seen & 1, seen >> 1), (1, 0x5a5a >> 1));
}

#[test]
fn a_netlist_without_its_sdrams_pins_is_refused() {
    let refused = |netlist: String| board_with_sdram(&netlist).map(|_| ()).expect_err("it is refused").to_string();
    let whole = with_sdram("111", "0");
    let said = "the netlist has no port sdram_we_n that matches its SDRAM";
    assert_eq!(refused(whole.replace("sdram_we_n", "other")), said);
    let error = refused(whole.replace("$_TBUF_", "$_NOT_").replace(r#", "E": ["0"]"#, ""));
    assert_eq!(error, "the netlist has no port sdram_dq that matches its SDRAM");
    let inside = whole.replace(r#""direction": "inout""#, r#""direction": "output""#);
    let error = Circuit::read(inside.as_bytes(), "top", "clk").map(|_| ()).expect_err("it is refused").to_string();
    assert!(
        error.ends_with("of the netlist is driven by a tristate buffer, but is not a bidirectional pin"),
        "{error}"
    );
    let twice = whole.replace(r#""Y": [21]"#, r#""Y": [20]"#);
    let error = Circuit::read(twice.as_bytes(), "top", "clk").map(|_| ()).expect_err("it is refused").to_string();
    assert!(error.ends_with("another cell drives the same pin"), "{error}");
}
