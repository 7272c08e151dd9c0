//! Measures how long a `.te` file takes to become a program for a size that is new, and for one that was asked for before.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tilewright_hw::HwConfig;
use tilewright_tensor::mapping::SizedMapping;
use tilewright_tensor::te::Name;

const CONV: &str = include_str!("../../examples/schedules/conv_any_size.te");

/// Heights, widths and blocks of channels of images, and rows of a tile.
const IMAGES: [[i64; 4]; 3] = [[56, 56, 4, 2], [28, 28, 8, 2], [14, 14, 4, 7]];

fn sized(criterion: &mut Criterion) {
    let config = HwConfig::load("1x16x16").expect("a preset");
    let mut group = criterion.benchmark_group("a 3x3 convolution");
    for [height, width, blocks, rows] in IMAGES {
        let names = ["height", "width", "blocks", "rows"];
        let sizes: Vec<(Name, i64)> = names.into_iter().map(Name::from).zip([height, width, blocks, rows]).collect();
        let image = format!("{height}x{width}x{}", 16 * blocks);
        group.bench_function(format!("{image}: a new size"), |b| {
            b.iter(|| SizedMapping::new(&config, CONV).expect("a file").at(black_box(&sizes)).expect("a program"));
        });
        let mapping = SizedMapping::new(&config, CONV).expect("a file");
        group.bench_function(format!("{image}: again"), |b| {
            b.iter(|| mapping.at(black_box(&sizes)).expect("a program"))
        });
    }
    group.finish();
}

criterion_group!(benches, sized);
criterion_main!(benches);
