//! The header is what the crate says.

use std::path::Path;

use expect_test::expect_file;
use regex_lite::Regex;

#[test]
fn the_header_is_written_from_the_crate() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).expect("the settings can be read");
    // The modules are found from there.
    let builder = cbindgen::Builder::new().with_config(config).with_src(here.join("src/lib.rs"));
    let mut text = Vec::new();
    builder.generate().expect("the crate can be read").write(&mut text);
    // What Rust's documentation writes differently.
    let text = String::from_utf8(text).expect("a header is text").replace("# Safety", "What the caller must keep:");
    let text = Regex::new(r"\[(`\w+`)\](\([\w:]+\))?").expect("it is one").replace_all(&text, "$1").into_owned();
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let function = Regex::new(r"\b(tw_\w+)\(").expect("it is one");
    let mut names = std::collections::BTreeSet::new();
    for found in function.captures_iter(&code) {
        assert!(names.insert(found[1].to_string()), "{} is declared twice", &found[1]);
    }
    assert!(names.contains("tw_version") && names.contains("tw_value_free"), "{names:?}");
    expect_file!["../../include/tilewright.h"].assert_eq(&text);
}
