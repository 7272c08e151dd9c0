use super::*;
use crate::graph::op::{Op, Relu};
use crate::graph::{DType, GraphBuilder, TensorType, ValueId};
use crate::passes::{Options, PassError, optimize};

const NAME: &str = "network of added passes";

/// A pass that replaces the whole graph.
struct Whole(&'static str, fn(&Graph) -> Result<Option<Graph>, PassFailure>);

impl Pass for Whole {
    fn name(&self) -> &'static str {
        self.0
    }

    fn rewrite_graph(&self, graph: &Graph) -> Result<Option<Graph>, PassFailure> {
        // Other tests run at the same time.
        if graph.name() == NAME { (self.1)(graph) } else { Ok(None) }
    }

    fn rewrite(&self, _: &View, _: NodeId) -> Option<Patch> {
        None
    }
}

fn network(relus: usize, output: &str) -> Graph {
    let mut b = GraphBuilder::new(NAME);
    let mut v: ValueId = b.input("x", TensorType::new(DType::F32, &[2]));
    for _ in 0..relus {
        v = b.node("relu", Op::from(Relu {}), &[v]).unwrap();
    }
    b.output(output, v);
    b.finish().unwrap()
}

#[test]
fn an_added_pass_runs_in_its_place_and_is_checked() {
    let names = |level| own_passes(level).len();
    let before = names(OptLevel::O2);
    let shared = |name, body| Arc::new(Whole(name, body));
    add("fold_constants", shared("tests.one_relu", |_| Ok(Some(network(1, "y"))))).unwrap();
    let with = super::super::pipelines::passes(OptLevel::O2);
    let place = with.iter().position(|pass| pass.name() == "tests.one_relu").unwrap();
    assert_eq!((with.len(), with[place - 1].name()), (before + 1, "fold_constants"));
    // The lowest level has no such pass.
    assert_eq!(super::super::pipelines::passes(OptLevel::O0).len(), names(OptLevel::O0));

    let mut dumped = Vec::new();
    let mut dump = |pass: &'static str, _: &Graph| dumped.push(pass);
    let (g, report) =
        optimize(network(3, "y"), OptLevel::O1, Options { dump: Some(&mut dump), ..Options::default() }).unwrap();
    assert_eq!(g.nodes().len(), 1);
    assert_eq!(report.count("tests.one_relu"), 1);
    assert!(dumped.contains(&"tests.one_relu"));
    let stopped = Options { stop_after: Some(report.applied.len() - 1), ..Options::default() };
    assert!(optimize(network(3, "y"), OptLevel::O1, stopped).unwrap().1.count("tests.one_relu") == 0);

    let twice = add("fold_constants", shared("tests.one_relu", |_| Ok(None))).unwrap_err();
    assert_eq!(twice, AddError::Twice { pass: "tests.one_relu".into() });
    assert!(remove("tests.one_relu") && !remove("tests.one_relu"));
    let unknown = add("folding", shared("tests.late", |_| Ok(None))).unwrap_err().to_string();
    assert!(unknown.starts_with("there is no pass folding after which tests.late could run; there are dead_code, "));

    let fails = |body| {
        add("dead_code", shared("tests.fails", body)).unwrap();
        let outcome = optimize(network(1, "y"), OptLevel::O1, Options::default());
        remove("tests.fails");
        outcome.unwrap_err()
    };
    assert_eq!(fails(|_| Err("no".into())).to_string(), "pass `tests.fails`: no");
    let edges = fails(|_| Ok(Some(network(1, "z"))));
    assert_eq!(
        edges.to_string(),
        "pass `tests.fails` changed the inputs or outputs from (x: f32[2]) -> (y: f32[2]) to (x: f32[2]) -> (z: f32[2]); \
         they must stay as they are"
    );
    let broken = fails(|g| {
        let mut broken = g.clone();
        broken.outputs.clear();
        Ok(Some(broken))
    });
    assert!(matches!(broken, PassError::Whole { .. }));
    assert_eq!(broken.to_string(), "pass `tests.fails` returned an invalid graph: the graph has no output");
}
