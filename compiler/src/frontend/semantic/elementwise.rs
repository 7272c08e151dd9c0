//! Functions of one element that the graph has no operator for.

use super::SemanticBuilder;
use crate::frontend::reason::Reason;
use crate::graph::ValueId;
use crate::graph::op::{BinaryKind, Select, UnaryKind};

/// The elements above `alpha`, else 0.
pub fn thresholded(n: &mut SemanticBuilder, suffix: &str, v: ValueId, alpha: f32) -> Result<ValueId, Reason> {
    let at = |part: &str| if suffix.is_empty() { part.to_owned() } else { format!("{suffix}/{part}") };
    let (alpha, zero) = (n.scalar(&at("alpha"), alpha), n.scalar(&at("zero"), 0.0));
    let above = n.binary(&at("above"), BinaryKind::Less, alpha, v)?;
    n.node(suffix, Select {}, &[above, v, zero])
}

/// A polynomial of `square`, with the coefficient of the highest power first, times `v`.
fn odd_polynomial(
    n: &mut SemanticBuilder,
    v: ValueId,
    square: ValueId,
    coefficients: &[f32],
) -> Result<ValueId, Reason> {
    let mut sum = None;
    for &coefficient in coefficients {
        let coefficient = n.scalar("coefficient", coefficient);
        sum = Some(match sum {
            None => coefficient,
            Some(sum) => {
                let term = n.binary("term", BinaryKind::Mul, sum, square)?;
                n.add("polynomial", term, coefficient)?
            }
        });
    }
    n.binary("polynomial/odd", BinaryKind::Mul, sum.unwrap_or(v), v)
}

/// `near` where the absolute value is below a limit, else `far`. Most functions below are differences of large numbers, or
/// logarithms of numbers near 1, which lose digits near 0; there a polynomial has them.
fn near_zero(n: &mut SemanticBuilder, v: ValueId, below: f32, near: ValueId, far: ValueId) -> Result<ValueId, Reason> {
    let (size, limit) = (n.unary("size", UnaryKind::Abs, v)?, n.scalar("limit", below));
    let is_near = n.binary("is_near", BinaryKind::Less, size, limit)?;
    n.node("", Select {}, &[is_near, near, far])
}

/// The tangent.
pub fn tan(n: &mut SemanticBuilder, v: ValueId) -> Result<ValueId, Reason> {
    let (sine, cosine) = (n.unary("sin", UnaryKind::Sin, v)?, n.unary("cos", UnaryKind::Cos, v)?);
    n.binary("", BinaryKind::Div, sine, cosine)
}

/// Half the sum of `exp(x)` and `exp(-x)`, or half the difference.
fn half_exponentials(n: &mut SemanticBuilder, v: ValueId, is_sum: bool) -> Result<ValueId, Reason> {
    let up = n.unary("exp", UnaryKind::Exp, v)?;
    let negative = n.unary("negative", UnaryKind::Neg, v)?;
    let down = n.unary("exp_negative", UnaryKind::Exp, negative)?;
    let both = if is_sum { n.add("sum", up, down)? } else { n.binary("difference", BinaryKind::Sub, up, down)? };
    let half = n.scalar("half", 0.5);
    n.binary("half_of", BinaryKind::Mul, both, half)
}

/// The hyperbolic cosine.
pub fn cosh(n: &mut SemanticBuilder, v: ValueId) -> Result<ValueId, Reason> {
    half_exponentials(n, v, true)
}

/// The hyperbolic sine.
pub fn sinh(n: &mut SemanticBuilder, v: ValueId) -> Result<ValueId, Reason> {
    let square = n.binary("square", BinaryKind::Mul, v, v)?;
    let near = odd_polynomial(n, v, square, &[1.0 / 5040.0, 1.0 / 120.0, 1.0 / 6.0, 1.0])?;
    let far = half_exponentials(n, v, false)?;
    near_zero(n, v, 0.5, near, far)
}

