//! Speed of the conversions between dense tensors and the layout of device memory, next to a copy of the same bytes and
//! to the element-by-element definition. Bytes are those in device memory, padding channels included.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tilewright_runtime::artifact::{Image, Packing};
use tilewright_runtime::convert::{pack, unpack};

/// Images of networks, with blocks of 16 channels unless they are loaded by windows.
fn images() -> Vec<(&'static str, Image)> {
    let image = |c, h, w, block| Image { n: 1, c, h, w, block, fill: 0, pads: [0; 2] };
    vec![
        ("56x56x64", image(64, 56, 56, 16)),
        ("7x7x512", image(512, 7, 7, 16)),
        ("197x192", image(192, 1, 197, 16)),
        ("28x28x100", image(100, 28, 28, 16)),
        ("224x224x3", image(3, 224, 224, 16)),
        ("224x224x3 windows", Image { pads: [3, 3], ..image(3, 224, 224, 3) }),
        ("224x224x64", image(64, 224, 224, 16)),
    ]
}

fn element_by_element(packing: Packing, dense: &[u8]) -> Vec<i8> {
    let (image, strides) = match packing {
        Packing::Nchw(i) => (i, [i.h * i.w, i.w, 1]),
        Packing::Nhwc(i) => (i, [1, i.w * i.c, i.c]),
        Packing::Dense => return Vec::new(),
    };
    image.pack(|_, c, y, x| dense[c * strides[0] + y * strides[1] + x * strides[2]] as i8)
}

fn bench(criterion: &mut Criterion) {
    for (name, image) in images() {
        let bytes = image.c * image.h * image.w;
        let dense: Vec<u8> = (0..bytes).map(|at| (at * 7 % 251) as u8).collect();
        let device_bytes = Packing::Nhwc(image).device_bytes(bytes).expect("it has a size");
        let (mut copy, other) = (vec![0u8; device_bytes], vec![1u8; device_bytes]);
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(device_bytes as u64)).sample_size(20);
        group.bench_function("memcpy", |b| b.iter(|| black_box(&mut copy).copy_from_slice(black_box(&other))));
        for (order, packing) in [("channels last", Packing::Nhwc(image)), ("channels first", Packing::Nchw(image))] {
            let (mut packed, mut back) = (vec![0; device_bytes], vec![0; bytes]);
            pack(packing, &dense, &mut packed);
            unpack(packing, &packed, &mut back);
            let defined = element_by_element(packing, &dense);
            assert!(defined.iter().map(|byte| *byte as u8).eq(packed.iter().copied()), "{name}, {order}");
            assert!(back == dense, "{name}, {order}");
            group.bench_function(format!("pack, {order}"), |b| {
                b.iter(|| pack(packing, black_box(&dense), black_box(&mut packed)));
            });
            group.bench_function(format!("unpack, {order}"), |b| {
                b.iter(|| unpack(packing, black_box(&packed), black_box(&mut back)));
            });
            group.bench_function(format!("pack element by element, {order}"), |b| {
                b.iter(|| element_by_element(packing, black_box(&dense)));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
