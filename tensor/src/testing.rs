//! Checks of scheduled expressions against the evaluator, for tests.

use tilewright_hw::device::Device;

use crate::mapping::Mapping;
use crate::te::{self, Array, DType, Scalar};
use crate::tir::{Function, evaluate, run};

/// Returns arrays with a repeating pattern for the inputs of a function.
pub fn inputs(f: &Function) -> Vec<Array> {
    let mut state = 1u32;
    f.inputs()
        .iter()
        .map(|b| {
            let mut a = Array::zeros(b.dtype, &b.shape);
            for i in 0..a.len() {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let v = match b.dtype {
                    DType::F32 => Scalar::F((state >> 8) as f32 / 1e7 - 0.8),
                    DType::I32 => Scalar::I((state >> 1) as i64),
                    _ => Scalar::I((state >> 24) as i8 as i64),
                };
                a.set(i, v);
            }
            a
        })
        .collect()
}

/// Inputs in the ranges of their roles: multipliers and shifts of a requantization, small biases.
pub fn data(program: &te::Program) -> Vec<Array> {
    let f = crate::tir::lower(program).unwrap();
    let single = program.to_string().contains("scale_single");
    let mut all = inputs(&f);
    for (a, b) in all.iter_mut().zip(f.inputs()) {
        let range = match b.name.as_str() {
            "multiplier" => (1 << 30, i64::from(i32::MAX)),
            "shift" if single => (34, 40),
            "shift" => (-9, -4),
            _ if b.dtype == DType::I32 => (-2000, 2000),
            _ => continue,
        };
        for i in 0..a.len() {
            let v = a.get(i).map_or(0, |v| v.int());
            a.set(i, Scalar::I(range.0 + v.rem_euclid(range.1 - range.0)));
        }
    }
    all
}

/// Runs a schedule on a device and compares the results with the evaluator's. Returns cycles and assembly.
///
/// # Panics
/// The schedule changes a result, cannot become instructions, or the device computes something else.
pub fn compare(device: &mut dyn Device, m: &Mapping, program: &te::Program, inputs: &[Array]) -> (u64, String) {
    let want = evaluate(program, inputs).unwrap();
    assert_eq!(run(&m.function(), inputs).unwrap(), want, "the schedule changed the result");
    let lowered = m.lower().unwrap_or_else(|e| panic!("{e}\n{}", m.function()));
    let text = lowered.program.disassemble(device.config()).unwrap();
    let (got, report) = lowered.run(device, inputs, &want).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(got, want, "{text}");
    (report.cycles.unwrap_or_default(), text)
}