/// The arc tangent: numbers above `tan(3 pi / 8)` and `tan(pi / 8)` are brought below that first.
pub fn atan(n: &mut SemanticBuilder, v: ValueId) -> Result<ValueId, Reason> {
    // A minimax polynomial for numbers up to tan(pi / 8), good to the last bits of a float.
    const COEFFICIENTS: [f32; 5] = [0.080_537_45, -0.138_776_86, 0.199_777_1, -0.333_329_5, 1.0];
    let [one, low, high] = [1.0, 0.414_213_57, 2.414_213_7].map(|x| n.scalar("limit", x));
    let size = n.unary("size", UnaryKind::Abs, v)?;
    let (is_high, is_middle) =
        (n.binary("is_high", BinaryKind::Less, high, size)?, n.binary("is_middle", BinaryKind::Less, low, size)?);
    let inverse = n.unary("inverse", UnaryKind::Reciprocal, size)?;
    let inverse = n.unary("inverse/negative", UnaryKind::Neg, inverse)?;
    let (less, more) = (n.binary("less", BinaryKind::Sub, size, one)?, n.add("more", size, one)?);
    let ratio = n.binary("ratio", BinaryKind::Div, less, more)?;
    let middle = n.node("middle", Select {}, &[is_middle, ratio, size])?;
    let reduced = n.node("reduced", Select {}, &[is_high, inverse, middle])?;
    let square = n.binary("square", BinaryKind::Mul, reduced, reduced)?;
    let angle = odd_polynomial(n, reduced, square, &COEFFICIENTS)?;
    let [none, quarter, half] =
        [0.0, std::f32::consts::FRAC_PI_4, std::f32::consts::FRAC_PI_2].map(|x| n.scalar("turn", x));
    let turn = n.node("turn/middle", Select {}, &[is_middle, quarter, none])?;
    let turn = n.node("turn/high", Select {}, &[is_high, half, turn])?;
    let angle = n.add("angle", turn, angle)?;
    let sign = n.unary("sign", UnaryKind::Sign, v)?;
    n.binary("", BinaryKind::Mul, angle, sign)
}

/// `1 - x`, `1 + x`.
fn around_one(n: &mut SemanticBuilder, v: ValueId) -> Result<[ValueId; 2], Reason> {
    let one = n.scalar("one", 1.0);
    Ok([n.binary("below", BinaryKind::Sub, one, v)?, n.add("above", one, v)?])
}

/// The arc sine: the arc tangent of `x / sqrt((1 - x) * (1 + x))`.
pub fn asin(n: &mut SemanticBuilder, v: ValueId) -> Result<ValueId, Reason> {
    let [below, above] = around_one(n, v)?;
    let product = n.binary("product", BinaryKind::Mul, below, above)?;
    let root = n.unary("root", UnaryKind::Sqrt, product)?;
    let ratio = n.binary("tangent", BinaryKind::Div, v, root)?;
    atan(n, ratio)
}

/// The arc cosine: twice the arc tangent of `sqrt((1 - x) / (1 + x))`.
pub fn acos(n: &mut SemanticBuilder, v: ValueId) -> Result<ValueId, Reason> {
    let [below, above] = around_one(n, v)?;
    let ratio = n.binary("quotient", BinaryKind::Div, below, above)?;
    let root = n.unary("root", UnaryKind::Sqrt, ratio)?;
    let (angle, two) = (atan(n, root)?, n.scalar("two", 2.0));
    n.binary("", BinaryKind::Mul, angle, two)
}

/// The inverse hyperbolic tangent: half the logarithm of `(1 + x) / (1 - x)`.
pub fn atanh(n: &mut SemanticBuilder, v: ValueId) -> Result<ValueId, Reason> {
    let square = n.binary("square", BinaryKind::Mul, v, v)?;
    let near = odd_polynomial(n, v, square, &[1.0 / 9.0, 1.0 / 7.0, 0.2, 1.0 / 3.0, 1.0])?;
    let [below, above] = around_one(n, v)?;
    let ratio = n.binary("quotient", BinaryKind::Div, above, below)?;
    let logarithm = n.unary("log", UnaryKind::Log, ratio)?;
    let half = n.scalar("half", 0.5);
    let far = n.binary("half_of", BinaryKind::Mul, logarithm, half)?;
    near_zero(n, v, 0.2, near, far)
}

