//! The page of ONNX operators is written from the registry.

use super::*;

fn page() -> String {
    let mut text = String::from(
        "# ONNX operators\n\n\
         Written from the registry in `compiler/src/frontend/onnx/ops/mod.rs` by `BLESS=1 cargo test -p tilewright-compiler \
         onnx_page`; do not edit.\n\n\
         Operator sets 1 to 27 are read, with what each set changed since 7. Elements are FLOAT, UINT8, INT8, INT32, INT64 and\n\
         BOOL; FLOAT16 and DOUBLE are taken in single precision. Images have one or two dimensions beside batch and channels.\n\
         Shapes must be known when a network is imported: sizes that a file leaves open come from `--bind SYMBOL=SIZE`,\n\
         `--shape INPUT=SIZExSIZE` or the data given with `--input`; an outermost size that nobody gives is 1. Operands that\n\
         give shapes, axes and the like must follow from constants and sizes.\n\n\
         | operator | attributes |\n|---|---|\n",
    );
    for (name, attributes) in onnx::operators() {
        let list: Vec<String> = attributes.iter().map(|a| format!("`{a}`")).collect();
        text += &format!("| {name} | {} |\n", list.join(", "));
    }
    text
}

#[test]
fn the_page_of_onnx_operators_is_that_of_the_registry() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/onnx.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page(), "docs/onnx.md is stale; run BLESS=1 cargo test -p tilewright-compiler onnx_page");
}

#[test]
fn the_registry_is_in_order() {
    let names: Vec<&str> = onnx::operators().map(|o| o.0).collect();
    assert!(names.is_sorted(), "{names:?}");
}
