//! Vector operations on as many elements at once as the machine's registers hold. The arithmetic is that of
//! `tilewright_hw::num`; the tests compare the two.

mod avx2;
mod avx512;

use super::super::state::State;
use super::Constants;
use super::plan::Plan;
use tilewright_hw::isa::{PARAM_ROWS, VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::num::Rounding;

/// A register of 32-bit elements and its element-wise operations.
///
/// # Safety
/// Each function needs the implementor's instructions. Functions that take a pointer read or write `N` elements there.
/// They are inlined into functions that enable the instructions.
trait Lanes: Copy {
    type V: Copy;
    /// Number of elements.
    const N: usize;

    unsafe fn splat(x: i32) -> Self::V;
    unsafe fn words(at: *const i32) -> Self::V;
    /// Loads bytes, sign-extended.
    unsafe fn bytes(at: *const u8) -> Self::V;
    unsafe fn put_words(at: *mut i32, x: Self::V);
    /// Stores bytes, saturated.
    unsafe fn put_bytes(at: *mut u8, x: Self::V);
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    /// The low 32 bits of the product.
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn and(a: Self::V, b: Self::V) -> Self::V;
    /// Shifts by 0 to 31.
    unsafe fn shl(x: Self::V, by: Self::V) -> Self::V;
    unsafe fn sar(x: Self::V, by: Self::V) -> Self::V;
    /// Selects `yes` where `a` is greater than `b`, else `no`.
    unsafe fn if_greater(a: Self::V, b: Self::V, yes: Self::V, no: Self::V) -> Self::V;
    /// Selects `yes` where both are `i32::MIN`, else `no`.
    unsafe fn if_least(a: Self::V, b: Self::V, yes: Self::V, no: Self::V) -> Self::V;
    /// The low 32 bits of `(x * m + 2^30) >> 31`.
    unsafe fn product_high(x: Self::V, m: Self::V) -> Self::V;
    /// The low 32 bits of `(x * m + 2^(30 + right)) >> (31 + right)`; `right` is 0 to 31.
    unsafe fn product_shifted(x: Self::V, m: Self::V, right: Self::V) -> Self::V;
    /// Looks up the low eight bits of each element in the table.
    unsafe fn lookup(table: &[i8; 256], x: Self::V) -> Self::V;
}

/// Pointers to the memories of the operands.
#[derive(Clone, Copy)]
struct Memories {
    acc: *mut i32,
    out: *mut u8,
    inp: *mut u8,
    param: *const u8,
    words: *const i32,
}

/// Bounds to apply before the zero point is added.
struct Bounds<L: Lanes> {
    lo: L::V,
    hi: L::V,
    zero_point: L::V,
}

/// A scale in *double* mode: a left shift in front of the product, or a right shift after it.
struct Double<L: Lanes> {
    left: L::V,
    multiplier: L::V,
    right: L::V,
}

/// Runs an instruction on sixteen elements at once. Returns `false`, and does nothing, if its constants need the scalar
/// path.
///
/// # Safety
/// The machine must have the instructions. `sizes` must be the elements of a row and block_out, the latter a multiple
/// of 16. The plan's indices must be in bounds, and the words of the param entries that it reads up to date.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) unsafe fn run_avx512(
    x: &Vector,
    plan: &Plan,
    constants: &Constants,
    state: &mut State,
    sizes: [u32; 2],
) -> bool {
    // SAFETY: the caller guarantees the conditions above.
    unsafe { run::<avx512::Avx512>(x, plan, constants, state, sizes) }
}

/// Does the same on eight elements.
///
/// # Safety
/// The same as [`run_avx512`], with multiples of 8.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn run_avx2(
    x: &Vector,
    plan: &Plan,
    constants: &Constants,
    state: &mut State,
    sizes: [u32; 2],
) -> bool {
    // SAFETY: the caller guarantees the conditions above.
    unsafe { run::<avx2::Avx2>(x, plan, constants, state, sizes) }
}

