use super::*;
use std::path::Path;

use tilewright_compiler::graph::op::{Clip, Op};
use tilewright_compiler::graph::{GraphBuilder, NodeId, TensorType};
use tilewright_compiler::passes::pipelines::{OptLevel, passes};
use tilewright_compiler::passes::{Patch, Ref, View};

use crate::model;
use crate::model::inference::made_up;

const LENET: &str = "tests/models/lenet-mnist/model_qdq_perchannel.onnx";

fn imported(name: &str) -> Graph {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    model::import(&path, model::Sizes::default()).unwrap()
}

fn inputs(graph: &Graph) -> Vec<Vec<Tensor>> {
    let values = model::inputs(graph).unwrap();
    vec![made_up(&values.iter().collect::<Vec<_>>()).iter().map(|t| Tensor::try_from(t).unwrap()).collect()]
}

const STRICT: Tolerance = Tolerance { steps: 0, relative: 1e-5 };

#[test]
fn the_pipelines_change_no_answer() {
    for model in [LENET, "tests/models/lenet-mnist/model.onnx", "tests/models/tflite-ops/residual_block.tflite"] {
        let graph = imported(model);
        for level in [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3] {
            let found = bisect(&graph, &passes(level), &inputs(&graph), &STRICT).unwrap();
            assert_eq!(found.suspect, None, "{model} at {level:?}");
            // If nothing is wrong, only the ends of stretches are evaluated.
            assert!(found.evaluations <= found.stretches.len() + 1);
        }
    }
    let graph = imported(LENET);
    let found = bisect(&graph, &passes(OptLevel::O2), &inputs(&graph), &STRICT).unwrap();
    assert!(found.patches > 10 && found.stretches.iter().any(|s| !s.exact), "{found:?}");
    assert!(found.stretches.iter().filter(|s| s.exact).all(|s| s.largest.as_ref().is_none_or(|l| l.1 < 1e-3)));
}

/// Renames clips, which is harmless, and changes the bound of one of them.
struct Wrong {
    node: &'static str,
}

impl Pass for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let node = view.graph.node(at);
        let Op::Clip(clip) = &node.op else { return None };
        if node.name.ends_with("/again") {
            return None;
        }
        let hi = if node.name == self.node { 0.5 } else { clip.hi };
        let mut patch = Patch::new("clip_again");
        let new = patch.node(&format!("{}/again", node.name), Clip { lo: clip.lo, hi }, &[Ref::Old(node.inputs[0])]);
        Some(patch.replace(node.output(), new))
    }
}

/// A chain of clips, each with tighter bounds than the one before.
fn clips(count: usize) -> Graph {
    let mut b = GraphBuilder::new("clips");
    let mut v = b.input("x", TensorType::new(tilewright_compiler::graph::DType::F32, &[1, 64]));
    for i in 0..count {
        let hi = 1.0 + (count - i) as f32;
        v = b.node(&format!("clip{i}"), Clip { lo: -hi, hi }, &[v]).unwrap();
    }
    b.output("y", v);
    b.finish().unwrap()
}

#[test]
fn the_wrong_patch_among_many_is_named_in_few_evaluations() {
    let graph = clips(100);
    let x = Tensor::from_fn(&[1, 64], |i| i as f32 * 4.0);
    for (node, number) in
        [("none", None), ("clip0", Some(1)), ("clip63", Some(64)), ("clip98", Some(99)), ("clip99", Some(100))]
    {
        let list: Vec<Box<dyn Pass>> = vec![Box::new(Wrong { node })];
        let found = bisect(&graph, &list, &[vec![x.clone()]], &STRICT).unwrap();
        assert_eq!(found.patches, 100);
        assert_eq!(found.suspect.as_ref().map(|s| s.number), number, "{node}");
        let Some(suspect) = found.suspect else { continue };
        assert_eq!((suspect.applied.pass, suspect.applied.what), ("wrong", "clip_again"));
        assert_eq!((suspect.applied.node.as_str(), suspect.output.as_str()), (node, "y"));
        assert_eq!(suspect.before, [format!("clip {node}")]);
        assert_eq!(suspect.after, [format!("clip {node}/again")]);
        assert!(found.evaluations <= 9, "{}", found.evaluations);
    }
}

#[test]
fn a_patch_that_changes_the_answer_of_the_last_run_alone_is_named() {
    let graph = clips(20);
    let list: Vec<Box<dyn Pass>> = vec![Box::new(Wrong { node: "clip7" })];
    let run = |step: f32| vec![Tensor::from_fn(&[1, 64], |i| i as f32 * step)];
    let found = bisect(&graph, &list, &[run(0.0), run(0.001), run(4.0)], &STRICT).unwrap();
    let suspect = found.suspect.unwrap();
    assert_eq!((suspect.number, suspect.run, suspect.output.as_str()), (8, 2, "y"));
    assert!(found.stretches[0].largest.is_some());
    assert_eq!(bisect(&graph, &list, &[run(0.0), run(0.001)], &STRICT).unwrap().suspect, None);
}

/// Shifts a zero point by one.
struct Off {
    exact: bool,
}

impl Pass for Off {
    fn name(&self) -> &'static str {
        "off"
    }

    fn exact(&self) -> bool {
        self.exact
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        let node = view.graph.node(at);
        let Op::Requantize(requantize) = &node.op else { return None };
        if requantize.zero_point != -128 {
            return None;
        }
        let mut patch = Patch::new("zero_point_off");
        let inputs: Vec<Ref> = node.inputs.iter().map(|v| Ref::Old(*v)).collect();
        let other =
            Op::Requantize(tilewright_compiler::graph::op::Requantize { zero_point: -127, ..requantize.clone() });
        let new = patch.node(&node.name, other, &inputs);
        Some(patch.replace(node.output(), new))
    }
}

#[test]
fn a_wrong_pass_put_into_a_pipeline_is_named_and_a_right_one_behind_it_is_not() {
    let graph = imported(LENET);
    let mut list = passes(OptLevel::O2);
    let at = list.iter().position(|pass| pass.name() == "legalize_qdq").unwrap() + 2;
    list.insert(at, Box::new(Off { exact: true }));
    let found = bisect(&graph, &list, &inputs(&graph), &STRICT).unwrap();
    let suspect = found.suspect.unwrap();
    assert_eq!((suspect.applied.pass, suspect.applied.what), ("off", "zero_point_off"));
    assert_eq!(suspect.output, "logits");
    assert!(found.stretches.last().unwrap().exact);
}

/// Inserts an inexact pass after the one that replaces floats by integers.
#[test]
fn a_step_in_every_element_is_too_much_for_an_inexact_patch_too() {
    let graph = imported(LENET);
    let mut list = passes(OptLevel::O2);
    let at = list.iter().position(|pass| pass.name() == "legalize_qdq").unwrap() + 1;
    list.insert(at, Box::new(Off { exact: false }));
    let found = bisect(&graph, &list, &inputs(&graph), &STRICT).unwrap();
    let suspect = found.suspect.unwrap();
    assert_eq!((suspect.applied.pass, suspect.applied.what), ("off", "zero_point_off"));
    assert_eq!(suspect.difference.largest, 1.0);
    let stretch = found.stretches.last().unwrap();
    assert!(!stretch.exact && stretch.patches[0] < suspect.number, "{stretch:?}");
}
