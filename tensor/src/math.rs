//! Float arithmetic that has the same bits everywhere: `exp`, `tanh`, `erf`, and sums over rows.
//!
//! The functions are written once, over the operations of [`Floats`]. Evaluators compute them on single floats
//! ([`Single`]), generated code on vectors. Every operation is rounded on its own, so all of them give the same bits on
//! every processor. Results are at most two units in the last place from the exact value; the tests measure it.

use std::convert::Infallible;

/// Partial results of a sum over a long row: one for each lane of a vector.
pub const LANES: usize = 16;

/// True if a sum over a row of `n` neighboring elements has partial results.
pub fn in_lanes(n: usize) -> bool {
    n >= 2 * LANES
}

/// The sum of a row of `n` neighboring elements, in the order of generated code: lane l adds the elements l, l +
/// LANES, l + 2 LANES and so on; then the lanes are added up, then the elements that fill no whole vector, then both.
pub fn row_sum(n: usize, at: impl Fn(usize) -> f32) -> f32 {
    if !in_lanes(n) {
        return (0..n).fold(0.0, |sum, k| sum + at(k));
    }
    let whole = n / LANES * LANES;
    let lane = |l: usize| (l..whole).step_by(LANES).fold(0.0, |sum, k| sum + at(k));
    let lanes = (0..LANES).fold(0.0, |sum, l| sum + lane(l));
    if whole == n { lanes } else { lanes + (whole..n).fold(0.0, |sum, k| sum + at(k)) }
}

/// Operations on floats, or on vectors of floats lane by lane. Each rounds its result to the nearest float.
pub trait Floats {
    /// A float, or a vector of floats.
    type Value: Copy;
    /// Why an operation failed.
    type Error;

