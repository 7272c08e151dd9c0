use super::load::{BOARDS, FILE};
use super::*;
use crate::config::{DramSection, HostSection, HwConfig};
use crate::flow::design::constraints;
use std::path::Path;

#[test]
fn every_board_loads_with_its_configuration() {
    let names = Board::names();
    assert!(names.len() >= 6, "{names:?}");
    for name in names {
        let board = Board::load(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
        board.default_config().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn a_board_has_the_memory_of_its_chip() {
    let of = |name: &str| {
        let board = Board::load(name).unwrap();
        board.memory_bytes(&board.default_config().unwrap())
    };
    assert_eq!((of("ulx3s-85f"), of("colorlight-i5")), (32 << 20, 8 << 20));
    // In the host, as the configuration says; in a processor's memory, the buffer of the device tree.
    assert_eq!((of("hx8k-evn"), of("pynq-z1")), (HwConfig::load("1x4x2").unwrap().memory_bytes(), 64 << 20));
    let mut board = Board::load("hx8k-evn").unwrap();
    board.memory = CoreMemory::Block { kib: 16 };
    assert_eq!(board.memory_bytes(&board.default_config().unwrap()), 16 << 10);
}

#[test]
fn a_configuration_may_be_a_file_of_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("own");
    std::fs::create_dir(&folder).unwrap();
    let text = BOARDS.get_file("hx8k-evn/board.toml").unwrap().contents_utf8().unwrap();
    std::fs::write(folder.join(FILE), text.replace("hw = \"1x4x2\"", "hw = \"small.toml\"")).unwrap();
    let board = Board::load(&folder.display().to_string()).unwrap();
    let error = board.default_config().unwrap_err().to_string();
    assert!(error.contains("own/board.toml") && error.contains("own/small.toml"), "{error}");
    let small = Path::new(env!("CARGO_MANIFEST_DIR")).join("../driver/tests/board/small.toml");
    std::fs::copy(small, folder.join("small.toml")).unwrap();
    assert_eq!(board.default_config().unwrap().name, "small");
    assert_eq!(board.default_hw(), folder.join("small.toml").display().to_string());
    assert_eq!(Board::load(&folder.join(FILE).display().to_string()).unwrap(), board);
}

#[test]
fn a_configuration_has_the_boards_clock_link_and_host() {
    let of = |name: &str| Board::load(name).unwrap().default_config().unwrap();
    let preset = HwConfig::load("1x4x2").unwrap();
    // Its memory is in the host, so no tensors are transferred.
    let small = of("hx8k-evn");
    assert_eq!(small.host, HostSection { clock_mhz: 42.0, ..preset.host.clone() });
    assert_eq!(small.hash(), preset.hash());
    assert_eq!((of("colorlight-i9").host.clock_mhz, of("colorlight-i9").host.transfer_mb_per_s), (40.0, 0.1));
    let host = of("ultra96").host;
    assert_eq!((host.target.as_str(), host.cores, host.clock_mhz), ("cortex-a53", 4, 150.0));

    let text = BOARDS.get_file("hx8k-evn/board.toml").unwrap().contents_utf8().unwrap();
    for (target, said) in [
        ("clock_mhz = 20.0", Ok(20.0)),
        ("clocks_mhz = 20.0", Err("b/board.toml: target: unknown field `clocks_mhz`")),
        ("cores = 0", Err("b/board.toml: target: host.cores")),
        ("cores = \"two\"", Err("b/board.toml: target: invalid type")),
    ] {
        let board = Board::parse("b", "b/board.toml", &format!("{text}\n[target]\n{target}\n")).unwrap();
        let found = board.default_config().map(|config| config.host.clock_mhz).map_err(|error| error.to_string());
        match (found, said) {
            (Ok(found), Ok(wanted)) => assert_eq!(found, wanted, "{target}"),
            (Err(error), Err(words)) => assert!(error.contains(words), "{error}"),
            (found, _) => panic!("{target}: {found:?}"),
        }
    }
}

#[test]
fn a_board_that_is_not_there_is_refused_with_those_that_are() {
    let error = Board::load("hx9k").unwrap_err().to_string();
    assert!(error.contains("hx9k") && error.contains("hx8k-evn"), "{error}");
}

#[test]
fn wrong_boards_are_refused_by_key() {
    let text = BOARDS.get_file("hx8k-evn/board.toml").unwrap().contents_utf8().unwrap();
    let cases = [
        ("family = \"ice40\"", "family = \"ice50\"", "ice50"),
        ("device = \"hx8k\"", "device = \"hx9k\"", "hx9k"),
        ("core_mhz = 42.0", "core_mhz = 0.0", "core_mhz"),
        ("core_mhz = 42.0", "core_mhz = 5.0", "core_mhz: the part cannot make a clock of 5 MHz from 12 MHz"),
        ("baud = 3_000_000", "baud = 30_000_000", "host.baud is 30000000, fewer than 4 clock cycles per bit"),
        ("baud = 3_000_000", "baud = 0", "host.baud is 0"),
        ("core_mhz = 42.0", "core_mhz = nan", "core_mhz is NaN; give MHz from 1 to 1000"),
        ("hw = ", "speed = \"8\"\nhw = ", "speed is \"8\", but ice40 has its speed grades"),
        ("\"A2\"]", "\"A2\", \"C1\", \"C2\"]", "leds.pins has 5 pins, but a shell drives at most 4 LEDs"),
        ("[clock]", "[clocks]", "clocks"),
        (
            "package = \"ct256\"",
            "package = \"ct265\"",
            "package is ct265, which the router does not know for hx8k; use one of bg121, cb132,",
        ),
        ("rx = \"B10\"", "rx = \"B10; x\"", "pin \"B10; x\" of uart_rx is not a valid pin name"),
        ("kind = \"host\"", "kind = \"host\"\nkib = 4", "unknown field `kib`"),
        ("pin = \"J3\"", "pin = \"\"", "pin \"\" of clk is not a valid pin name"),
        ("rx = \"B10\"", "rx = \"B12\"", "pin B12 is used for both uart_rx and uart_tx"),
        ("port = 2", "port = 3", "host.reach.port is 3, but ports is 2; use 1 to 2"),
        ("kind = \"usb\"", "kind = \"radio\"", "radio"),
        ("bridge = \"FT2232H\"", "bridge = \"\"", "host.reach.bridge is empty"),
        ("core_mhz", "io_volts = 5.0\ncore_mhz", "io_volts is 5; pins have 3.3, 2.5, 1.8, 1.5 or 1.2"),
        ("\"A2\"]", "\"A2\"]\nvolts = 0.0", "leds.volts is 0; pins have"),
        ("title = \"", "title = \"A\\nB", "title is \"A\\nB"),
        ("title = \"", "title = \"*/", "title is \"*/"),
        ("\"A2\"]", "\"A2\\r\"]", "leds.pins is \"A2\\r\""),
    ];
    for (good, wrong, named) in cases {
        assert!(text.contains(good), "{good}");
        let error = Board::parse("b", "b/board.toml", &text.replace(good, wrong)).unwrap_err().to_string();
        assert!(error.contains("b/board.toml") && error.contains(named), "{error}");
    }
}

/// The scripts turn on one port of the processor.
#[test]
fn a_processor_has_the_port_that_its_scripts_join() {
    let text = BOARDS.get_file("pynq-z1/board.toml").unwrap().contents_utf8().unwrap();
    let other = text.replace("port = \"S_AXI_HP0\"", "port = \"S_AXI_HP2\"");
    let error = Board::parse("b", "b/board.toml", &other).unwrap_err().to_string();
    assert!(
        error.contains("b/board.toml: host.port is S_AXI_HP2, ") && error.contains("connect only S_AXI_HP0"),
        "{error}"
    );
}

#[test]
fn a_folder_gives_its_board_its_own_name_however_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("own");
    std::fs::create_dir_all(folder.join("inner")).unwrap();
    std::fs::write(folder.join(FILE), BOARDS.get_file("hx8k-evn/board.toml").unwrap().contents()).unwrap();
    for path in [".", "inner/.."] {
        assert_eq!(Board::load(&folder.join(path).display().to_string()).unwrap().name, "own", "{path}");
    }
    let named = Board::load(&folder.display().to_string()).unwrap();
    let error = named.with_host("spi").unwrap_err().to_string();
    assert!(error.starts_with(&folder.join(FILE).display().to_string()), "{error}");
}

#[test]
fn pins_have_the_levels_that_the_board_says() {
    let lattice = constraints(&Board::load("ecp5-evn").unwrap());
    assert!(
        lattice.contains("\"led[0]\" IO_TYPE=LVCMOS25") && lattice.contains("\"clk\" IO_TYPE=LVCMOS33"),
        "{lattice}"
    );
    let text = BOARDS.get_file("crosslink-nx-evn/board.toml").unwrap().contents_utf8().unwrap();
    let board = Board::parse("b", "b/board.toml", &text.replace("core_mhz", "io_volts = 1.8\ncore_mhz")).unwrap();
    let nexus = constraints(&board);
    assert!(nexus.contains("LVCMOS18") && !nexus.contains("LVCMOS33"), "{nexus}");
}

/// Block RAM and single-port RAM, in sizes that fit and that do not.
#[test]
fn memory_in_the_part_is_of_a_kind_and_a_size_that_the_part_has() {
    let with = |board: &str, memory: &str| {
        let text = BOARDS.get_file(format!("{board}/board.toml")).unwrap().contents_utf8().unwrap();
        let (from, to) = (text.find("[memory]").unwrap(), text.find("[leds]").unwrap());
        let text = format!("{}[memory]\n{memory}\n\n{}", &text[..from], &text[to..]);
        Board::parse("b", "b/board.toml", &text).map(|board| board.memory).map_err(|error| error.to_string())
    };
    assert_eq!(with("upduino", "kind = \"spram\"\nkib = 128"), Ok(CoreMemory::Spram { kib: 128 }));
    assert_eq!(with("hx8k-evn", "kind = \"block\"\nkib = 16"), Ok(CoreMemory::Block { kib: 16 }));
    assert_eq!(with("ulx3s-25f", "kind = \"block\"\nkib = 64"), Ok(CoreMemory::Block { kib: 64 }));
    let cases = [
        ("upduino", "kind = \"spram\"\nkib = 256", "memory.kib is 256, but up5k has 128 KiB of single-port RAM"),
        ("hx8k-evn", "kind = \"spram\"\nkib = 64", "memory.kind is spram, but hx8k has no single-port RAM"),
        ("ulx3s-25f", "kind = \"spram\"\nkib = 64", "memory.kind is spram, but LFE5U-25F has no single-port RAM"),
        ("hx8k-evn", "kind = \"block\"\nkib = 32", "memory.kib is 32, but hx8k has 16 KiB of block RAM"),
        ("ulx3s-25f", "kind = \"block\"\nkib = 0", "memory.kib is 0, but LFE5U-25F has 112 KiB of block RAM"),
    ];
    for (board, memory, said) in cases {
        let error = with(board, memory).unwrap_err();
        assert!(error.contains("b/board.toml") && error.contains(said), "{said}: {error}");
    }
}

/// The loop makes 41.67 MHz from 25 MHz when 42 MHz is wanted.
#[test]
fn bits_have_cycles_of_the_clock_that_the_part_makes() {
    let text = BOARDS.get_file("ulx3s-25f/board.toml").unwrap().contents_utf8().unwrap();
    let with = |baud: &str| Board::parse("b", "b/board.toml", &text.replace("3_000_000", baud));
    let board = with("120_000").unwrap();
    assert!((board.clock_mhz(42.0).unwrap() - 125.0 / 3.0).abs() < 1e-9);
    // At 42 MHz it would be 350.
    assert_eq!(board.clocks_per_bit(42.0).unwrap(), 347);
    // A bit takes 7 cycles of 42 MHz, and 6.94 of 41.67 MHz.
    assert_eq!(with("6_000_000").unwrap().clocks_per_bit(42.0).unwrap(), 7);
    assert!(with("20_000_000").is_err());
    let error = with("9_260_000").unwrap_err().to_string();
    let said = "b/board.toml: host.baud is 9260000, 4.50 clock cycles per bit at 41.67 MHz: with 4 cycles the baud-rate error is 12.5 %, \
                which exceeds the 2 % limit; use another baud rate, or a clock near 37.04 or 46.30 MHz";
    assert_eq!(error, said);
    let error = board.with_host("uart").unwrap().clocks_per_bit(1.0).unwrap_err().to_string();
    assert!(error.contains("cannot make a clock of 1 MHz"), "{error}");
    let board = Board::load("ulx3s-25f").unwrap();
    let error = board.clocks_per_bit(25.0).unwrap_err().to_string();
    assert!(error.contains("host.baud is 3000000") && error.contains("error is 4.2 %"), "{error}");
}

#[test]
fn a_board_may_have_several_hosts_of_which_one_is_taken() {
    let board = Board::load("ulx3s-25f").unwrap();
    assert_eq!((board.host.kind(), board.with_host("uart").unwrap()), ("uart", board.clone()));
    let spi = board.with_host("spi").unwrap();
    assert_eq!(spi.host.kind(), "spi");
    assert_eq!(spi.host.device(40.0), "spi:PORT@5000000");
    let ports: Vec<String> = ports(&spi).into_iter().map(|at| at.port).collect();
    assert!(ports.contains(&"spi_miso".into()) && !ports.contains(&"uart_rx".into()), "{ports:?}");
    let error = spi.with_host("processor").unwrap_err().to_string();
    assert_eq!(error, "ulx3s-25f/board.toml: it has no host of kind processor; use spi or uart");

    let text = BOARDS.get_file("ulx3s-25f/board.toml").unwrap().contents_utf8().unwrap();
    for (good, bad, said) in [
        ("cs = \"B11\"", "cs = \"A10\"", "pin A10 is used for both spi_cs_n and spi_sck"),
        ("cs = \"B11\"", "cs = \"B2\"", "pin B2 is used for both"),
        ("kind = \"spi\"\ncs", "kind = \"i2c\"\ncs", "i2c"),
        (", \"GP3\"]", "]", "hosts[0].reach.names has 3 names, but the link has 4 pins"),
        (
            "[[hosts]]",
            "[[hosts]]\nkind = \"uart\"\nrx = \"A7\"\ntx = \"A8\"\nbaud = 9600\nreach = { kind = \"pins\", connector = \"J2\" }\n[[hosts]]",
            "hosts[0].kind is uart",
        ),
    ] {
        assert!(text.contains(good), "{good}");
        let error = Board::parse("b", "b/board.toml", &text.replace(good, bad)).unwrap_err().to_string();
        assert!(error.contains(said), "{said}: {error}");
    }
}

#[test]
fn wrong_sdram_is_refused_with_all_that_is_wrong() {
    let text = BOARDS.get_file("ulx3s-85f/board.toml").unwrap().contents_utf8().unwrap();
    let wrong = [
        ("rows = 8192", "rows = 5000", "rows is 5000; a bank has 2048, 4096 or 8192"),
        ("columns = 512", "columns = 2048", "columns is 2048"),
        ("banks = 4", "banks = 8", "banks is 8"),
        ("cas_latency = 2", "cas_latency = 4", "timing.cas_latency is 4"),
        ("rp_ns = 21.0", "rp_ns = nan", "timing.rp_ns is NaN"),
        ("refresh_us = 7.8", "refresh_us = 0.0", "timing.refresh_us is 0"),
        ("rc_ns = 70.0", "rc_ns = 7.0", "timing.rc_ns is 7, below ras_ns = 45"),
        ("dqm = [\"U19\", \"E20\"]", "dqm = [\"U19\"]", "pins.dqm has 1 pins; give one for each of the 2 bytes"),
    ];
    let mut all = text.to_string();
    for (good, bad, _) in wrong {
        assert!(all.contains(good), "{good}");
        all = all.replace(good, bad);
    }
    let error = Board::parse("b", "b/board.toml", &all).unwrap_err().to_string();
    for (_, _, said) in wrong {
        assert!(error.contains(said), "{said}: {error}");
    }
    for (good, bad, said) in [
        ("family = \"ecp5\"", "family = \"gowin\"", "LFE5U-85F"),
        ("speed = \"6\"", "speed = \"9\"", "speed is \"9\", which is no speed grade of ecp5; use one of 6, 7, 8"),
        ("speed = \"6\"", "", "speed is \"\", which is no speed grade of ecp5; use one of 6, 7, 8"),
        ("rows = 8192", "rows = 8192\nrow = 1", "row"),
        ("cas = \"T19\"", "cas = \"R20\"", "pin R20 is used for both sdram_ras_n and sdram_cas_n"),
    ] {
        let error = Board::parse("b", "b/board.toml", &text.replace(good, bad)).unwrap_err().to_string();
        assert!(error.contains(said), "{said}: {error}");
    }
    let nexus = BOARDS.get_file("crosslink-nx-evn/board.toml").unwrap().contents_utf8().unwrap();
    let memory = &text[text.find("[memory]").unwrap()..text.find("[leds]").unwrap()];
    let error = Board::parse("b", "b/board.toml", &nexus.replace("[memory]\nkind = \"host\"\n", memory));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("memory.kind is sdram, which is supported on ecp5 only, not on nexus"), "{error}");
}

