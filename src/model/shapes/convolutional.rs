//! Convolutional networks for pictures of 224 x 224 and 1000 classes.

use super::net::{Made, Net, RECTIFIED, Window};
use tilewright_compiler::graph::op::{Clip, GlobalAvgPool, Layout, MaxPool2d, Relu};
use tilewright_compiler::graph::{DType, GraphError, ValueId};

/// Magnitude of a residual branch relative to the data that it is added to.
const BRANCH: f32 = 0.5;
const CLASSES: usize = 1000;

/// Names of the networks in this file.
pub const NETWORKS: &[&str] = &["resnet18", "resnet34", "resnet50", "mobilenet-v1", "mobilenet-v2", "vgg16"];

fn picture(net: &mut Net) -> ValueId {
    net.input("image", DType::F32, &[net.batch, 3, 224, 224])
}

fn rectified(net: &mut Net, x: ValueId, w: Window) -> Made {
    let x = net.conv(x, w, RECTIFIED)?;
    net.node(Relu {}, &[x])
}

/// A convolution whose results are clipped to 0 to 6.
fn clipped(net: &mut Net, x: ValueId, w: Window) -> Made {
    let x = net.conv(x, w, RECTIFIED)?;
    net.node(Clip { lo: 0.0, hi: 6.0 }, &[x])
}

fn max_pool(net: &mut Net, x: ValueId, kernel: usize, stride: usize, pad: usize) -> Made {
    let layout = Layout::Nchw;
    let op = MaxPool2d { kernel: [kernel; 2], strides: [stride; 2], pads: [pad; 4], dilations: [1; 2], layout };
    net.node(op, &[x])
}

/// Global average pooling, then the fully connected layer of the classes.
fn classify(net: &mut Net, x: ValueId) -> Result<(), GraphError> {
    let channels = net.shape(x)[1];
    let x = net.node(GlobalAvgPool { layout: Layout::Nchw, lo: -128, hi: 127 }, &[x])?;
    let x = net.reshape(x, &[net.batch, channels])?;
    let x = net.dense(x, CLASSES, 1.0)?;
    net.output("classes", x);
    Ok(())
}

/// ResNet with the given number of blocks per stage, each of three convolutions if `deep`, else of two.
pub fn resnet(net: &mut Net, blocks: [usize; 4], deep: bool) -> Result<(), GraphError> {
    let x = picture(net);
    let x = rectified(net, x, Window::same(64, 7, 2))?;
    let mut x = max_pool(net, x, 3, 2, 1)?;
    for (stage, count) in blocks.into_iter().enumerate() {
        let width = 64 << stage;
        let out = if deep { 4 * width } else { width };
        for block in 0..count {
            let stride = if block == 0 && stage > 0 { 2 } else { 1 };
            let branch = if deep {
                let y = rectified(net, x, Window::same(width, 1, 1))?;
                let y = rectified(net, y, Window::same(width, 3, stride))?;
                net.conv(y, Window::same(out, 1, 1), BRANCH)?
            } else {
                let y = rectified(net, x, Window::same(width, 3, stride))?;
                net.conv(y, Window::same(out, 3, 1), BRANCH)?
            };
            if stride > 1 || net.shape(x)[1] != out {
                x = net.conv(x, Window::same(out, 1, stride), 1.0)?;
            }
            let sum = net.add(branch, x)?;
            x = net.node(Relu {}, &[sum])?;
        }
    }
    classify(net, x)
}

/// MobileNet v1: depthwise and pointwise layers.
pub fn mobilenet_v1(net: &mut Net) -> Result<(), GraphError> {
    let x = picture(net);
    let mut x = clipped(net, x, Window::same(32, 3, 2))?;
    let layers = [
        (64, 1),
        (128, 2),
        (128, 1),
        (256, 2),
        (256, 1),
        (512, 2),
        (512, 1),
        (512, 1),
        (512, 1),
        (512, 1),
        (512, 1),
        (1024, 2),
        (1024, 1),
    ];
    for (out, stride) in layers {
        let channels = net.shape(x)[1];
        x = clipped(net, x, Window::depthwise(channels, stride))?;
        x = clipped(net, x, Window::same(out, 1, 1))?;
    }
    classify(net, x)
}

/// MobileNet v2: inverted residual blocks.
pub fn mobilenet_v2(net: &mut Net) -> Result<(), GraphError> {
    let x = picture(net);
    let mut x = clipped(net, x, Window::same(32, 3, 2))?;
    // Expansion factor, channels, blocks, stride of the first block.
    let stages =
        [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)];
    for (factor, out, count, first) in stages {
        for block in 0..count {
            let stride = if block == 0 { first } else { 1 };
            let channels = net.shape(x)[1];
            let mut y = x;
            if factor > 1 {
                y = clipped(net, y, Window::same(factor * channels, 1, 1))?;
            }
            y = clipped(net, y, Window::depthwise(factor * channels, stride))?;
            let shortcut = stride == 1 && channels == out;
            y = net.conv(y, Window::same(out, 1, 1), if shortcut { BRANCH } else { 1.0 })?;
            x = if shortcut { net.add(x, y)? } else { y };
        }
    }
    x = clipped(net, x, Window::same(1280, 1, 1))?;
    classify(net, x)
}

/// VGG with 13 convolutions and three fully connected layers.
pub fn vgg16(net: &mut Net) -> Result<(), GraphError> {
    let mut x = picture(net);
    for (out, count) in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)] {
        for _ in 0..count {
            x = rectified(net, x, Window::same(out, 3, 1))?;
        }
        x = max_pool(net, x, 2, 2, 0)?;
    }
    let elements = net.shape(x)[1..].iter().product();
    x = net.reshape(x, &[net.batch, elements])?;
    for _ in 0..2 {
        let y = net.dense(x, 4096, RECTIFIED)?;
        x = net.node(Relu {}, &[y])?;
    }
    x = net.dense(x, CLASSES, 1.0)?;
    net.output("classes", x);
    Ok(())
}
