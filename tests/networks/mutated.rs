//! Artifacts whose description is changed at random, with right checksums: reading, opening and running one must end in
//! an error or in results, never in a panic or a hang.

use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tilewright::device::DeviceKind;
use tilewright::model::inference::made_up;
use tilewright::model::{self, Options};
use tilewright_compiler::graph::op::{Layout, Requantize};
use tilewright_compiler::graph::{DType, Graph, GraphBuilder, Tensor, TensorType};
use tilewright_hw::config::HwConfig;
use tilewright_hw::num::Rounding;
use tilewright_runtime::artifact::{Artifact, Dim, OpenValue, StepKind};
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::DynamicSession;
use tilewright_runtime::{SharedDevice, tensor};

use crate::{convolution, open};

/// A convolution of bytes, which the accelerator computes as a whole.
fn network(height: usize) -> Graph {
    let mut b = GraphBuilder::new("bytes");
    let x = b.input("x", TensorType::new(DType::I8, &[1, height, 6, 8]));
    let w = b.constant("w", Tensor::from_fn(&[8, 3, 3, 8], |i| (i % 15) as i8 - 7));
    let sum = b.node("conv", convolution(Layout::Nhwc, 1, 1), &[x, w]).unwrap();
    let constants = [
        b.constant("bias", Tensor::vector(vec![3i32; 8])),
        b.constant("multiplier", Tensor::vector(vec![1i32 << 30; 8])),
        b.constant("shift", Tensor::vector(vec![-5i32; 8])),
    ];
    let op = Requantize { axis: 3, zero_point: 0, lo: -128, hi: 127, mode: Rounding::Double };
    let y = b.node("requantize", op, &[sum, constants[0], constants[1], constants[2]]).unwrap();
    b.output("y", y);
    b.finish().unwrap()
}

/// The artifact's file with another description of it, and blobs that are `more` bytes further back.
fn file(description: &Value, blobs: &[u8], start: usize) -> Vec<u8> {
    let mut text = serde_json::to_vec(description).unwrap();
    // Blanks behind the text change nothing.
    text.resize(text.len().max(start - 64), b' ');
    let mut bytes = b"TILEWRGT".to_vec();
    bytes.extend(1u32.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(Sha256::digest(&text));
    bytes.resize(64, 0);
    bytes.extend(text);
    bytes.extend(blobs);
    bytes
}

/// Places in a description, as paths for [`Value::pointer`].
fn places(value: &Value, path: &str, found: &mut Vec<String>) {
    found.push(path.to_string());
    match value {
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(index, value)| places(value, &format!("{path}/{index}"), found));
        }
        Value::Object(map) => map.iter().for_each(|(name, value)| places(value, &format!("{path}/{name}"), found)),
        _ => {}
    }
}

/// Changes one place.
fn mutate(description: &mut Value, rng: &mut SmallRng) {
    let mut found = Vec::new();
    places(description, "", &mut found);
    // Text of the configuration is checked by its own tests.
    found.retain(|path| !path.ends_with("/toml"));
    let path = &found[rng.random_range(1..found.len())];
    let other = description.pointer(&found[rng.random_range(1..found.len())]).cloned().unwrap_or_default();
    let Some(place) = description.pointer_mut(path) else { return };
    let new = match (place.clone(), rng.random_range(0..5)) {
        (Value::Number(n), 0) => Value::from(n.as_i64().unwrap_or(0).wrapping_add(1)),
        (Value::Number(n), 1) => Value::from(n.as_i64().unwrap_or(0).wrapping_sub(1)),
        (Value::Number(n), 2) => Value::from(n.as_i64().unwrap_or(0) ^ (1i64 << rng.random_range(0..40))),
        (Value::Number(_), 3) => Value::from(u64::MAX >> rng.random_range(0..64)),
        (Value::Array(mut list), 0) if !list.is_empty() => {
            list.remove(rng.random_range(0..list.len()));
            list.into()
        }
        (Value::Array(mut list), 1) if !list.is_empty() => {
            list.push(list[rng.random_range(0..list.len())].clone());
            list.into()
        }
        (Value::Object(mut map), 0) if !map.is_empty() => {
            let name = map.keys().nth(rng.random_range(0..map.len())).cloned().unwrap_or_default();
            map.remove(&name);
            map.into()
        }
        _ => other,
    };
    *place = new;
}

#[test]
fn changed_descriptions_end_in_errors_or_results() {
    let config = HwConfig::load("1x8x8").unwrap();
    let compiled = |height| model::build(network(height), &Options::new(&config), &mut |_, _| {}).unwrap();
    let dims = [Dim::Size(1), Dim::Symbol("h".into()), Dim::Size(6), Dim::Size(8)].into();
    let open_inputs = vec![OpenValue { name: "x".into(), dtype: tensor::DType::I8, dims }];
    let artifact = Artifact::of_shapes(open_inputs, &[5, 9].map(compiled)).unwrap();
    let mut steps = artifact.manifest.of_each_shape().flat_map(|manifest| &manifest.steps);
    assert!(steps.all(|step| matches!(step.kind, StepKind::Accel(_))), "native code could do anything");

    let bytes = artifact.encode();
    let mut description: Value = serde_json::to_value(&artifact.manifest).unwrap();
    let old = Artifact::decode("bytes", &bytes).unwrap().manifest.blobs.iter().map(|blob| blob.offset as usize).min();
    let (old, start) = (old.unwrap(), (64 + description.to_string().len() + 8192).next_multiple_of(64));
    let decoded = Artifact::decode("bytes", &bytes).unwrap();
    for (index, blob) in decoded.manifest.blobs.iter().enumerate() {
        description["blobs"][index]["offset"] = Value::from(blob.offset as usize - old + start);
    }
    let blobs = &bytes[old..];

    // The same cases each time; more where time for them is given.
    let (cases, seconds) = (3000, tilewright_testing::asked("SECONDS"));
    let seed = tilewright_testing::asked("SEED").unwrap_or(1);
    println!("SEED={seed}");
    let (mut rng, begun, mut case) = (SmallRng::seed_from_u64(seed), Instant::now(), 0);
    let (mut unread, mut unopened, mut failed, mut done) = (0, 0, 0, 0);
    while seconds.map_or(case < cases, |seconds| begun.elapsed() < Duration::from_secs(seconds)) {
        case += 1;
        let mut changed = description.clone();
        for _ in 0..rng.random_range(1..4) {
            mutate(&mut changed, &mut rng);
        }
        let Ok(artifact) = Artifact::decode("changed", &file(&changed, blobs, start)) else {
            unread += 1;
            continue;
        };
        let inputs: Vec<_> = artifact.manifest.of_each_shape().map(|m| made_up(&m.input_values())).collect();
        let device = SharedDevice::new(open(DeviceKind::FSIM, &config).unwrap().unwrap());
        let Ok(mut session) = DynamicSession::of_artifact(artifact, &Registry::new(), Some(device)) else {
            unopened += 1;
            continue;
        };
        for inputs in inputs {
            if session.run(&inputs).is_ok() { done += 1 } else { failed += 1 }
        }
    }
    println!("{unread} not read, {unopened} not opened, {failed} runs failed, {done} ended");
    assert!(unread > 0 && done > 0, "both happen");
}
