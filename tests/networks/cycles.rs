//! Cycles of compiled networks on the cycle model. They are exactly those of the design, so any change shows.
//! `UPDATE_EXPECT=1` updates them.

use super::*;
use expect_test::{Expect, expect};
use tilewright::examine::mapping::{bound, mapping, network};
use tilewright::model::shapes::{LAYERS, quantized};

/// Cycles of a network's first run, and its share of the array.
fn line(name: &str, artifact: Artifact, config: &HwConfig, inputs: &[Tensor]) -> String {
    let results = run_on(artifact.clone(), config, DeviceKind::CSIM, inputs, 1);
    described(name, &artifact, config, &results)
}

fn described(name: &str, artifact: &Artifact, config: &HwConfig, results: &Results) -> String {
    let share = 100.0 * results.utilization(artifact, config.macs_per_cycle()).unwrap_or(0.0);
    format!("{name:32} {:8} {share:5.1} %\n", results.cycles().unwrap())
}

fn networks(files: &[PathBuf], expected: &Expect) {
    let mut table = String::new();
    for file in files {
        for level in [2, 3] {
            let (artifact, config) = compiled_at(level, file, "1x16x16", DeviceKind::CSIM);
            let folder = file.parent().and_then(Path::file_name).unwrap().to_string_lossy();
            table += &line(&format!("{folder} -O{level}"), artifact, &config, &arrays(file, "input"));
        }
    }
    expected.assert_eq(&table);
}

#[test]
fn carried_networks_take_these_cycles() {
    networks(
        &[carried("lenet-mnist/model_qdq_perchannel.onnx")],
        &expect![[r#"
            lenet-mnist -O2                     14236  14.2 %
            lenet-mnist -O3                      9004  22.4 %
        "#]],
    );
}

#[test]
fn networks_take_these_cycles() {
    let names =
        ["resnet8-cifar10/model_int8.tflite", "kws-dscnn/model_int8.tflite", "vww-mobilenet-96/model_int8.tflite"];
    let files: Option<Vec<PathBuf>> = names.into_iter().map(tilewright_testing::model).collect();
    let Some(files) = files else { return };
    networks(
        &files,
        &expect![[r#"
            resnet8-cifar10 -O2                 66531  73.4 %
            resnet8-cifar10 -O3                 57075  85.6 %
            kws-dscnn -O2                       30207  34.4 %
            kws-dscnn -O3                       23571  44.0 %
            vww-mobilenet-96 -O2               125432  23.3 %
            vww-mobilenet-96 -O3                96237  30.4 %
        "#]],
    );
}

/// Layers from device memory to device memory with bias, requantization and bounds; some also add a tensor.
#[test]
fn layers_of_resnet18_take_these_cycles() {
    let config = HwConfig::load("1x16x16").unwrap();
    let mut table = String::new();
    for name in LAYERS.iter().flat_map(|layer| [layer.name.to_string(), format!("{}-add", layer.name)]) {
        let options = Options { level: 3, ..Options::new(&config) };
        let artifact = model::build(quantized(&name).unwrap(), &options, &mut |_, _| {}).unwrap();
        let inputs = inference::made_up(&artifact.manifest.input_values());
        table += &line(&name, artifact, &config, &inputs);
    }
    expect![[r#"
        resnet18-c2                        452995  99.7 %
        resnet18-c2-add                    455037  99.2 %
        resnet18-c3                        228514  98.8 %
        resnet18-c3-add                    228777  98.7 %
        resnet18-c4                         27417  91.5 %
        resnet18-c4-add                     54191  46.3 %
        resnet18-c5                        454519  99.4 %
        resnet18-c5-add                    455921  99.0 %
        resnet18-c6                        228290  98.9 %
        resnet18-c6-add                    229488  98.4 %
        resnet18-c7                         28381  88.4 %
        resnet18-c7-add                     31779  78.9 %
        resnet18-c8                        454501  99.4 %
        resnet18-c8-add                    455333  99.2 %
        resnet18-c9                        228486  98.8 %
        resnet18-c9-add                    229684  98.3 %
        resnet18-c10                        28036  89.5 %
        resnet18-c10-add                    30687  81.8 %
        resnet18-c11                       455137  99.2 %
        resnet18-c11-add                   455185  99.2 %
    "#]]
    .assert_eq(&table);
}

/// Networks of the zoo and whole networks of well-known shapes, which `zoo make` writes, at the highest level. None is
/// faster than the bound that follows from its shapes.
fn shapes(names: &[&str], expected: &Expect) {
    let config = HwConfig::load("1x16x16").unwrap();
    let mut table = String::new();
    for name in names {
        let options = Options { level: 3, ..Options::new(&config) };
        let built = model::build_traced(network(name).unwrap(), &options, &mut |_, _| {}).unwrap();
        let least = bound(&built, &config).unwrap().cycles();
        let inputs = inference::made_up(&built.artifact.manifest.input_values());
        let results = run_on(built.artifact.clone(), &config, DeviceKind::CSIM, &inputs, 1);
        assert!(results.cycles() >= Some(least), "{name}: {:?} cycles, bound {least}", results.cycles());
        table += &described(name, &built.artifact, &config, &results);
    }
    expected.assert_eq(&table);
}

/// Products of two activations with zero points, neighboring matrices overlapped.
#[test]
fn bert_tiny_takes_these_cycles() {
    shapes(
        &["bert-tiny"],
        &expect![[r#"
            bert-tiny                          251106  91.4 %
        "#]],
    );
}

#[test]
#[ignore = "long; make test-full runs it"]
fn networks_of_known_shapes_take_these_cycles() {
    shapes(
        &["resnet18", "resnet50", "mobilenet-v2", "deit-tiny", "vgg16", "vgg16-batch4", "efficientnet-lite0-int8"],
        &expect![[r#"
            resnet18                          7306873  97.0 %
            resnet50                         16951158  94.2 %
            mobilenet-v2                      2232411  52.6 %
            deit-tiny                         5403186  90.6 %
            vgg16                            75714565  79.8 %
            vgg16-batch4                     256409787  94.3 %
            efficientnet-lite0-int8           2933262  51.3 %
        "#]],
    );
}

/// The rows of `docs/mapping.md`, on all of its configurations.
#[test]
#[ignore = "long; make test-full runs it"]
fn networks_take_the_cycles_of_the_page() {
    let page = include_str!("../../docs/mapping.md");
    let table = page.split("<!-- table -->").nth(1).and_then(|rest| rest.split("<!-- end -->").next()).unwrap();
    let mut wrong = Vec::new();
    let rows: Vec<Vec<&str>> = table.lines().skip(3).map(|line| line.split('|').map(str::trim).collect()).collect();
    assert_eq!(rows.len(), 28);
    for row in rows {
        let found = mapping(network(row[1]).unwrap(), &HwConfig::load(row[2]).unwrap()).unwrap();
        if found.cycles.to_string() != row[3] {
            wrong.push(format!("{} on {}: {}, not {}", row[1], row[2], found.cycles, row[3]));
        }
    }
    assert!(wrong.is_empty(), "run make bench-mapping: {wrong:#?}");
}