#[inline(always)]
unsafe fn run<L: Lanes>(
    x: &Vector,
    plan: &Plan,
    Constants { descriptor: d, table }: &Constants,
    state: &mut State,
    sizes: [u32; 2],
) -> bool {
    let memories = Memories {
        acc: state.acc.as_mut_ptr(),
        out: state.out.as_mut_ptr(),
        inp: state.inp.as_mut_ptr(),
        param: state.param.as_ptr(),
        words: state.words().as_ptr(),
    };
    let [n, outputs] = sizes.map(|s| s as usize);
    let deep = matches!(x.op, VecOp::Requant | VecOp::Mul | VecOp::Qadd);
    // SAFETY: the caller has the instructions and checked the indices, and offsets stay inside a row.
    unsafe {
        let bounds = match Bounds::<L>::new(d.zero_point, d.lo, d.hi) {
            Some(bounds) => bounds,
            None if deep => return false,
            // Other operations do not use the bounds.
            None => Bounds { lo: L::splat(0), hi: L::splat(0), zero_point: L::splat(0) },
        };
        let scalar = L::splat(d.scalar);
        let (zero_a, zero_b) = (L::splat(d.zero_a.into()), L::splat(d.zero_b.into()));
        let m = memories;
        macro_rules! a {
            ($i:expr, $e:expr) => {
                load::<L>(m, x.a, $i[1], $e, [n, outputs], scalar)
            };
        }
        macro_rules! b {
            ($i:expr, $e:expr) => {
                load::<L>(m, x.b, $i[2], $e, [n, outputs], scalar)
            };
        }
        macro_rules! rows {
            (|$index:ident, $e:ident| $y:expr) => {
                plan.loops.for_each(|$index| {
                    for $e in (0..n).step_by(L::N) {
                        store::<L>(m, x.dst, $index[0] * n + $e, $y);
                    }
                })
            };
        }
        // A word of a requantization's param entry: bias, multiplier or shift.
        macro_rules! word {
            ($i:expr, $k:expr, $e:expr) => {
                L::words(m.words.add(($i[2] * 3 + $k) * outputs + $e % outputs))
            };
        }
        macro_rules! product {
            ($i:expr, $e:expr) => {
                L::mul(L::sub(a!($i, $e), zero_a), L::sub(b!($i, $e), zero_b))
            };
        }
        match x.op {
            VecOp::Move => rows!(|i, e| a!(i, e)),
            VecOp::Min => rows!(|i, e| L::min(a!(i, e), b!(i, e))),
            VecOp::Max => rows!(|i, e| L::max(a!(i, e), b!(i, e))),
            VecOp::Add => rows!(|i, e| L::add(a!(i, e), b!(i, e))),
            VecOp::Sub => rows!(|i, e| L::sub(a!(i, e), b!(i, e))),
            VecOp::Shr => {
                let low = L::splat(31);
                rows!(|i, e| L::sar(a!(i, e), L::and(b!(i, e), low)));
            }
            VecOp::Clip => {
                let (lo, hi) = (L::splat(d.lo), L::splat(d.hi));
                rows!(|i, e| L::max(lo, L::min(hi, a!(i, e))));
            }
            VecOp::Requant => match x.mode {
                Rounding::Double => rows!(|i, e| {
                    let biased = L::add(a!(i, e), word!(i, 0, e));
                    let scale = Double::<L>::new(word!(i, 1, e), word!(i, 2, e));
                    bounds.apply(scale.apply(biased))
                }),
                Rounding::Single => rows!(|i, e| {
                    let biased = L::add(a!(i, e), word!(i, 0, e));
                    bounds.apply(single::<L>(biased, word!(i, 1, e), word!(i, 2, e)))
                }),
            },
            VecOp::Mul => {
                let (multiplier, shift) = (L::splat(d.multiplier), L::splat(d.shift.into()));
                match x.mode {
                    Rounding::Double => {
                        let scale = Double::<L>::new(multiplier, shift);
                        rows!(|i, e| bounds.apply(scale.apply(product!(i, e))));
                    }
                    Rounding::Single => rows!(|i, e| bounds.apply(single::<L>(product!(i, e), multiplier, shift))),
                }
            }
            VecOp::Qadd => {
                let left = L::splat((d.left_shift & 31).into());
                let scale_a = Double::<L>::new(L::splat(d.multiplier_a), L::splat(d.shift_a.into()));
                let scale_b = Double::<L>::new(L::splat(d.multiplier_b), L::splat(d.shift_b.into()));
                let scale_sum = Double::<L>::new(L::splat(d.multiplier), L::splat(d.shift.into()));
                rows!(|i, e| {
                    let a = scale_a.apply(L::shl(L::sub(a!(i, e), zero_a), left));
                    let b = scale_b.apply(L::shl(L::sub(b!(i, e), zero_b), left));
                    bounds.apply(scale_sum.apply(L::add(a, b)))
                });
            }
            VecOp::Mac => rows!(|i, e| {
                let (entry, tap) = VecOp::Mac.param_entry(i[2] as u32);
                let taps = L::bytes(m.param.add((entry * PARAM_ROWS + tap) as usize * outputs + e % outputs));
                let product = L::mul(L::sub(a!(i, e), zero_a), L::sub(taps, zero_b));
                L::add(L::words(m.acc.add(i[0] * n + e)), product)
            }),
            VecOp::Lut => rows!(|i, e| L::lookup(table, a!(i, e))),
            // Simple operations without a vector instruction.
            op => {
                if let Some(simple) = op.simple() {
                    let lanes = |v| {
                        let mut words = [0; 16];
                        L::put_words(words.as_mut_ptr(), v);
                        words
                    };
                    rows!(|i, e| {
                        let (p, q) = (lanes(a!(i, e)), lanes(b!(i, e)));
                        let y: [i32; 16] = std::array::from_fn(|k| simple(p[k], q[k]));
                        L::words(y.as_ptr())
                    });
                }
            }
        }
    }
    true
}

