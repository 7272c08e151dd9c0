//! Checks that must fail: boards with a faulty line, and a netlist with a planted fault.

use super::*;
use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use tilewright_hw::flow::design::SHELL;
use tilewright_hw::flow::sdram::Sdram;
use tilewright_hw::flow::steps::Progress;
use tilewright_hw::link::ByteStream;
use tilewright_sim::board::LinkPins;
use tilewright_sim::board::sdram::SdramChip;

const SMALL: &str = include_str!("../../../driver/tests/board/small.toml");
const CLOCKS: u32 = 4;
const PROGRAMS: u64 = 2;

/// Fault in the bytes received from a board.
#[derive(Clone, Copy)]
enum Wrong {
    Nothing,
    /// No byte arrives.
    Dead,
    /// No byte arrives after this many.
    StopsAfter(usize),
    /// After this many bytes, each one has a flipped bit.
    SpoiledAfter(usize),
}

/// A board with a faulty line.
struct Spoiled {
    board: VirtualBoard,
    wrong: Wrong,
    came: usize,
    held: VecDeque<u8>,
}

impl SimulatedBoard for Spoiled {
    fn sdram_mut(&mut self) -> Option<&mut SdramChip> {
        self.board.sdram_mut()
    }
}

impl ByteStream for Spoiled {
    fn name(&self) -> &str {
        "line"
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.board.send(bytes)
    }

    fn receive(&mut self, bytes: &mut [u8], timeout: Duration) -> io::Result<usize> {
        let mut got = [0; 256];
        let count = self.board.receive(&mut got, timeout)?;
        for byte in &got[..count] {
            self.came += 1;
            match self.wrong {
                Wrong::Nothing => self.held.push_back(*byte),
                Wrong::StopsAfter(last) if self.came <= last => self.held.push_back(*byte),
                Wrong::SpoiledAfter(last) => self.held.push_back(if self.came <= last { *byte } else { byte ^ 0x10 }),
                Wrong::Dead | Wrong::StopsAfter(_) => {}
            }
        }
        let given = bytes.len().min(self.held.len());
        for (byte, held) in bytes.iter_mut().zip(self.held.drain(..given)) {
            *byte = held;
        }
        Ok(given)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.held.clear();
        self.board.clear()
    }

    fn now(&self) -> Duration {
        self.board.now()
    }
}

/// The random programs of a check.
fn jobs(board: &Board, config: &HwConfig) -> Vec<Job> {
    let request = CheckRequest { board, config, shell: "", mhz: board.core_mhz, programs: PROGRAMS, seed: 1 };
    programs(&request).into_iter().enumerate().map(|(at, program)| Job::of_program(at, program)).collect()
}

#[test]
fn a_line_that_is_dead_or_spoiled_or_stops_is_a_difference() {
    if !tilewright_testing::has_program("verilator") {
        return;
    }
    let config = HwConfig::parse("small", SMALL).expect("a configuration");
    let host = tilewright_shell::ShellLink::Uart { clocks_per_bit: CLOCKS };
    let shell = tilewright_shell::ShellConfig { host, memory: tilewright_shell::ShellMemory::Host, leds: 0 };
    let shell = tilewright_shell::generate(&config, &shell).expect("a shell");
    let design = BoardDesign::of_shell(&config, &shell, SHELL, LinkPins::Uart { clocks_per_bit: CLOCKS });
    let board = || VirtualBoard::new(&design, None, &|_| {}).expect("the design builds");
    let any = Board::load("hx8k-evn").expect("a board");
    let runs = of_sources(board(), &config, jobs(&any, &config)).expect("the sources run");
    let told = |wrong| {
        let line = Spoiled { board: board(), wrong, came: 0, held: VecDeque::new() };
        let check = compare("routed netlist", line, &config, &runs, &mut |_: Progress| {});
        assert_eq!((check.netlist.as_str(), &check.unchecked), ("routed netlist", &None));
        check
    };
    let check = told(Wrong::Nothing);
    assert_eq!((check.difference, check.programs), (None, PROGRAMS));
    let dead = told(Wrong::Dead).difference.expect("it says nothing");
    assert!(dead.contains("does not answer") && dead.contains("nothing came within"), "{dead}");
    for wrong in [Wrong::SpoiledAfter(0), Wrong::SpoiledAfter(2000), Wrong::StopsAfter(2000)] {
        let check = told(wrong);
        let difference = check.difference.expect("it differs");
        let begins = ["the netlist does not answer", "program 1: the netlist fails"];
        assert!(begins.iter().any(|begin| difference.starts_with(begin)), "{difference}");
    }
}

/// The shell of a configuration on a board, and the model of its synthesized netlist; none if the tools are missing, so
/// that the test skips.
fn synthesized(board: &Board, config: &HwConfig) -> Option<(String, Vec<u8>)> {
    let shell = crate::flow::synth::shell(board, config, board.core_mhz).expect("a shell");
    let dir = tempfile::tempdir().expect("a folder");
    let cache = rtl::default_cache_dir().expect("a cache");
    let asked = tilewright_hw::flow::FlowRequest {
        board,
        config,
        hw: &config.name,
        shell: &shell,
        mhz: board.core_mhz,
        seed: 1,
        allow_slow: false,
        estimate: true,
        time_limit: None,
        checker: "",
    };
    let outcome = match tilewright_hw::flow::synthesize(&asked, dir.path(), &cache, &mut |_| {}) {
        Err(error @ FlowError::MissingTool { .. }) => {
            tilewright_testing::skip(&error.to_string());
            return None;
        }
        outcome => outcome.expect("it is synthesized"),
    };
    let modeled = model(board, Stage::Synthesized, &outcome, &cache, &mut |_| {}).expect("a model").expect("a model");
    Some((shell, std::fs::read(modeled.file(MODEL)).expect("the model")))
}

