use super::*;
use crate::artifact::{BlobId, Manifest, Step, ValueInfo};
use crate::function::{AnyError, Function};
use crate::tensor::DType;
use crate::value::Value;

/// `y = x + w` over three bytes, then `z = y + y`.
pub(crate) fn artifact() -> Artifact {
    sums(1)
}

/// `y = x + w` over three bytes, then `doublings` steps that each double the value before.
fn sums(doublings: u32) -> Artifact {
    let value = |name: &str, constant: Option<u32>| ValueInfo {
        constant: constant.map(BlobId),
        ..ValueInfo::new(name, DType::I8, vec![1, 3])
    };
    let step = |inputs: [u32; 2], output: u32| Step {
        name: format!("add{output}"),
        kind: StepKind::Packed { function: "add".into(), attributes: Default::default() },
        inputs: inputs.map(ValueId).to_vec(),
        outputs: vec![ValueId(output)],
    };
    let manifest = Manifest {
        values: [value("x", None), value("w", Some(0)), value("y", None)]
            .into_iter()
            .chain((0..doublings).map(|_| value("z", None)))
            .collect(),
        inputs: vec![ValueId(0)],
        outputs: vec![ValueId(2 + doublings), ValueId(2)],
        steps: std::iter::once(step([0, 1], 2)).chain((2..2 + doublings).map(|at| step([at, at], at + 1))).collect(),
        ..Manifest::new("sum", "test")
    };
    Artifact::new("sum", manifest, vec![vec![1, 2, 3]]).unwrap()
}

pub(crate) fn functions() -> Registry {
    let functions = Registry::new();
    functions.add(Function::new("add", |args| {
        let (a, b) = (args.get::<Tensor>(0)?, args.get::<Tensor>(1)?);
        let sums = a.bytes.iter().zip(&b.bytes).map(|(a, b)| a.checked_add(*b).ok_or("the sum overflows"));
        let bytes = sums.collect::<Result<Vec<u8>, _>>()?;
        Ok(Tensor { bytes: bytes.into(), ..a.clone() }.into())
    }));
    functions
}

/// [`functions`], where `add` calls `before` with the first byte of its first tensor.
pub(crate) fn with_hook(before: impl Fn(u8) -> Result<(), AnyError> + Send + Sync + 'static) -> Registry {
    let registry = Registry::new();
    let add = functions().get("add").unwrap();
    registry.add(Function::new("add", move |args| {
        before(args.tensors(0)?[0].bytes[0])?;
        Ok(add.call(args.values())?)
    }));
    registry
}

/// [`functions`], where `add` panics if the first byte of its first tensor is 13.
pub(crate) fn panicking_at_13() -> Registry {
    with_hook(|first| {
        assert!(first != 13, "bad luck");
        Ok(())
    })
}

pub(crate) fn x(values: &[i8]) -> Tensor {
    Tensor::from_i8(vec![1, values.len()], values).unwrap()
}

#[test]
fn steps_run_in_order_any_number_of_times() {
    let mut session = Session::new(artifact(), &functions(), None).unwrap();
    for base in [0i8, 10] {
        let (outputs, report) = session.run(&[x(&[base, base, base])]).unwrap();
        assert_eq!(outputs[1], x(&[base + 1, base + 2, base + 3]));
        assert_eq!(outputs[0], x(&[2 * base + 2, 2 * base + 4, 2 * base + 6]));
        assert_eq!(report.steps.len(), 2);
        assert_eq!(report.cycles(), None);
        assert!(report.wall_s() > 0.0);
    }
}

/// The memories of the input, of the first sum, which is an output, and two that the others use in turn; the last value
/// is in one of these.
#[test]
fn values_take_the_memory_of_those_that_nobody_reads_any_more() {
    let mut session = Session::new(sums(5), &functions(), None).unwrap();
    assert!(session.values.memories() <= 4, "{}", session.values.memories());
    let mut seen = Vec::new();
    let mut watch = |id: ValueId, bytes: &[u8]| seen.push((id.0, bytes[0]));
    let (outputs, _) = session.run_watched(&[x(&[0, 1, 0])], &mut watch).unwrap();
    assert_eq!(outputs, [x(&[32, 96, 96]), x(&[1, 3, 3])]);
    assert_eq!(seen, [(0, 0), (2, 1), (3, 2), (4, 4), (5, 8), (6, 16), (7, 32)]);
}

#[test]
fn a_failing_step_is_named_and_the_session_lives_on() {
    let mut session = Session::new(artifact(), &functions(), None).unwrap();
    let error = session.run(&[x(&[-1, 0, 0])]).unwrap_err().to_string();
    assert_eq!(error, "step add2: add: the sum overflows");
    assert!(session.run(&[x(&[1, 1, 1])]).is_ok());
}

#[test]
fn a_session_runs_again_after_a_function_has_panicked() {
    let mut session = Session::new(artifact(), &panicking_at_13(), None).unwrap();
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| session.run(&[x(&[13, 0, 0])])));
    assert!(panics.is_err());
    let (outputs, _) = session.run(&[x(&[1, 1, 1])]).unwrap();
    assert_eq!(outputs[1], x(&[2, 3, 4]));
}

#[test]
fn wrong_inputs_are_named() {
    let mut session = Session::new(artifact(), &functions(), None).unwrap();
    let mut message = |inputs: &[Tensor]| session.run(inputs).unwrap_err().to_string();
    assert_eq!(message(&[]), "0 inputs given, but the model has 1: x");
    assert_eq!(message(&[x(&[1])]), "input x has shape 1x1, but the model expects 1x3");
    let floats = Tensor::from_f32(vec![1, 3], &[0.0; 3]).unwrap();
    assert_eq!(
        message(&[floats]),
        "input x is f32, but the model expects i8; convert its elements (in NumPy with astype)"
    );
}

#[test]
fn a_missing_function_is_named() {
    let error = Session::new(artifact(), &Registry::new(), None).err().unwrap().to_string();
    assert_eq!(
        error,
        "step add2 calls the function add, which is not registered; register it before the model is opened"
    );
}

#[test]
fn what_a_function_returns_is_checked() {
    let message = |result: Value| {
        let functions = Registry::new();
        functions.add(Function::new("add", move |_| Ok(result.clone())));
        let mut session = Session::new(artifact(), &functions, None).unwrap();
        session.run(&[x(&[1, 1, 1])]).map(|(outputs, _)| outputs).map_err(|error| error.to_string())
    };
    let ones = || Value::Tensor(x(&[1, 1, 1]));
    assert_eq!(message(ones()), Ok(vec![x(&[1, 1, 1]); 2]));
    assert_eq!(message(Value::List(vec![ones()])), Ok(vec![x(&[1, 1, 1]); 2]));
    let wrong = |text: &str| Err(format!("step add2: add returned {text}"));
    assert_eq!(message(Value::None), wrong("none for y, which is i8 1x3"));
    assert_eq!(message(Value::Tensor(x(&[1]))), wrong("i8 1x1 for y, which is i8 1x3"));
    assert_eq!(message(Value::List(vec![])), wrong("0 values, but the node has 1 outputs"));
}
