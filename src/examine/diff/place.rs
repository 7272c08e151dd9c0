//! Finds where an element of a value was computed: the tile and instructions of an accelerator layer, or the CPU's
//! function.

use std::ops::Range;

use tilewright_driver::trace::{Maker, Stream, Trace};
use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::print_insn;
use tilewright_runtime::artifact::{AccelStep, Artifact, Image, Packing, Place, StepKind};

use crate::model::values::Visible;

/// Origin of an element.
#[derive(Debug, Clone, PartialEq)]
pub struct Spot {
    /// The step that wrote the value.
    pub step: String,
    /// Where the step runs.
    pub place: Place,
    /// How the element was computed.
    pub made: ComputedBy,
}

/// How an element was computed.
#[derive(Debug, Clone, PartialEq)]
pub enum ComputedBy {
    /// By a function of the artifact's object code, or a packed function.
    Function(String),
    /// By an instruction stream.
    Stream(Box<Written>),
    /// By a stream in which the element cannot be traced; the text says why.
    Unknown(String),
}

/// The instructions that wrote an element.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// Ranges of images, channels, rows and columns that the store covers; none for a value in dense layout.
    pub tile: Option<[Range<usize>; 4]>,
    /// Number of the store among those of its value, from 1, and their total.
    pub number: [usize; 2],
    /// Index and text of the store.
    pub store: (usize, String),
    /// Source of the store: name of the scratchpad, entry, and byte in the entry.
    pub from: (&'static str, u32, u32),
    /// Index and text of the instruction that wrote this entry, then of those that computed its operand.
    pub makers: Vec<(usize, String)>,
    /// Number of products that were accumulated.
    pub summed: usize,
}

/// Finds where an element of a value was computed. `flat` is its row-major index in the plain layout.
pub fn spot(artifact: &Artifact, config: &HwConfig, value: &Visible, flat: usize) -> Option<Spot> {
    let manifest = &artifact.manifest;
    let step = &manifest.steps[value.step?];
    let (place, made) = match &step.kind {
        StepKind::Cpu { function, .. } | StepKind::Packed { function, .. } => {
            (Place::Cpu, ComputedBy::Function(function.clone()))
        }
        StepKind::If { .. } | StepKind::Loop { .. } => {
            (Place::Cpu, ComputedBy::Unknown("its regions compute it".to_string()))
        }
        StepKind::Cuda { entry, .. } => (Place::Cuda, ComputedBy::Function(entry.clone())),
        StepKind::Accel(accel) => {
            let at = step.outputs.iter().position(|id| *id == value.id)?;
            let made = match written(artifact, config, accel, at, value.packing(manifest), flat) {
                Ok(written) => ComputedBy::Stream(Box::new(written)),
                Err(why) => ComputedBy::Unknown(why),
            };
            (Place::Accel, made)
        }
    };
    Some(Spot { step: step.name.clone(), place, made })
}

fn written(
    artifact: &Artifact,
    config: &HwConfig,
    accel: &AccelStep,
    output: usize,
    packing: Packing,
    flat: usize,
) -> Result<Written, String> {
    let mut program = accel.program.clone();
    program.stream = artifact.blob(accel.stream).to_vec();
    program.constants = artifact.blob(accel.constants).to_vec();
    let stream = Stream::new(&program, config).map_err(|(at, e)| format!("instruction {at} does not decode: {e}"))?;
    let binding = program.outputs.get(output).ok_or("its program has no such output")?;
    let range = binding.offset..binding.offset + binding.bytes;
    let at = binding.offset + device_byte(packing, flat) as u64;
    let trace =
        stream.trace(binding.region.0, at, range.clone()).ok_or("no store of its program writes the element")?;
    let number = trace.stores.iter().position(|index| *index == trace.index).unwrap_or(0) + 1;
    let text = |maker: &Maker| (maker.index, maker.text());
    Ok(Written {
        tile: tile(packing, &trace, &range),
        number: [number, trace.stores.len()],
        store: (trace.index, print_insn(&stream.insns()[trace.index])),
        from: (trace.mem.name(), trace.entry, trace.byte),
        makers: trace.makers.iter().map(text).collect(),
        summed: trace.makers.iter().map(|maker| maker.summed).max().unwrap_or(1),
    })
}

/// Offset of an element in the device's layout; `flat` is its index in the plain layout.
fn device_byte(packing: Packing, flat: usize) -> usize {
    let (i, [n, c, y, x]) = match packing {
        Packing::Dense => return flat,
        Packing::Nhwc(i) => (i, {
            let pixel = flat / i.c;
            [pixel / (i.h * i.w), flat % i.c, pixel / i.w % i.h, pixel % i.w]
        }),
        Packing::Nchw(i) => (i, {
            let plane = flat / (i.h * i.w);
            [plane / i.c, plane % i.c, flat / i.w % i.h, flat % i.w]
        }),
    };
    i.layout().offset(n, c, y, x + i.pads[0])
}

/// Images, channels, rows and columns that a store covers of the tensor at `range`.
fn tile(packing: Packing, trace: &Trace, range: &Range<u64>) -> Option<[Range<usize>; 4]> {
    let (Packing::Nhwc(image) | Packing::Nchw(image)) = packing else { return None };
    let x = &trace.store;
    let mut tile: Option<[Range<usize>; 4]> = None;
    for plane in 0..u64::from(x.planes) {
        for row in 0..u64::from(x.rows) {
            let start = x.offset + row * x.row_stride + plane * x.plane_stride;
            let end = start + u64::from(x.row_bytes);
            for byte in start.max(range.start)..end.min(range.end) {
                let place = coordinates(image, (byte - range.start) as usize);
                let inside = image.pads[0]..image.pads[0] + image.w;
                if place[1] >= image.c || !inside.contains(&place[3]) {
                    continue;
                }
                let place = [place[0], place[1], place[2], place[3] - image.pads[0]];
                let tile = tile.get_or_insert_with(|| place.map(|at| at..at + 1));
                for (range, at) in tile.iter_mut().zip(place) {
                    *range = range.start.min(at)..range.end.max(at + 1);
                }
            }
        }
    }
    tile
}

/// Image, channel, row and column of a byte in the blocked layout.
fn coordinates(image: Image, byte: usize) -> [usize; 4] {
    let layout = image.layout();
    let (n, rest) = (byte / layout.image_stride(), byte % layout.image_stride());
    let (block, rest) = (rest / layout.block_stride(), rest % layout.block_stride());
    let (y, rest) = (rest / layout.row_stride(), rest % layout.row_stride());
    [n, block * image.block + rest % image.block, y, rest / image.block]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_coordinates_are_each_others_opposite() {
        let image = Image { n: 2, c: 5, h: 3, w: 4, block: 4, fill: 0, pads: [0; 2] };
        for flat in 0..2 * 5 * 3 * 4 {
            let byte = device_byte(Packing::Nchw(image), flat);
            let [n, c, y, x] = coordinates(image, byte);
            assert_eq!(((n * 5 + c) * 3 + y) * 4 + x, flat);
            let byte = device_byte(Packing::Nhwc(image), flat);
            let [n, c, y, x] = coordinates(image, byte);
            assert_eq!(((n * 3 + y) * 4 + x) * 5 + c, flat);
        }
        assert_eq!(device_byte(Packing::Dense, 7), 7);
    }
}
