use std::collections::{BTreeMap, BTreeSet};

use expect_test::{expect, expect_file};

use super::{Call, Operator, Signature, operators, sentence};
use crate::graph::op::Attr;
use crate::graph::{DType, Op, eval};
use crate::suite::{Problem, difference, problems};
use crate::te::ops::tests::{array, tensor};
use crate::te::text::{Names, parse_with};
use crate::te::{Builder, Definition, Program};
use crate::te::{ParseError, ops::Library};
use crate::tir::evaluate;

fn parse(text: &str) -> Result<Program, ParseError> {
    parse_with(text, &Names { operators: &Library, ..Names::default() })
}

/// Returns the operator of a problem.
fn operator(p: &Problem) -> Op {
    let (_, node) = p.graph.nodes().next().unwrap();
    node.op.clone()
}

/// The problems of operators that can be called.
fn callable(seed: u64, rounds: usize) -> Vec<Problem> {
    let mut all = problems(seed, rounds).unwrap();
    all.retain(|p| Operator::named(operator(p).name()).is_ok());
    all
}

/// Returns a program that calls a problem's operator.
fn text(p: &Problem, name: &str, attributes: &[(String, Attr)]) -> String {
    let types: Vec<_> = p.graph.inputs().map(|(_, v)| p.graph.ty(v).clone()).collect();
    let inputs: String = types.iter().enumerate().map(|(i, t)| format!("  input x{i}: {t}\n")).collect();
    let operands = (0..types.len()).map(|i| format!("x{i}"));
    let arguments: Vec<String> = operands.chain(attributes.iter().map(|(k, v)| format!("{k} = {v}"))).collect();
    format!("te t {{\n{inputs}  output y = {name}({})\n}}\n", arguments.join(", "))
}

