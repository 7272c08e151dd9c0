//! Prints the SystemVerilog package of a configuration: `cargo run -p tilewright-hw --example config_package --
//! 1x16x16`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).ok_or("give a preset or a path that ends in .toml")?;
    print!("{}", tilewright_hw::isa::config_package(&tilewright_hw::HwConfig::load(&name)?));
    Ok(())
}
