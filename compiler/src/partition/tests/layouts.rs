//! Tests the joint decision on layouts: compares it with all other assignments, and with a decision layer by layer.

use super::problems::{int8, qadd, requantize};
use super::{check, on_cpu};
use crate::cost::Analytic;
use crate::graph::op::{Conv2d, Layout, Lookup, Transpose};
use crate::graph::{DType, Graph, GraphBuilder, NodeId, Op, Tensor, TensorType, ValueId};
use crate::partition::decide::{Costs, NodeChoice, decide};
use crate::partition::layouts::Layouts;
use crate::partition::shared::COPIED;
use crate::partition::{Options, partition};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tilewright_hw::HwConfig;

fn conv(rng: &mut StdRng, b: &mut GraphBuilder, x: ValueId, channels: usize, layout: Layout) -> ValueId {
    let weights = int8(rng, &[channels, 1, 1, channels]);
    let weights = b.constant("", weights);
    let (strides, pads, dilations, groups) = ([1, 1], [0; 4], [1, 1], 1);
    let op = Conv2d { strides, pads, dilations, groups, layout, data_zero_point: 3, weight_zero_point: 0 };
    let sums = b.node("conv", op, &[x, weights]).unwrap();
    requantize(rng, b, sums, layout.channel_axis(), channels)
}

fn lookup(rng: &mut StdRng, b: &mut GraphBuilder, x: ValueId) -> ValueId {
    let table = int8(rng, &[256]);
    let table = b.constant("", table);
    b.node("lookup", Lookup {}, &[x, table]).unwrap()
}

fn inputs(graph: &Graph) -> Vec<Tensor> {
    let rng = &mut StdRng::seed_from_u64(9);
    graph.inputs().map(|(_, v)| int8(rng, &graph.ty(v).shape().unwrap())).collect()
}

/// A lookup, whose data and result can have any layout, followed by a convolution that needs channels before rows.
fn table_first() -> Graph {
    let rng = &mut StdRng::seed_from_u64(1);
    let mut b = GraphBuilder::new("table first");
    let x = b.input("x", TensorType::new(DType::I8, &[1, 32, 12, 10]));
    let y = lookup(rng, &mut b, x);
    let y = conv(rng, &mut b, y, 32, Layout::Nchw);
    b.output("y", y);
    b.finish().unwrap()
}

/// Nanoseconds if each node takes its first choice, and nanoseconds of the joint decision.
fn both(graph: &Graph, config: &HwConfig) -> [u64; 2] {
    let (options, refused, oracle) = (Options::default(), HashMap::new(), Analytic { config });
    let layouts = Layouts::new(graph, config, &options, &refused, &oracle);
    let first = |id: NodeId, lies: &dyn Fn(ValueId) -> Option<_>| layouts.choices(id, lies)[..1].to_vec();
    [decide(graph, &first, &layouts).1, decide(graph, &|id, lies| layouts.choices(id, lies), &layouts).1]
}

#[test]
fn one_decision_is_cheaper_than_one_layer_after_the_other() {
    let (graph, config) = (table_first(), HwConfig::default());
    let [greedy, whole] = both(&graph, &config);
    assert!(whole < greedy, "{whole} {greedy}");
    let parts = check(&graph, &config, &inputs(&graph));
    assert_eq!(parts.regions.len(), 1);
    assert!(on_cpu(&parts).is_empty());
}

#[test]
fn changes_of_layout_are_told_with_their_cost() {
    let rng = &mut StdRng::seed_from_u64(2);
    let mut b = GraphBuilder::new("both orders");
    let x = b.input("x", TensorType::new(DType::I8, &[1, 8, 8, 8]));
    let y = conv(rng, &mut b, x, 8, Layout::Nhwc);
    let y = conv(rng, &mut b, y, 8, Layout::Nchw);
    b.output("y", y);
    let (graph, config) = (b.finish().unwrap(), HwConfig::default());
    let parts = check(&graph, &config, &inputs(&graph));
    let told = parts.explanations.iter().filter(|e| e.why.contains("the host changes the layout of "));
    assert!(told.clone().count() > 0 && told.clone().all(|e| e.why.ends_with(" us")), "{:?}", parts.explanations);
}

/// Operators with and without a fixed layout, on images with as many channels as rows and columns.
fn random(rng: &mut StdRng) -> Graph {
    let mut b = GraphBuilder::new("random");
    let image = TensorType::new(DType::I8, &[1, 6, 6, 6]);
    let mut values = vec![b.input("x", image.clone()), b.input("y", image)];
    for _ in 0..rng.random_range(2..6) {
        let [x, y] = [0; 2].map(|_| values[rng.random_range(0..values.len())]);
        let layout = if rng.random() { Layout::Nhwc } else { Layout::Nchw };
        values.push(match rng.random_range(0..8) {
            0..2 => conv(rng, &mut b, x, 6, layout),
            2..4 => lookup(rng, &mut b, x),
            4 => b.node("transpose", Transpose { perm: vec![0, 3, 1, 2] }, &[x]).unwrap(),
            5 => b.node("turned", Transpose { perm: vec![0, 3, 2, 1] }, &[x]).unwrap(),
            _ if x != y => {
                let op = qadd(rng);
                b.node("add", op, &[x, y]).unwrap()
            }
            _ => continue,
        });
    }
    let last = *values.last().unwrap();
    b.output("y", last);
    b.finish().unwrap()
}

