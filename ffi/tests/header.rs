//! The header is what the crate says.

use std::path::Path;

use expect_test::expect_file;
use regex_lite::Regex;

#[test]
fn the_header_is_written_from_the_crate() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).expect("the settings can be read");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in ["lib", "error", "value", "tensor", "function", "module", "device", "session"] {
        builder = builder.with_src(here.join(format!("src/{source}.rs")));
    }
    let mut text = Vec::new();
    builder.generate().expect("the crate can be read").write(&mut text);
    // What Rust's documentation writes differently.
    let text = String::from_utf8(text).expect("a header is text").replace("# Safety", "What the caller must keep:");
    let text = Regex::new(r"\[(`\w+`)\](\([\w:]+\))?").expect("it is one").replace_all(&text, "$1").into_owned();
    expect_file!["../../include/tilewright.h"].assert_eq(&text);
}
