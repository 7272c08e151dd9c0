use super::*;

#[test]
fn presets_are_legal_and_named_by_their_geometry() {
    for (name, text) in PRESETS {
        let c = HwConfig::parse(name, text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(c.name, *name);
        // A suffix can say what the preset is for.
        assert_eq!(name.split('-').next(), Some(format!("{}x{}x{}", c.batch, c.block_in, c.block_out).as_str()));
        for mem in Mem::ALL {
            if mem != Mem::Param {
                assert!(c.entries(mem) <= 2048);
            }
        }
        if c.lean {
            assert!(c.inp_depth >= c.out_depth && c.bus_bits <= 64);
        } else {
            assert_eq!((c.inp_depth, c.bus_bits), (c.out_depth, 64));
        }
    }
}

#[test]
fn every_violation_is_reported_at_once() {
    let text = "batch = 3\nblok_in = 8\noffset_bits = 99\nbus_bits = \"wide\"\n[host]\nclock = 3\n";
    let Err(ConfigError::Illegal { violations, .. }) = HwConfig::parse("f.toml", text) else { panic!() };
    let keys: Vec<&str> = violations.iter().map(|v| v.key.as_str()).collect();
    for key in ["batch", "blok_in", "offset_bits", "bus_bits", "host.clock"] {
        assert!(keys.contains(&key), "{keys:?}");
    }
    assert!(violations.iter().any(|v| v.remedy.contains("did you mean block_in")));
}

#[test]
fn rules_between_parameters_hold() {
    let check = |text: &str, key: &str| {
        let Err(ConfigError::Illegal { violations, .. }) = HwConfig::parse("f.toml", text) else { panic!("{text}") };
        assert!(violations.iter().any(|v| v.key == key), "{violations:?}");
    };
    check("batch = 2\ndma_pack = false", "dma_pack");
    check("block_out = 4", "vector_lanes");
    check("max_burst_beats = 64\nload_buffer_beats = 32", "load_buffer_beats");
    check("bus_bits = 512\nmax_burst_beats = 128", "max_burst_beats");
    check("dma_align = 16", "dma_align");
}

#[test]
fn a_long_instruction_is_blamed_on_what_widens_it() {
    let text = |config: HwConfig| config.violations().iter().map(Violation::to_string).collect::<Vec<_>>().join("\n");
    let config = HwConfig::load("1x16x16").unwrap();
    assert_eq!(
        text(HwConfig { param_depth: 1024, ..config.clone() }),
        "param_depth: is 1024, so the vector instruction takes 259 bits, more than 256; use param_depth = 512 or less, \
         or vector_uop_depth = 128 or less, or loops = 2, or vector_mac = false"
    );
    let deep = HwConfig { inp_depth: 65536, wgt_depth: 65536, acc_depth: 65536, out_depth: 65536, ..config };
    let keys: Vec<String> = deep.violations().into_iter().map(|v| v.key).collect();
    assert_eq!(keys, ["offset_bits", "inp_depth", "loops"], "{}", text(deep));
    // The proposed change is legal.
    let config = HwConfig { param_depth: 1024, vector_mac: false, ..HwConfig::load("1x16x16").unwrap() };
    assert_eq!(config.violations(), []);
}

#[test]
fn syntax_errors_name_the_line() {
    let Err(ConfigError::Syntax { reason, .. }) = HwConfig::parse("f.toml", "batch = = 2") else { panic!() };
    assert!(reason.contains("line 1"), "{reason}");
    let Err(ConfigError::Unknown { .. }) = HwConfig::load("17x17") else { panic!() };
}

#[test]
fn a_file_without_a_name_has_its_own() {
    let name = |file: &str, text: &str| HwConfig::parse(file, text).unwrap().name;
    assert_eq!(name("some/folder/mine.v2.toml", ""), "mine.v2");
    assert_eq!(name("mine.toml", "name = \"yours\""), "yours");
    assert_eq!(name("two\nlines.toml", ""), "custom");
    assert_eq!(name("text", ""), "custom");
}

#[test]
fn the_hash_is_of_the_hardware_alone() {
    let a = HwConfig::parse("a", "name = \"a\"").unwrap();
    let b = HwConfig::parse("b", "name = \"b\"\n[dram]\nlatency = 1").unwrap();
    let c = HwConfig::parse("c", "queue_depth = 4").unwrap();
    assert_eq!(a.hash(), b.hash());
    assert_ne!(a.hash(), c.hash());
}

#[test]
fn a_configuration_survives_its_text() {
    for (name, _) in PRESETS {
        let config = HwConfig::load(name).unwrap();
        assert_eq!(HwConfig::parse("text", &config.to_toml()).unwrap(), config);
    }
}

#[test]
fn a_wrong_value_hides_no_rule_that_does_not_rest_on_it() {
    let text = "batch = 2\ndma_pack = false\nqueue_depth = 3\nvector_lanes = 1024\n\
                [dram]\nlatency = \"x\"\nfoo = 1\n[host]\nclock_mhz = -5.0\ntarget = \"\"\nbar = 2";
    let Err(ConfigError::Illegal { violations, .. }) = HwConfig::parse("f.toml", text) else { panic!() };
    let mut keys: Vec<&str> = violations.iter().map(|v| v.key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["dma_pack", "dram.foo", "dram.latency", "host.bar", "queue_depth", "vector_lanes"]);
    let text =
        "[dram]\nlatency = 4294967295\nbeat_sixteenths = 0\n[host]\nclock_mhz = -5.0\ntarget = \"\"\nmemory_mib = 0";
    let Err(ConfigError::Illegal { violations, .. }) = HwConfig::parse("f.toml", text) else { panic!() };
    let keys: Vec<&str> = violations.iter().map(|v| v.key.as_str()).collect();
    assert_eq!(keys, ["dram.latency", "dram.beat_sixteenths", "host.clock_mhz", "host.memory_mib", "host.target"]);
}

#[test]
fn every_figure_of_the_host_is_checked() {
    let legal = |text: &str| HwConfig::parse("f.toml", &format!("[host]\n{text}"));
    for p in HostSection::PARAMS {
        // Whole numbers, which every figure accepts.
        for (value, fine) in [(p.legal.1 as i64, true), (p.legal.1 as i64 + 1, false), (-1, false)] {
            match legal(&format!("{} = {value}", p.key)) {
                Ok(config) => assert!(fine && (p.get)(&config.host) == value as f64, "{} = {value}", p.key),
                Err(e) => assert!(!fine && e.to_string().contains(&format!("host.{}", p.key)), "{e}"),
            }
        }
    }
    let Err(ConfigError::Illegal { violations, .. }) =
        legal("cores = 0\ncpu_clock_mhz = nan\nint8_macs_per_cycle = inf\nlaunch_us = -2.0\nbytes_per_cycle = 0.0")
    else {
        panic!()
    };
    let keys: Vec<&str> = violations.iter().map(|v| v.key.as_str()).collect();
    let wrong = ["cores", "cpu_clock_mhz", "int8_macs_per_cycle", "bytes_per_cycle", "launch_us"];
    assert_eq!(keys, wrong.map(|key| format!("host.{key}")));
    // The preset's host is the default host.
    assert_eq!(HwConfig::load("1x16x16").unwrap().host, HostSection::default());
    let other = HwConfig { host: HostSection { cores: 64, ..HostSection::default() }, ..HwConfig::default() };
    assert_eq!(other.hash(), HwConfig::default().hash());
}

#[test]
fn energy_has_a_source_or_is_not_there() {
    let with = |text: &str| HwConfig::parse("f.toml", &format!("[energy]\n{text}"));
    let good = "source = \"measured on a board\"\nmac_pj = 2\ndram_pj_per_byte = 100.0\nstatic_mw = 50\n";
    let config = with(good).unwrap();
    // 1 million products, 1 million bytes, a millisecond.
    assert!((config.energy.as_ref().unwrap().millijoules(1_000_000, 1_000_000, 1.0) - 0.152).abs() < 1e-12);
    assert_eq!(config.hash(), HwConfig::default().hash());
    assert_eq!(HwConfig::parse("again", &config.to_toml()).unwrap(), config);
    for (wrong, key) in [
        (good.replace("mac_pj = 2", "mac_pj = -1"), "energy.mac_pj"),
        (good.replace("measured on a board", " "), "energy.source"),
        (good.replace("source", "sauce"), "energy.sauce"),
        (good.replace("static_mw = 50\n", ""), "energy"),
    ] {
        let error = with(&wrong).unwrap_err().to_string();
        assert!(error.contains(key), "{error}");
    }
}

#[test]
fn what_a_file_leaves_out_of_the_host_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("h.toml");
    std::fs::write(&path, "[host]\nclock_mhz = 5\n").unwrap();
    let unstated = HwConfig::unstated_of_host(path.to_str().unwrap()).unwrap();
    assert!(unstated.starts_with(&["target", "memory_mib"]) && !unstated.contains(&"clock_mhz"));
    assert_eq!(HwConfig::unstated_of_host("1x16x16").unwrap(), Vec::<&str>::new());
    for (name, _) in PRESETS {
        let unstated = HwConfig::unstated_of_host(name).unwrap();
        assert!(!unstated.contains(&"target") && !unstated.contains(&"clock_mhz"), "{name}");
    }
}
