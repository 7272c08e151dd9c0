use super::*;
use crate::config::{HwConfig, PRESETS};

fn presets() -> impl Iterator<Item = HwConfig> {
    PRESETS.iter().map(|(name, text)| HwConfig::parse(name, text).unwrap())
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn encoding_and_text_round_trip() {
    let mut seed = 0x1234_5678_9abc_def1;
    for config in presets() {
        for _ in 0..2000 {
            let opcode = Opcode::ALL[random(&mut seed) as usize % 4];
            let raw: Vec<u64> = opcode
                .fields()
                .iter()
                .map(|f| {
                    let w = config.field_width(f.width);
                    if w == 0 { f.default } else { random(&mut seed) & (u64::MAX >> (64 - w)) }
                })
                .collect();
            let Ok(op) = opcode.build(&raw) else { continue };
            let insn =
                Insn { pop: UnitSet(random(&mut seed) as u8 & 15), push: UnitSet(random(&mut seed) as u8 & 15), op };
            let bytes = encode(&insn, &config).unwrap();
            assert_eq!(decode(&bytes, &config).unwrap(), insn);
            assert_eq!(parse_program(&print_insn(&insn)).unwrap(), [insn]);
        }
    }
}

#[test]
fn every_preset_fits_the_instruction() {
    for config in presets() {
        for op in Opcode::ALL {
            assert!(insn_bits(op, &config) <= INSN_BITS, "{} {}", config.name, op.name());
        }
    }
}

#[test]
fn a_value_that_does_not_fit_is_refused_by_name() {
    let config = HwConfig::default();
    let insn = Insn::new(Gemm { acc: 2048, ..Gemm::default() });
    let error = encode(&insn, &config).unwrap_err();
    assert_eq!(error.to_string(), "gemm: acc is 2048, but the configuration gives it 11 bits, for 0 to 2047");
    let config = HwConfig { loops: 2, ..HwConfig::default() };
    let insn = Insn::new(Gemm { count2: 2, ..Gemm::default() });
    assert!(matches!(encode(&insn, &config), Err(EncodeError::FieldAbsent { field: "count2", .. })));
}

#[test]
fn text_errors_are_all_reported_with_their_place() {
    let text = "lod mem=inp\nload mem=inq rows=x\n  gemm push=gem acc=1 acc=2 # twice\n";
    let errors = parse_program(text).unwrap_err();
    let places: Vec<(usize, usize)> = errors.iter().map(|e| (e.line, e.column)).collect();
    assert_eq!(places, [(1, 1), (2, 10), (2, 19), (3, 13), (3, 23)]);
}

#[test]
fn errors_of_values_stand_beside_those_of_the_text() {
    let text = "load rows=0 entry=99999\nload mem=inq\n vector op=mac uops=99999 push=vector\nstore mem=acc\n";
    let config = HwConfig { vector_shift: false, ..HwConfig::default() };
    let errors: Vec<String> = parse_for(text, &config).unwrap_err().iter().map(AsmError::to_string).collect();
    assert_eq!(
        errors,
        [
            "line 1, column 11: rows is 0",
            "line 1, column 19: entry is 99999, but the configuration gives it 12 bits, for 0 to 4095",
            "line 2, column 10: mem is inq; expected one of inp wgt acc out param guop vuop",
            "line 3, column 2: a must be out or inp, which hold int8 rows",
            "line 3, column 2: b must be param for mac",
            "line 3, column 21: uops is 99999, but the configuration gives it 10 bits, for 0 to 1023",
            "line 3, column 32: push names the instruction's own unit",
            "line 4, column 11: mem must be inp or out; nothing else can be stored",
        ]
    );
    let errors = parse_for("vector op=shl b=acc", &config).unwrap_err();
    assert_eq!(errors[0].message, "op is not built; set vector_shift in the configuration");
    assert_eq!(parse_for("load\n", &config), parse_program("load\n"));
}

#[test]
fn zeroed_memory_and_reserved_bits_are_no_instructions() {
    let config = HwConfig::default();
    assert_eq!(decode(&[0; 32], &config), Err(DecodeError::Opcode(0)));
    let mut bytes = encode(&Insn::new(Gemm::default()), &config).unwrap();
    bytes[31] |= 0x80;
    assert!(matches!(decode(&bytes, &config), Err(DecodeError::Field { field: "reserved", .. })));
}

#[test]
fn descriptors_round_trip() {
    let d = Descriptor {
        scalar: -5,
        lo: -128,
        hi: 127,
        multiplier_a: 1 << 30,
        shift_a: -3,
        zero_b: -7,
        ..Default::default()
    };
    assert_eq!(Descriptor::from_bytes(&d.to_bytes()), d);
}

/// `BLESS=1` rewrites the files; otherwise a stale one fails.
#[test]
fn generated_files_are_up_to_date() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (path, write) in GENERATED {
        let file = root.join(path);
        let want = write();
        if std::env::var_os("BLESS").is_some() {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, &want).unwrap();
        }
        let have = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(have == want, "{path} is stale; run BLESS=1 cargo test -p tilewright-hw and review the change");
    }
}

#[test]
fn the_library_carries_every_rtl_source() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("rtl");
    let mut files: Vec<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".sv") || name.ends_with(".svh"))
        .collect();
    files.push("gen/tw_isa_pkg.sv".into());
    files.sort();
    let mut carried: Vec<&str> = crate::rtl::SOURCES.iter().map(|(name, _)| *name).collect();
    carried.sort_unstable();
    assert_eq!(carried, files);
}

#[test]
fn errors_of_form_hide_no_errors_of_value() {
    let errors = |text: &str| -> Vec<String> {
        let found = parse_for(text, &HwConfig::default()).expect_err("errors");
        found.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        errors("load pop=load mem=nowhere rows=0 row_bytes=70000"),
        [
            "line 1, column 10: pop names the instruction's own unit",
            "line 1, column 19: mem is nowhere; expected one of inp wgt acc out param guop vuop",
            "line 1, column 32: rows is 0",
            "line 1, column 44: row_bytes is 70000, but the configuration gives it 16 bits, for 0 to 65535",
        ]
    );
    // Which `b` is legal depends on the operation, which is unknown here.
    assert_eq!(errors("vector op=mule b=param").len(), 1);
    assert_eq!(errors("gemm pop=load,load"), ["line 1, column 10: load is named twice"]);
    assert_eq!(errors("load rows=99999 row_bytes=70000 rows=3").len(), 2);
}
