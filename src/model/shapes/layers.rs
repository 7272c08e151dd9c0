//! Single layers of ResNet-18: the set of VTA's measurements.

use super::net::{Net, RECTIFIED, Window};
use tilewright_compiler::graph::op::Relu;
use tilewright_compiler::graph::{DType, GraphError};

/// A convolution of ResNet-18 with bias, requantization and ReLU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer {
    /// Its name.
    pub name: &'static str,
    /// Height and width of the data.
    pub size: usize,
    /// Channels of the data.
    pub channels: usize,
    /// Channels of the results.
    pub out: usize,
    /// Height and width of the window.
    pub kernel: usize,
    /// Stride.
    pub stride: usize,
    /// How often it occurs in ResNet-18.
    pub times: u64,
}

const fn layer(name: &'static str, shape: [usize; 5], times: u64) -> Layer {
    let [size, channels, out, kernel, stride] = shape;
    Layer { name, size, channels, out, kernel, stride, times }
}

/// C2 to C11.
pub const LAYERS: &[Layer] = &[
    layer("resnet18-c2", [56, 64, 64, 3, 1], 4),
    layer("resnet18-c3", [56, 64, 128, 3, 2], 1),
    layer("resnet18-c4", [56, 64, 128, 1, 2], 1),
    layer("resnet18-c5", [28, 128, 128, 3, 1], 3),
    layer("resnet18-c6", [28, 128, 256, 3, 2], 1),
    layer("resnet18-c7", [28, 128, 256, 1, 2], 1),
    layer("resnet18-c8", [14, 256, 256, 3, 1], 3),
    layer("resnet18-c9", [14, 256, 512, 3, 2], 1),
    layer("resnet18-c10", [14, 256, 512, 1, 2], 1),
    layer("resnet18-c11", [7, 512, 512, 3, 1], 3),
];

impl Layer {
    /// Height and width of the results.
    pub fn out_size(&self) -> usize {
        (self.size - 1) / self.stride + 1
    }

    /// Number of multiplications.
    pub fn macs(&self) -> u64 {
        (self.out_size().pow(2) * self.out * self.channels * self.kernel.pow(2)) as u64
    }

    /// Builds the layer alone, with an addition before the ReLU if `add` is set.
    pub(super) fn build(&self, net: &mut Net, add: bool) -> Result<(), GraphError> {
        let x = net.input("data", DType::F32, &[1, self.channels, self.size, self.size]);
        let mut y = net.conv(x, Window::same(self.out, self.kernel, self.stride), RECTIFIED)?;
        if add {
            let other = net.input("other", DType::F32, &[1, self.out, self.out_size(), self.out_size()]);
            y = net.add(y, other)?;
        }
        let y = net.node(Relu {}, &[y])?;
        net.output("result", y);
        Ok(())
    }
}
