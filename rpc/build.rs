//! Makes the services' Rust code from their definition, without a protobuf compiler on this machine.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/tilewright.proto");
    let files = protox::compile(["proto/tilewright.proto"], ["proto"])?;
    let mut config = tonic_prost_build::Config::new();
    // Bulk data are not copied out of the buffer that they arrived in.
    config.bytes(["."]);
    tonic_prost_build::configure().compile_fds_with_config(files, config)?;
    Ok(())
}