/// Loads the elements of a row from element `e` on.
#[inline(always)]
unsafe fn load<L: Lanes>(
    m: Memories,
    from: VecSrc,
    at: usize,
    e: usize,
    [n, outputs]: [usize; 2],
    scalar: L::V,
) -> L::V {
    // SAFETY: the caller names elements inside the memory.
    unsafe {
        match from {
            VecSrc::Acc => L::words(m.acc.add(at * n + e)),
            VecSrc::Out => L::bytes(m.out.add(at * n + e)),
            VecSrc::Inp => L::bytes(m.inp.add(at * n + e)),
            VecSrc::Param => L::words(m.words.add(at * 3 * outputs + e % outputs)),
            VecSrc::Scalar => scalar,
            VecSrc::None => L::splat(0),
        }
    }
}

/// Stores results from element `at` of a memory on, saturated if it holds bytes.
#[inline(always)]
unsafe fn store<L: Lanes>(m: Memories, to: VecDst, at: usize, y: L::V) {
    // SAFETY: the caller names elements inside the memory.
    unsafe {
        match to {
            VecDst::Acc => L::put_words(m.acc.add(at), y),
            VecDst::Out => L::put_bytes(m.out.add(at), y),
            VecDst::Inp => L::put_bytes(m.inp.add(at), y),
        }
    }
}

impl<L: Lanes> Bounds<L> {
    /// Returns `None` if a bound minus the zero point exceeds 32 bits on the side where it would clip every value.
    #[inline(always)]
    unsafe fn new(zero_point: i32, lo: i32, hi: i32) -> Option<Bounds<L>> {
        let [least, most] = [lo, hi].map(|bound| i64::from(bound) - i64::from(zero_point));
        // A bound that no value reaches can be clamped to 32 bits.
        let fits = least <= i64::from(i32::MAX) && most >= i64::from(i32::MIN);
        // SAFETY: the caller has the instructions.
        fits.then(|| unsafe {
            Bounds {
                lo: L::splat(least.max(i32::MIN.into()) as i32),
                hi: L::splat(most.min(i32::MAX.into()) as i32),
                zero_point: L::splat(zero_point),
            }
        })
    }

    /// Computes `num::offset_clamp`.
    #[inline(always)]
    unsafe fn apply(&self, y: L::V) -> L::V {
        // SAFETY: the caller has the instructions.
        unsafe { L::add(L::max(L::min(y, self.hi), self.lo), self.zero_point) }
    }
}

impl<L: Lanes> Double<L> {
    #[inline(always)]
    unsafe fn new(multiplier: L::V, shift: L::V) -> Double<L> {
        // SAFETY: the caller has the instructions.
        unsafe {
            let (zero, most) = (L::splat(0), L::splat(31));
            let left = L::min(L::max(shift, zero), most);
            let right = L::min(L::max(L::sub(zero, shift), zero), most);
            Double { left, multiplier, right }
        }
    }

    /// Computes `num::scale_double`.
    #[inline(always)]
    unsafe fn apply(&self, x: L::V) -> L::V {
        // SAFETY: the caller has the instructions.
        unsafe {
            let x = L::shl(x, self.left);
            let high = L::if_least(x, self.multiplier, L::splat(i32::MAX), L::product_high(x, self.multiplier));
            // Ties go away from zero: round up if the rest is at least half the divisor, or more than half for negative
            // numbers.
            let one = L::splat(1);
            let mask = L::sub(L::shl(one, self.right), one);
            let rest = L::and(high, mask);
            // Half of a mask of at most 31 bits, plus 1 for a negative number.
            let threshold = L::sub(L::sar(mask, one), L::sar(high, L::splat(31)));
            let divided = L::sar(high, self.right);
            L::if_greater(rest, threshold, L::add(divided, one), divided)
        }
    }
}

/// Computes `num::scale_single`.
#[inline(always)]
unsafe fn single<L: Lanes>(x: L::V, multiplier: L::V, shift: L::V) -> L::V {
    // SAFETY: the caller has the instructions.
    unsafe {
        let zero = L::splat(0);
        let right = L::min(L::max(shift, zero), L::splat(31));
        let scaled = L::product_shifted(x, multiplier, right);
        // Only the square of `i32::MIN` exceeds 32 bits, and only without a shift.
        let saturated = L::if_least(x, multiplier, L::splat(i32::MAX), scaled);
        L::if_greater(right, zero, scaled, saturated)
    }
}

#[cfg(test)]
mod tests;