/// The inverse hyperbolic cosine: the logarithm of `x + sqrt((x - 1) * (x + 1))`.
pub fn acosh(n: &mut SemanticBuilder, v: ValueId) -> Result<ValueId, Reason> {
    let [below, above] = around_one(n, v)?;
    let below = n.unary("less", UnaryKind::Neg, below)?;
    let product = n.binary("product", BinaryKind::Mul, below, above)?;
    let root = n.unary("root", UnaryKind::Sqrt, product)?;
    let sum = n.add("sum", v, root)?;
    n.unary("", UnaryKind::Log, sum)
}

/// The inverse hyperbolic sine: the logarithm of `|x| + sqrt(x * x + 1)`, with the sign of x.
pub fn asinh(n: &mut SemanticBuilder, v: ValueId) -> Result<ValueId, Reason> {
    let square = n.binary("square", BinaryKind::Mul, v, v)?;
    let near = odd_polynomial(n, v, square, &[35.0 / 1152.0, -5.0 / 112.0, 3.0 / 40.0, -1.0 / 6.0, 1.0])?;
    let (size, one) = (n.unary("size", UnaryKind::Abs, v)?, n.scalar("one", 1.0));
    let more = n.add("more", square, one)?;
    let root = n.unary("root", UnaryKind::Sqrt, more)?;
    let sum = n.add("sum", size, root)?;
    let logarithm = n.unary("log", UnaryKind::Log, sum)?;
    let sign = n.unary("sign", UnaryKind::Sign, v)?;
    let far = n.binary("signed", BinaryKind::Mul, logarithm, sign)?;
    near_zero(n, v, 0.3, near, far)
}

/// The number without its fraction.
pub fn truncated(n: &mut SemanticBuilder, v: ValueId) -> Result<ValueId, Reason> {
    let (size, sign) = (n.unary("size", UnaryKind::Abs, v)?, n.unary("sign", UnaryKind::Sign, v)?);
    let whole = n.unary("floor", UnaryKind::Floor, size)?;
    n.binary("whole", BinaryKind::Mul, whole, sign)
}

/// The remainder with the sign of the dividend.
pub fn remainder(n: &mut SemanticBuilder, a: ValueId, b: ValueId) -> Result<ValueId, Reason> {
    let quotient = n.binary("quotient", BinaryKind::Div, a, b)?;
    // The quotient of integers is truncated already.
    let whole = if n.ty(quotient).dtype.is_float() { truncated(n, quotient)? } else { quotient };
    let product = n.binary("product", BinaryKind::Mul, whole, b)?;
    n.binary("", BinaryKind::Sub, a, product)
}

/// The elements moved towards 0 by `bias`, and 0 where they are within `limit` of it.
pub fn shrunk(n: &mut SemanticBuilder, v: ValueId, limit: f32, bias: f32) -> Result<ValueId, Reason> {
    let dtype = n.ty(v).dtype;
    let x = n.float("float", v)?;
    let [low, high, bias, zero] = [-limit, limit, bias, 0.0].map(|x| n.scalar("limit", x));
    let (is_low, is_high) =
        (n.binary("is_low", BinaryKind::Less, x, low)?, n.binary("is_high", BinaryKind::Less, high, x)?);
    let (up, down) = (n.add("up", x, bias)?, n.binary("down", BinaryKind::Sub, x, bias)?);
    let shrunk = n.node("high", Select {}, &[is_high, down, zero])?;
    let shrunk = n.node("low", Select {}, &[is_low, up, shrunk])?;
    n.cast("", shrunk, dtype)
}

/// The power of a value with a whole exponent above 0, by repeated squaring.
pub fn whole_power(n: &mut SemanticBuilder, mut square: ValueId, mut exponent: u32) -> Result<ValueId, Reason> {
    let mut all: Option<ValueId> = None;
    loop {
        if exponent % 2 == 1 {
            all = Some(match all {
                Some(all) => n.binary("pow", BinaryKind::Mul, all, square)?,
                None => square,
            });
        }
        exponent /= 2;
        match all {
            Some(all) if exponent == 0 => return Ok(all),
            _ => square = n.binary("square", BinaryKind::Mul, square, square)?,
        }
    }
}