fn attributes(op: &Op) -> Vec<(String, Attr)> {
    op.attrs().into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

/// Evaluates a program on a problem's data, and compares the result with the graph's.
fn compare(p: &Problem, program: &Program, text: &str) {
    let want = eval(&p.graph, &p.inputs).unwrap();
    let args: Vec<_> = p.inputs.iter().map(array).collect();
    let got = evaluate(program, &args).unwrap_or_else(|e| panic!("{text}: {e}"));
    let most = if want[0].dtype() == DType::F32 { 1e-5 } else { 0.0 };
    let apart = difference(&tensor(&got[0]), &want[0]);
    assert!(apart <= most, "differs by {apart}\n{text}");
}

/// Checks random problems until every operator that `counts` has been called, in at most 100 rounds. `check` returns the
/// operator that it called.
fn call_all(counts: impl Fn(&Operator) -> bool, check: impl Fn(&Problem) -> Option<&'static str>) {
    let mut called = BTreeSet::new();
    let missing = |called: &BTreeSet<&str>| {
        operators().iter().filter(|o| counts(o) && !called.contains(o.name)).map(|o| o.name).collect::<Vec<_>>()
    };
    for seed in 0..100 {
        println!("seed {seed}");
        called.extend(callable(seed, 2).iter().filter_map(&check));
        if missing(&called).is_empty() {
            return;
        }
    }
    panic!("never called: {:?}", missing(&called));
}

/// Each operator is called from text with random attributes and data. The spelled-out program reads back.
#[test]
fn every_operator_called_from_text_equals_the_graph_evaluation() {
    let check = |p: &Problem| {
        let op = operator(p);
        let text = text(p, op.name(), &attributes(&op));
        let program = parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        compare(p, &program, &text);
        // As text, in which NaN equals itself.
        let again = parse(&program.to_string()).map(|program| format!("{program:?}"));
        assert_eq!(again, Ok(format!("{program:?}")), "{text}");
        Some(op.name())
    };
    call_all(|o| o.kind.is_none(), check);
}

/// `tanh(x)` is `unary(x, kind = tanh)`.
#[test]
fn each_function_is_an_operator() {
    let check = |p: &Problem| {
        let op = operator(p);
        let all = attributes(&op);
        let Some((_, Attr::Word(kind))) = all.iter().find(|a| a.0 == "kind") else { return None };
        let function = operators().iter().find(|o| o.kind == Some(kind) && o.signature.name == op.name())?;
        let taken = |a: &&(String, Attr)| function.signature.attributes.iter().any(|b| b.name == a.0);
        let short = text(p, kind, &all.iter().filter(taken).cloned().collect::<Vec<_>>());
        compare(p, &parse(&short).unwrap_or_else(|e| panic!("{short}: {e}")), &short);
        Some(function.name)
    };
    call_all(|o| o.kind.is_some(), check);
}

/// A call without an attribute has the default that the table says.
#[test]
fn attributes_have_their_defaults() {
    for p in callable(7, 1) {
        let op = operator(&p);
        let signature = Op::signatures().into_iter().find(|s| s.name == op.name()).unwrap();
        let default = |name: &str| signature.attributes.iter().find(|a| a.name == name).and_then(|a| a.default.clone());
        let all = attributes(&op);
        let needed = all.iter().filter(|a| default(&a.0).is_none()).cloned();
        let call = needed.fold(Call::of(op.name()).unwrap(), |call, (name, value)| call.set(&name, value));
        let want: Vec<_> = all.into_iter().map(|(name, v)| (name.clone(), default(&name).unwrap_or(v))).collect();
        assert_eq!(attributes(&call.op().unwrap()), want);
    }
}

/// Numbers out of range are refused or computed, but nothing panics.
#[test]
fn any_number_is_refused_or_computed() {
    let numbers = [0, -1, i64::from(i32::MAX), i64::from(i32::MIN), i64::MAX, 1 << 20].map(Attr::Int);
    let floats = [f32::MAX, -1e30, 1e-40].map(Attr::Float);
    let mut refused = 0;
    for p in callable(8, 1) {
        let op = operator(&p);
        let all = attributes(&op);
        for (i, value) in (0..all.len()).flat_map(|i| numbers.iter().chain(&floats).map(move |v| (i, v))) {
            let mut changed = all.clone();
            changed[i].1 = match &changed[i].1 {
                Attr::List(list) => Attr::List(list.iter().map(|_| value.clone()).collect()),
                _ => value.clone(),
            };
            match parse(&text(&p, op.name(), &changed)) {
                Ok(program) => assert!(crate::tir::lower(&program).is_ok(), "{program}"),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 300, "{refused}");
}

/// The names of stages depend on the operator alone, not on those of other tensors.
#[test]
fn stages_have_the_names_of_the_result_and_the_stage() {
    let text = "te t {
  input pad: f32[1, 4, 4, 1]
  input w: f32[1, 3, 3, 1]
  sum = conv2d(pad, w, pads = [1, 1, 1, 1])
  again = conv2d(sum, w, pads = [1, 1, 1, 1])
  output y = softmax(again, axis = 1)
}";
    let names: Vec<String> = parse(text).unwrap().tensors.iter().map(|t| t.name.to_string()).collect();
    expect!["pad w sum.pad sum again.pad again y.greatest y.exp y.sum y"].assert_eq(&names.join(" "));
}

/// A program in Rust takes names that are free.
#[test]
fn results_in_rust_have_free_names() {
    let mut b = Builder::new("twice");
    let x = b.input("x", DType::F32, &[2]);
    let y = Call::of("tanh").unwrap().append(&mut b, "x", &[x]).unwrap();
    assert_eq!(y.name.as_str(), "x_2");
    let e = Call::of("leaky_relu").unwrap().append(&mut b, "y", &[y]).unwrap_err();
    assert_eq!(e.to_string(), "leaky_relu: attribute alpha is missing: First parameter, for functions that have one");
}

/// The page of all operators up to the first one.
const HEAD: &str = "\
# Operators of tensor expressions

Generated from the operators in `compiler/src/graph/op` by `UPDATE_EXPECT=1 cargo test -p tilewright-compiler --lib
operators_page`; do not edit.

[Schedules](schedule.md#operators) shows how `.te` files call operators. Operands in brackets can be left out. An
attribute without a default must be given. The blocks of a result are those that schedules can name; which of them there
are depends on attributes and sizes. Each has a loop for each dimension, `y.i0`, `y.i1`, …, and those of its reduction.

";

/// Returns the blocks that calls of each operator make, with the loops of their reductions, as far as random problems
/// show them. A result without a reduction is left out.
fn blocks() -> BTreeMap<&'static str, Vec<(String, Vec<String>)>> {
    let mut found: BTreeMap<_, Vec<(String, Vec<String>)>> = BTreeMap::new();
    for p in callable(9, 12) {
        let op = operator(&p);
        let program = parse(&text(&p, op.name(), &attributes(&op))).unwrap();
        let list = found.entry(op.name()).or_default();
        for t in program.tensors.iter().filter(|t| t.definition != Definition::Input) {
            let axes = if let Definition::Reduce { axes, .. } = &t.definition { axes.as_slice() } else { &[] };
            if axes.is_empty() && t.name.as_str() == "y" {
                continue;
            }
            let name = t.name.to_string();
            let place = list.iter().position(|b| b.0 == name).unwrap_or(list.len());
            if place == list.len() {
                list.push((name, Vec::new()));
            }
            let loops = &mut list[place].1;
            loops.extend(axes.iter().map(|a| a.var.to_string()));
            loops.sort_by_key(|l| (l.ends_with(".ci"), !l.ends_with(".kh"), l.clone()));
            loops.dedup();
        }
    }
    found
}

/// Writes `docs/operators.md`.
#[test]
fn operators_page() {
    let mut page = HEAD.to_string();
    let blocks = blocks();
    let plain = |doc: &str| doc.lines().map(|l| l.strip_prefix(' ').unwrap_or(l)).collect::<Vec<_>>().join("\n");
    let plain = |doc: &str| plain(doc).replace("[`", "`").replace("`]", "`");
    for o in operators().iter().filter(|o| o.kind.is_none()) {
        let signature = Signature { attributes: Vec::new(), ..o.signature.clone() };
        let operands = Operator { signature, ..o.clone() };
        page += &format!("## {}\n\n`{}`\n\n{}\n", o.name, operands.form(), plain(o.signature.doc).trim_end());
        if !o.signature.attributes.is_empty() {
            page += "\n| attribute | default | meaning |\n|---|---|---|\n";
        }
        for a in &o.signature.attributes {
            let default = a.default.as_ref().map_or("required".into(), |d| format!("`{d}`"));
            let words = match a.words {
                [] | ["true", "false"] => String::new(),
                words => format!(": {}", words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ")),
            };
            let doc = plain(a.doc).split_whitespace().collect::<Vec<_>>().join(" ");
            page += &format!("| `{}` | {default} | {}{words} |\n", a.name, doc.trim_end_matches('.'));
        }
        let made = blocks.get(o.name).map_or(&[][..], Vec::as_slice);
        if !made.is_empty() {
            page += "\n| block of a result `y` | loops of its reduction |\n|---|---|\n";
        }
        for (block, loops) in made {
            page +=
                &format!("| `{block}` | {} |\n", loops.iter().map(|l| format!("`{l}`")).collect::<Vec<_>>().join(", "));
        }
        page.push('\n');
    }
    page += "## Functions\n\nEach function of `unary` and `binary` is also an operator:\n\n";
    for o in operators().iter().filter(|o| o.kind.is_some()) {
        page += &format!("- `{}`\n", o.form());
    }
    expect_file!["../../../../../docs/operators.md"].assert_eq(&page);
    assert_eq!(sentence(" One\n two. Three."), "One two");
}