/// The netlist of the smallest board, unchanged and with one inverted lookup table.
#[test]
fn a_netlist_with_a_planted_fault_is_told_from_the_sources() {
    let board = Board::load("hx8k-evn").expect("a board");
    if !tilewright_testing::has_program("verilator") {
        return;
    }
    let config = board.default_config().expect("a configuration");
    let Some((shell, text)) = synthesized(&board, &config) else { return };
    let clocks_per_bit = board.clocks_per_bit(board.core_mhz).expect("a line");
    let design = BoardDesign::of_board(&board, &config, &shell, board.core_mhz).expect("a design");
    let sources = VirtualBoard::new(&design, None, &|_| {}).expect("the design builds");
    let runs = of_sources(sources, &config, jobs(&board, &config)).expect("the sources run");
    let compared = |text: &[u8]| {
        let circuit = Circuit::read(text, TOP, CLOCK).expect("a netlist");
        let netlist = NetlistBoard::new(circuit, clocks_per_bit, design.clock_hz, None).expect("a board");
        compare(Stage::Synthesized.name(), netlist, &config, &runs, &mut |_: Progress| {}).difference
    };
    assert_eq!(compared(&text), None);
    let mut netlist: Value = serde_json::from_slice(&text).expect("JSON");
    plant(&mut netlist);
    let difference = compared(&serde_json::to_vec(&netlist).expect("JSON")).expect("it differs");
    assert!(difference.starts_with("program "), "{difference}");
}

/// Inverts a lookup table that computes a bit of what gemm adds.
fn plant(netlist: &mut Value) {
    let cells = netlist["modules"][TOP]["cells"].as_object_mut().expect("cells");
    let is_sum =
        |name: &str| name.contains(".u_gemm.") && name.contains("sum_o") && name.ends_with("_D_SB_LUT4_O.u_lut");
    let (_, cell) = cells.iter_mut().find(|(name, _)| is_sum(name)).expect("gemm has sums");
    let table = cell["parameters"]["LUT"].as_str().expect("a table");
    let turned: String = table.chars().map(|bit| if bit == '0' { '1' } else { '0' }).collect();
    cell["parameters"]["LUT"] = turned.into();
}

/// The netlist of a board with an SDRAM: unchanged, with a chip whose timing the controller violates, and with two
/// swapped pins.
#[test]
#[ignore = "long; make test-full runs it"]
fn a_netlist_that_uses_its_sdram_wrongly_is_told() {
    let board = Board::load("ulx3s-25f").expect("a board");
    if !tilewright_testing::has_program("verilator") {
        return;
    }
    let config = HwConfig::parse("small", SMALL).expect("a configuration");
    let Some((shell, text)) = synthesized(&board, &config) else { return };
    let design = BoardDesign::of_board(&board, &config, &shell, board.core_mhz).expect("a design");
    let sources = VirtualBoard::new(&design, None, &|_| {}).expect("the design builds");
    let runs = of_sources(sources, &config, jobs(&board, &config)).expect("the sources run");
    let clocks_per_bit = board.clocks_per_bit(board.core_mhz).expect("a line");
    let compared = |text: &[u8], change: fn(&mut Sdram)| {
        let circuit = Circuit::read(text, TOP, CLOCK).expect("a netlist");
        let mut design = design.clone();
        change(design.sdram.as_mut().expect("has a chip"));
        let netlist = NetlistBoard::new(circuit, clocks_per_bit, design.clock_hz, design.chip()).expect("a board");
        compare(Stage::Synthesized.name(), netlist, &config, &runs, &mut |_: Progress| {}).difference
    };
    assert_eq!(compared(&text, |_| {}), None);
    let wrong = |text: &[u8], change, said: &str| {
        let difference = compared(text, change).expect(said);
        assert!(difference.contains("SDRAM, edge ") && difference.contains(said), "{said}: {difference}");
    };
    wrong(&text, |chip| chip.timing.rcd_ns = 61.0, "tRCD is 61 ns");
    wrong(&text, |chip| chip.timing.cas_latency = 3, "the mode is 0x20");
    let mut netlist: Value = serde_json::from_slice(&text).expect("JSON");
    let ports = &mut netlist["modules"][TOP]["ports"];
    let cas = ports["sdram_cas_n"].take();
    ports["sdram_cas_n"] = ports["sdram_we_n"].take();
    ports["sdram_we_n"] = cas;
    wrong(&serde_json::to_vec(&netlist).expect("JSON"), |_| {}, "");
}

#[test]
fn nothing_that_ran_is_not_as_the_sources() {
    let board = Board::load("hx8k-evn").expect("a board");
    let config = HwConfig::parse("small", SMALL).expect("a configuration");
    assert_eq!(nothing(&jobs(&board, &config), &config), None);
    let why = "there is nothing to run: small supports no layer of lenet-int8; give --programs";
    assert_eq!(nothing(&[], &config).as_deref(), Some(why));
}
