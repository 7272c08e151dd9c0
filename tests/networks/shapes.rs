//! Whole int8 networks of well-known shapes.

use tilewright::device::DeviceKind;
use tilewright::model::inference;
use tilewright::model::shapes::{self, NETWORKS};
use tilewright::model::{self, Options};
use tilewright_hw::config::HwConfig;

use crate::run;

/// Each network can be made. The cycle model computes the same as the functional simulator, and finds no fault in the
/// programs.
#[test]
#[ignore = "long; make test-full runs it"]
fn every_network_that_can_be_made_runs() {
    let config = HwConfig::load("1x16x16").unwrap();
    for name in NETWORKS {
        let graph = shapes::quantized(name).unwrap_or_else(|e| panic!("{e}"));
        let options = Options::new(&config);
        let artifact = model::build(graph, &options, &mut |_, _| {}).unwrap_or_else(|e| panic!("{name}: {e}"));
        let manifest = &artifact.manifest;
        let inputs = inference::made_up(&manifest.input_values());
        let (macs, offloaded) = (manifest.macs(), manifest.offloaded_macs());
        assert!(offloaded * 100 >= macs * 99, "{name}: {offloaded} of {macs} multiplications are offloaded");
        let expected = run(artifact.clone(), &config, DeviceKind::FSIM, &inputs);
        let found = run(artifact, &config, DeviceKind::CSIM, &inputs);
        assert!(found.outputs == expected.outputs, "{name}: the cycle model computes other values");
        let distinct: std::collections::BTreeSet<u64> =
            expected.outputs[0].to_f64().iter().map(|v| v.to_bits()).collect();
        assert!(distinct.len() > 10, "{name}: {} values are told apart", distinct.len());
        let cycles = found.cycles().unwrap();
        println!("{name}: {cycles} cycles, {:.1} % of the array", 100.0 * macs as f64 / (256 * cycles) as f64);
        assert!(macs <= 256 * cycles, "{name}: {macs} multiplications in {cycles} cycles");
    }
}