#[test]
fn a_boards_memory_gives_the_dram_model_its_figures() {
    let dram = |name: &str| Board::load(name).unwrap().default_config().unwrap().dram;
    let section = |latency, beat_sixteenths, shared, row_open_sixteenths, burst_sixteenths| DramSection {
        latency,
        beat_sixteenths,
        shared,
        row_open_sixteenths,
        burst_sixteenths,
    };
    // Two words of the chip per beat, rows of half the model's size, a read's latency for each burst.
    assert_eq!(dram("ulx3s-25f"), section(2, 33, true, 64, 64));
    assert_eq!(dram("ulx3s-85f"), section(4, 65, true, 64, 64));
    // 14 cycles per bit, two bytes per beat, ten bytes per request, and six bytes per answer in addition to its data.
    assert_eq!(dram("hx8k-evn"), section(1400, 16 * 280, false, 0, 16 * 840));
    // The model of a processor's memory is the configuration's.
    assert_eq!(dram("pynq-z1"), DramSection::default());
}

#[test]
fn a_configuration_of_the_boards_folder_keeps_its_own_memory() {
    let dir = tempfile::tempdir().unwrap();
    let text = BOARDS.get_file("ulx3s-25f/board.toml").unwrap().contents_utf8().unwrap();
    let text = text.replace("\nhw = \"1x4x4-ecp5\"", "\nhw = \"small.toml\"");
    std::fs::write(dir.path().join(FILE), text).unwrap();
    let config =
        "name = \"small\"\nblock_in = 4\nblock_out = 4\nvector_lanes = 4\nrequant_lanes = 4\n[dram]\nlatency = 64\n";
    std::fs::write(dir.path().join("small.toml"), config).unwrap();
    let board = Board::load(&dir.path().display().to_string()).unwrap();
    let dram = board.default_config().unwrap().dram;
    assert_eq!((dram.latency, dram.burst_sixteenths), (64, 0));
}

#[test]
fn figures_of_a_slow_line_are_whole_and_the_clock_is_the_one_that_the_part_makes() {
    let of = |from: &str, to: &str| {
        let dir = tempfile::tempdir().unwrap();
        let text = BOARDS.get_file("hx8k-evn/board.toml").unwrap().contents_utf8().unwrap();
        assert!(text.contains(from));
        std::fs::write(dir.path().join(FILE), text.replace(from, to)).unwrap();
        Board::load(&dir.path().display().to_string()).unwrap().default_config()
    };
    let slow = of("baud = 3_000_000", "baud = 1200").unwrap().dram;
    assert_eq!((slow.latency, slow.beat_sixteenths), (35_000 * 100, 35_000 * 20 * 16));
    let error = of("baud = 3_000_000", "baud = 300").unwrap_err().to_string();
    assert!(error.contains("host.baud: a bit takes 140000 clock cycles, more than 65536"), "{error}");
    let made = of("core_mhz = 42.0", "core_mhz = 42.3").unwrap().host.clock_mhz;
    assert!(made <= 42.3 && made > 38.0 && (made - 42.3).abs() > 1e-6, "{made}");
}
