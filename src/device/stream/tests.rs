use super::*;

const PROGRAM: &str = "load rows=2 push=gemm\ngemm pop=load push=vector\nvector dst=out pop=gemm push=store\n\
                       store rows=2 pop=vector\n";

fn config(name: &str) -> HwConfig {
    HwConfig::load(name).unwrap()
}

#[test]
fn a_file_reads_back_as_the_text_it_came_from() {
    let program = parse("p.tw", PROGRAM, &config("1x16x16")).unwrap();
    let file = to_file("p.tw", &program, &config("1x16x16")).unwrap();
    assert_eq!(file.len(), 32 + 32 * program.len());
    let read = from_file("p.bin", &file, &config("1x16x16")).unwrap();
    assert_eq!(isa::print_program(&read), PROGRAM);
}

#[test]
fn every_error_has_its_line_column_and_text() {
    let text = "load mem=nowhere\n# fine\njump\n  gemm uops=x\n";
    let StreamError::Text(errors) = parse("p.tw", text, &config("1x16x16")).unwrap_err() else { panic!() };
    assert_eq!(errors.len(), 3);
    assert!(errors[0].starts_with("p.tw:1:10: mem is nowhere; expected one of"), "{}", errors[0]);
    assert!(errors[1].ends_with(" 3 | jump\n   | ^"), "{}", errors[1]);
    assert!(errors[2].starts_with("p.tw:4:13: uops is x"), "{}", errors[2]);
}

#[test]
fn every_value_that_does_not_fit_is_named_at_its_place() {
    let text = "load\n\tgemm uop=99999 uops=0\nvector op=lut\n";
    let config = HwConfig { vector_lut: false, ..config("1x16x16") };
    let error = parse("p.tw", text, &config).unwrap_err().to_string();
    assert_eq!(
        error,
        "p.tw:2:11: uop is 99999, but the configuration gives it 10 bits, for 0 to 1023\n \
         2 | \tgemm uop=99999 uops=0\n   | \t         ^\n\
         p.tw:2:22: uops is 0\n 2 | \tgemm uop=99999 uops=0\n   | \t                    ^\n\
         p.tw:3:11: op is not built; set vector_lut in the configuration\n 3 | vector op=lut\n   |           ^"
    );
}

#[test]
fn every_instruction_without_a_text_that_does_not_fit_is_named_by_its_place() {
    let program = isa::parse_program("load rows=0\ngemm uop=99999\ngemm\n").unwrap();
    let error = to_file("p.bin", &program, &config("1x16x16")).unwrap_err().to_string();
    assert_eq!(
        error,
        "p.bin: instruction 0: rows is 0\n\
         p.bin: instruction 1: uop is 99999, but the configuration gives it 10 bits, for 0 to 1023"
    );
}

#[test]
fn other_files_and_other_configurations_are_refused() {
    let (made, other) = (config("1x16x16"), config("1x8x8"));
    let file = to_file("p.tw", &parse("p.tw", PROGRAM, &config("1x16x16")).unwrap(), &made).unwrap();
    let message = |bytes: &[u8], config: &HwConfig| from_file("p.bin", bytes, config).unwrap_err().to_string();
    assert_eq!(
        message(&file, &other),
        format!(
            "p.bin: it was encoded for the configuration with hash {:016x}, but 1x8x8 has {:016x}; give the right one \
             with --hw",
            made.hash(),
            other.hash()
        )
    );
    assert_eq!(
        message(b"x", &made),
        "p.bin: it is not an instruction stream; make one with: tilewright asm FILE -o STREAM"
    );
    assert_eq!(message(&file[..16], &made), "p.bin: its header is truncated; assemble it again");
    assert_eq!(message(&file[..60], &made), "p.bin: it has 28 bytes of code for 4 instructions; assemble it again");
    let mut newer = file.clone();
    newer[8] = 200;
    assert_eq!(
        message(&newer, &made),
        format!("p.bin: it has instruction set version 200, but this program has {ISA_VERSION}; assemble it again")
    );
    let mut damaged = file;
    damaged[32] = 0xff;
    assert_eq!(
        message(&damaged, &made),
        "p.bin: instruction 0: opcode 15 is not an instruction; the file is damaged, assemble it again"
    );
}