/// Nanoseconds of a whole assignment, counted value by value.
fn price(graph: &Graph, chosen: &BTreeMap<NodeId, NodeChoice>, costs: &dyn Costs) -> u64 {
    let (mut sum, mut made, mut host) = (0, HashMap::new(), BTreeSet::new());
    let mut read: BTreeMap<ValueId, BTreeSet<_>> = BTreeMap::new();
    for (&id, choice) in chosen {
        let node = graph.node(id);
        match choice {
            NodeChoice::Cpu(_) => {
                sum += costs.cpu(id);
                host.extend(node.inputs.iter().copied());
            }
            NodeChoice::Alias(view) => {
                let view = view.or(made.get(&node.inputs[0]).copied()).unwrap();
                made.insert(node.output(), view);
            }
            NodeChoice::Layer(planned) => {
                let (layer, plan) = planned.as_ref();
                sum += costs.layer(layer, plan);
                made.insert(layer.output.0, layer.output.1);
                layer.inputs.iter().for_each(|(v, view)| _ = read.entry(*v).or_default().insert(*view));
            }
        }
    }
    host.extend(graph.outputs().iter().map(|(_, v)| *v));
    for value in (0..graph.value_count()).map(ValueId) {
        let others = read.get(&value).into_iter().flatten().filter(|view| made.get(&value) != Some(view));
        sum += others.clone().map(|view| costs.enter(value, *view)).sum::<u64>();
        if let Some(view) = made.get(&value)
            && (host.contains(&value) || others.count() > 0)
        {
            sum += costs.leave(value, *view);
        }
    }
    sum
}

/// Minimum cost of all assignments.
fn least(graph: &Graph, layouts: &Layouts, chosen: &mut BTreeMap<NodeId, NodeChoice>, at: usize) -> u64 {
    let Some((id, _)) = graph.nodes().nth(at) else { return price(graph, chosen, layouts) };
    let taken = chosen.values().any(|c| matches!(c, NodeChoice::Layer(planned) if planned.0.nodes.contains(&id)));
    if taken || matches!(graph.node(id).op, Op::Constant(_)) {
        return least(graph, layouts, chosen, at + 1);
    }
    let mut made = HashMap::new();
    for (id, choice) in chosen.iter() {
        let node = graph.node(*id);
        match choice {
            NodeChoice::Cpu(_) => None,
            NodeChoice::Alias(view) => {
                let view = view.or(made.get(&node.inputs[0]).copied());
                view.and_then(|view| made.insert(node.output(), view))
            }
            NodeChoice::Layer(planned) => made.insert(planned.0.output.0, planned.0.output.1),
        };
    }
    let choices = layouts.choices(id, &|v| made.get(&v).copied());
    let of = |choice: NodeChoice| {
        chosen.insert(id, choice);
        let found = least(graph, layouts, chosen, at + 1);
        chosen.remove(&id);
        found
    };
    choices.into_iter().map(of).min().unwrap()
}

#[test]
fn no_assignment_is_cheaper() {
    let config = HwConfig::load("1x4x4").unwrap();
    let (options, refused, oracle) = (Options::default(), HashMap::new(), Analytic { config: &config });
    let mut better = 0;
    for seed in 0..60 {
        let graph = random(&mut StdRng::seed_from_u64(seed));
        let layouts = Layouts::new(&graph, &config, &options, &refused, &oracle);
        let [greedy, whole] = both(&graph, &config);
        assert_eq!(whole, least(&graph, &layouts, &mut BTreeMap::new(), 0), "seed {seed}: {graph}");
        assert!(whole <= greedy, "seed {seed}");
        better += usize::from(whole < greedy);
        check(&graph, &config, &inputs(&graph));
        assert_eq!(partition(&graph, &config, options), partition(&graph, &config, options));
    }
    assert!(better >= 3, "only {better} are better than one layer after the other");
}

/// `count` lookups of one image. Their results are live until they are summed in pairs.
fn sums_of_tables(count: usize) -> Graph {
    let rng = &mut StdRng::seed_from_u64(4);
    let mut b = GraphBuilder::new("sums of tables");
    let x = b.input("x", TensorType::new(DType::I8, &[1, 6, 6, 6]));
    let mut open: Vec<ValueId> = (0..count).map(|_| lookup(rng, &mut b, x)).collect();
    while open.len() > 1 {
        let pairs = open.chunks(2).map(|pair| {
            let op = qadd(rng);
            b.node("add", op, pair).unwrap()
        });
        open = pairs.collect();
    }
    b.output("y", open[0]);
    b.finish().unwrap()
}

#[test]
fn work_grows_with_the_nodes_however_many_values_are_open() {
    let config = HwConfig::load("1x4x4").unwrap();
    let [few, many] = [32, 128].map(|count| {
        let before = COPIED.get();
        both(&sums_of_tables(count), &config);
        COPIED.get() - before
    });
    assert!(few > 10_000, "{few} copies: too few states are open to say anything");
    // Four times as many nodes, so the numbers of values have at most one digit more.
    assert!(many < 6 * few, "{few} copies of branches for 32 tables, {many} for 128");
}