    /// A constant, in every lane.
    fn constant(&self, x: f32) -> Self::Value;
    /// `a + b`.
    fn add(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a - b`.
    fn sub(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a * b`.
    fn mul(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a / b`.
    fn div(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `yes` where `a < b`; `no` elsewhere, also where one of them is NaN.
    fn if_less(
        &self,
        a_b: (Self::Value, Self::Value),
        yes: Self::Value,
        no: Self::Value,
    ) -> Result<Self::Value, Self::Error>;
    /// The absolute value.
    fn abs(&self, a: Self::Value) -> Result<Self::Value, Self::Error>;
    /// The first operand with the sign of the second.
    fn with_sign(&self, a: Self::Value, sign: Self::Value) -> Result<Self::Value, Self::Error>;
    /// 2 to the power of n for `a = ROUNDER + n` and an integer n from -126 to 127: the low bits of `a`, plus the
    /// exponent's offset, moved to the exponent.
    fn power_of_two(&self, a: Self::Value) -> Result<Self::Value, Self::Error>;
}

/// Adding it rounds a small float to an integer, which is then in the low bits of the sum.
pub const ROUNDER: f32 = 12_582_912.0;
/// Bits of a float's fraction.
pub const FRACTION_BITS: u32 = 23;
/// The exponent field of 1.0.
pub const ONE_BITS: u32 = 127 << FRACTION_BITS;

/// Below, `exp` is 0; above, infinite.
const EXP_RANGE: [f32; 2] = [-105.0, 89.0];
/// ln 2 in two parts. The first has few bits, so its products with small integers are exact.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
/// `(exp(r) - 1 - r) / r^2` from the highest power on, for `|r| <= ln(2) / 2` (Cephes, `expf`).
const EXP: [f32; 6] = [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];
/// `(tanh(x) / x - 1) / x^2` as a polynomial of `x^2`, for `|x| < TANH_SMALL` (Cephes, `tanhf`).
const TANH: [f32; 5] = [-5.704_988_7e-3, 2.063_908_8e-2, -5.373_971_5e-2, 1.333_144_2e-1, -3.333_328e-1];
const TANH_SMALL: f32 = 0.625;
/// `erf(x) / x - 1` as a polynomial of `x^2`, for `|x| <= ERF_SMALL` (N. Juffa).
const ERF: [f32; 6] =
    [-5.967_617e-4, 4.991_194_2e-3, -2.676_813_5e-2, 1.128_199_25e-1, -3.761_253_4e-1, 1.283_791_7e-1];
/// `ln(1 - erf(x)) / x + 1` as a polynomial, for greater `x` (N. Juffa).
const ERF_TAIL: [f32; 7] = [
    -1.728_534_7e-5,
    3.831_971_3e-4,
    -3.883_964_4e-3,
    2.425_462_2e-2,
    -1.067_778_8e-1,
    -6.348_468_7e-1,
    -1.287_175_1e-1,
];
const ERF_SMALL: f32 = 475.0 / 512.0;

/// A polynomial of `x`, from the coefficient of its highest power on.
fn polynomial<F: Floats>(f: &F, x: F::Value, coefficients: &[f32]) -> Result<F::Value, F::Error> {
    let mut sum = f.constant(coefficients[0]);
    for c in &coefficients[1..] {
        sum = f.add(f.mul(sum, x)?, f.constant(*c))?;
    }
    Ok(sum)
}

/// e to the power of `x`.
///
/// # Errors
/// Those of `f`.
pub fn exp<F: Floats>(f: &F, x: F::Value) -> Result<F::Value, F::Error> {
    let [least, greatest] = EXP_RANGE.map(|bound| f.constant(bound));
    let x = f.if_less((x, least), least, x)?;
    let x = f.if_less((greatest, x), greatest, x)?;
    let rounder = f.constant(ROUNDER);
    // x = n ln 2 + r
    let n = f.sub(f.add(f.mul(x, f.constant(std::f32::consts::LOG2_E))?, rounder)?, rounder)?;
    let [high, low] = LN_2.map(|part| f.constant(part));
    let r = f.sub(f.sub(x, f.mul(n, high)?)?, f.mul(n, low)?)?;
    let tail = f.mul(polynomial(f, r, &EXP)?, f.mul(r, r)?)?;
    let y = f.add(f.add(tail, r)?, f.constant(1.0))?;
    // Two factors, so that neither is out of range where the result is very small or infinite.
    let half = f.add(f.mul(n, f.constant(0.5))?, rounder)?;
    let rest = f.add(f.sub(n, f.sub(half, rounder)?)?, rounder)?;
    f.mul(f.mul(y, f.power_of_two(half)?)?, f.power_of_two(rest)?)
}

/// The hyperbolic tangent.
///
/// # Errors
/// Those of `f`.
pub fn tanh<F: Floats>(f: &F, x: F::Value) -> Result<F::Value, F::Error> {
    let a = f.abs(x)?;
    let square = f.mul(a, a)?;
    let small = f.add(f.mul(f.mul(polynomial(f, square, &TANH)?, square)?, a)?, a)?;
    let one = f.constant(1.0);
    let power = exp(f, f.add(a, a)?)?;
    let large = f.sub(one, f.div(f.constant(2.0), f.add(power, one)?)?)?;
    f.with_sign(f.if_less((a, f.constant(TANH_SMALL)), small, large)?, x)
}

/// The Gauss error function.
///
/// # Errors
/// Those of `f`.
pub fn erf<F: Floats>(f: &F, x: F::Value) -> Result<F::Value, F::Error> {
    let a = f.abs(x)?;
    let small = f.add(f.mul(polynomial(f, f.mul(a, a)?, &ERF)?, a)?, a)?;
    let exponent = f.sub(f.mul(polynomial(f, a, &ERF_TAIL)?, a)?, a)?;
    let large = f.sub(f.constant(1.0), exp(f, exponent)?)?;
    f.with_sign(f.if_less((f.constant(ERF_SMALL), a), large, small)?, x)
}

/// Single floats.
#[derive(Debug, Clone, Copy)]
pub struct Single;

impl Floats for Single {
    type Value = f32;
    type Error = Infallible;

    fn constant(&self, x: f32) -> f32 {
        x
    }

    fn add(&self, a: f32, b: f32) -> Result<f32, Infallible> {
        Ok(a + b)
    }

    fn sub(&self, a: f32, b: f32) -> Result<f32, Infallible> {
        Ok(a - b)
    }

    fn mul(&self, a: f32, b: f32) -> Result<f32, Infallible> {
        Ok(a * b)
    }

    fn div(&self, a: f32, b: f32) -> Result<f32, Infallible> {
        Ok(a / b)
    }

    fn if_less(&self, (a, b): (f32, f32), yes: f32, no: f32) -> Result<f32, Infallible> {
        Ok(if a < b { yes } else { no })
    }

    fn abs(&self, a: f32) -> Result<f32, Infallible> {
        Ok(a.abs())
    }

    fn with_sign(&self, a: f32, sign: f32) -> Result<f32, Infallible> {
        Ok(a.copysign(sign))
    }

    fn power_of_two(&self, a: f32) -> Result<f32, Infallible> {
        Ok(f32::from_bits((a.to_bits() << FRACTION_BITS).wrapping_add(ONE_BITS)))
    }
}

impl Single {
    /// [`exp`] of a float.
    pub fn exp(x: f32) -> f32 {
        let Ok(y) = exp(&Single, x);
        y
    }

    /// [`tanh`] of a float.
    pub fn tanh(x: f32) -> f32 {
        let Ok(y) = tanh(&Single, x);
        y
    }

    /// [`erf`] of a float.
    pub fn erf(x: f32) -> f32 {
        let Ok(y) = erf(&Single, x);
        y
    }
}

#[cfg(test)]
mod tests;