/// `max(x, 0) + slope * min(x, 0)`; with known slopes above 0 and up to 1 `max(x, slope * x)`; with slopes that can be
/// infinite or NaN `x < 0 ? slope * x : x`, because slopes only apply below 0.
pub fn sloped(n: &mut SemanticBuilder, data: ValueId, slope: ValueId) -> Result<ValueId, Reason> {
    let known =
        |n: &SemanticBuilder, f: fn(f32) -> bool| n.known_floats(slope).is_some_and(|s| s.iter().all(|&s| f(s)));
    if known(n, |s| s > 0.0 && s <= 1.0) {
        let below = n.binary("below", BinaryKind::Mul, data, slope)?;
        return n.binary("", BinaryKind::Max, data, below);
    }
    let zero = n.scalar("zero", 0.0);
    let dtype = n.ty(data).dtype;
    let zero = n.cast("zero", zero, dtype)?;
    if n.ty(data).dtype.is_float() && !known(n, f32::is_finite) {
        let negative = n.binary("negative", BinaryKind::Less, data, zero)?;
        let below = n.binary("below", BinaryKind::Mul, data, slope)?;
        return n.node("", Select {}, &[negative, below, data]);
    }
    let below = n.binary("below", BinaryKind::Min, data, zero)?;
    let below = n.binary("slope", BinaryKind::Mul, below, slope)?;
    let above = n.binary("above", BinaryKind::Max, data, zero)?;
    n.add("", above, below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::room::Room;
    use crate::graph::{DType, Tensor, TensorType, eval};

    /// The greatest error of a function relative to the exact value, over numbers of a range, also close to 0.
    fn worst(
        function: impl Fn(&mut SemanticBuilder, ValueId) -> Result<ValueId, Reason>,
        exact: impl Fn(f64) -> f64,
        [low, high]: [f32; 2],
    ) -> f64 {
        let even = (0..=2000).map(|i| low + (high - low) * i as f32 / 2000.0);
        let small = (0..40).flat_map(|i| [0.7f32.powi(i), -(0.7f32.powi(i))]).filter(|x| (low..=high).contains(x));
        let x: Vec<f32> = even.chain(small).collect();
        let mut n = SemanticBuilder::new("test", Room::of(1 << 20, 1 << 20));
        n.begin("f", false);
        let v = n.graph.input("x", TensorType::new(DType::F32, &[x.len()]));
        let y = function(&mut n, v).map_err(|reason| reason.0).unwrap();
        n.graph.output("y", y);
        let graph = n.graph.finish().unwrap();
        let found = eval(&graph, &[Tensor::vector(x.clone())]).unwrap();
        let found = found[0].as_slice::<f32>().unwrap();
        let error = |(x, found): (&f32, &f32)| {
            let want = exact(f64::from(*x));
            if want == 0.0 { f64::from(found.abs()) } else { (f64::from(*found) / want - 1.0).abs() }
        };
        x.iter().zip(found).map(error).fold(0.0, f64::max)
    }

    #[test]
    fn functions_keep_their_digits_near_zero_and_far_from_it() {
        let inside = [-0.999, 0.999];
        assert!(worst(atan, f64::atan, [-50.0, 50.0]) < 5e-7);
        assert!(worst(asin, f64::asin, inside) < 2e-6);
        assert!(worst(acos, f64::acos, inside) < 2e-6);
        assert!(worst(sinh, f64::sinh, [-10.0, 10.0]) < 2e-6);
        assert!(worst(cosh, f64::cosh, [-10.0, 10.0]) < 2e-6);
        assert!(worst(asinh, f64::asinh, [-30.0, 30.0]) < 2e-6);
        assert!(worst(atanh, f64::atanh, inside) < 4e-6);
        assert!(worst(acosh, f64::acosh, [1.1, 40.0]) < 4e-6);
        assert!(worst(tan, f64::tan, [-1.5, 1.5]) < 2e-6);
    }
}
