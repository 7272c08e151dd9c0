//! DFT, STFT, and the windows and weights of spectra.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::spectral::{self, Fourier};
use crate::graph::op::{Cast, Op};
use crate::graph::{DType, Tensor};

pub(super) fn dft(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let rank = n.ty(data).rank();
    let axis = match n.opset() {
        ..20 => n.int("axis").unwrap_or(1),
        _ if n.has_input(2) => n.whole(2)?,
        _ => -2,
    };
    let axis = n.axis(axis, rank)?;
    let (inverse, half) = (n.int("inverse").unwrap_or(0) != 0, n.int("onesided").unwrap_or(0) != 0);
    let size = n.shape(data)?[axis];
    let length = match n.has_input(1) {
        true => n.whole(1)?,
        // The half of a spectrum is that of an even number of places.
        false if inverse && half => 2 * (size as i64 - 1),
        false => size as i64,
    };
    let length = usize::try_from(length).map_err(|_| "its length must be above 0")?;
    let v = spectral::fourier(n, data, axis, Fourier { length, inverse, half })?;
    n.output(v)
}

pub(super) fn stft(n: &mut NodeContext) -> Result<(), Reason> {
    let signal = n.plain(0)?;
    let size = |value: i64| usize::try_from(value).map_err(|_| Reason("its sizes must be above 0".into()));
    let step = size(n.whole(1)?)?;
    let window = n.optional(2)?;
    let length = match window {
        _ if n.has_input(3) => size(n.whole(3)?)?,
        Some(window) => n.shape(window)?.first().copied().unwrap_or(0),
        None => return Err("it has neither a window nor a length of frames".into()),
    };
    let half = n.int("onesided").unwrap_or(1) != 0;
    let v = spectral::frames(n, signal, step, length, window, half)?;
    n.output(v)
}

/// Makes floats the node's output, in the element type that it asks for.
fn output_as(n: &mut NodeContext, t: Tensor) -> Result<(), Reason> {
    let dtype = n.element_attribute("output_datatype")?.map_or(DType::F32, |element| element.dtype);
    n.reserve(&t.ty())?;
    let t = if dtype == DType::F32 { t } else { Op::from(Cast { dtype }).eval(&[&t])?.remove(0) };
    n.output_known(t)
}

fn window(n: &mut NodeContext, cosines: [f64; 3]) -> Result<(), Reason> {
    let size = usize::try_from(n.whole(0)?).ok().filter(|size| *size < 1 << 24);
    let size = size.ok_or("its size must be 0 or more, and below 2^24")?;
    let periodic = n.int("periodic").unwrap_or(1) != 0;
    output_as(n, Tensor::vector(spectral::window(size, periodic, cosines)))
}

pub(super) fn hann(n: &mut NodeContext) -> Result<(), Reason> {
    window(n, [0.5, 0.5, 0.0])
}

pub(super) fn hamming(n: &mut NodeContext) -> Result<(), Reason> {
    window(n, [25.0 / 46.0, 21.0 / 46.0, 0.0])
}

pub(super) fn blackman(n: &mut NodeContext) -> Result<(), Reason> {
    window(n, [0.42, 0.5, 0.08])
}

pub(super) fn mel_weights(n: &mut NodeContext) -> Result<(), Reason> {
    let sizes = [n.whole(0)?, n.whole(1)?].map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    let [rate, low, high] = [n.number(2)?, n.number(3)?, n.number(4)?];
    let weights = spectral::mel_weights(sizes[0], sizes[1], rate, [low, high])?;
    output_as(n, weights)
}
