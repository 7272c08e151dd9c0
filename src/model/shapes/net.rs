//! Builds graphs with random weights, operator by operator.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tilewright_compiler::graph::op::{
    Add, Binary, BinaryKind, Conv2d, Dense, Layout, MatMul, Op, Reduce, ReduceKind, Reshape, Transpose, Unary,
    UnaryKind,
};
use tilewright_compiler::graph::{DType, Graph, GraphBuilder, GraphError, Tensor, TensorType, ValueId};

/// A node's result, or its error.
pub type Made = Result<ValueId, GraphError>;

/// A network under construction.
pub struct Net {
    /// Inputs that a run computes at once.
    pub batch: usize,
    b: GraphBuilder,
    rng: SmallRng,
    count: usize,
}

/// Gain of a layer before a ReLU that keeps the magnitude of activations.
pub const RECTIFIED: f32 = std::f32::consts::SQRT_2;

/// A convolution's window and channels.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Output channels.
    pub out: usize,
    /// Height and width of the window.
    pub kernel: usize,
    /// Stride.
    pub stride: usize,
    /// Padding on all sides.
    pub pad: usize,
    /// Groups of channels.
    pub groups: usize,
}

impl Window {
    /// A window with padding that keeps the image's size if the stride is 1.
    pub fn same(out: usize, kernel: usize, stride: usize) -> Window {
        Window { out, kernel, stride, pad: kernel / 2, groups: 1 }
    }

    /// A window per channel.
    pub fn depthwise(channels: usize, stride: usize) -> Window {
        Window { groups: channels, ..Window::same(channels, 3, stride) }
    }
}

impl Net {
    /// An empty network; its name determines the weights.
    pub fn new(name: &str) -> Net {
        let seed = name.bytes().fold(0x5eed, |seed: u64, byte| seed.wrapping_mul(0x100_0193) ^ u64::from(byte));
        Net { batch: 1, b: GraphBuilder::new(name), rng: SmallRng::seed_from_u64(seed), count: 0 }
    }

    /// A random number from 0 to 1.
    pub fn uniform(&mut self) -> f32 {
        self.rng.random()
    }

    /// A random number with mean 0 and variance 1, approximately normally distributed.
    pub fn normal(&mut self) -> f32 {
        (0..4).map(|_| self.uniform() - 0.5).sum::<f32>() * 3f32.sqrt()
    }

    /// Finishes the network.
    pub fn finish(self) -> Result<Graph, GraphError> {
        self.b.finish()
    }

    pub fn input(&mut self, name: &str, dtype: DType, shape: &[usize]) -> ValueId {
        self.b.input(name, TensorType::new(dtype, shape))
    }

    pub fn output(&mut self, name: &str, v: ValueId) {
        self.b.output(name, v);
    }

    /// Shape of a value; all shapes are known here.
    pub fn shape(&self, v: ValueId) -> Vec<usize> {
        self.b.ty(v).shape().unwrap_or_default()
    }

    /// Adds a node with a unique name.
    pub fn node(&mut self, op: impl Into<Op>, inputs: &[ValueId]) -> Made {
        let op = op.into();
        self.count += 1;
        let name = format!("{}_{}", op.name(), self.count);
        self.b.node(&name, op, inputs)
    }

    fn constant(&mut self, what: &str, value: Tensor) -> ValueId {
        let name = format!("{what}_{}", self.count + 1);
        self.b.constant(&name, value)
    }

    /// Random parameters with this mean and standard deviation.
    pub fn parameters(&mut self, what: &str, shape: &[usize], (mean, deviation): (f32, f32)) -> ValueId {
        let value = Tensor::from_fn(shape, |_| mean + deviation * self.normal());
        self.constant(what, value)
    }

    /// A convolution whose results are `gain` times as large as its data.
    pub fn conv(&mut self, x: ValueId, w: Window, gain: f32) -> Made {
        let depth = self.shape(x)[1] / w.groups;
        let fan_in = (depth * w.kernel * w.kernel) as f32;
        let weight = self.parameters("weight", &[w.out, w.kernel, w.kernel, depth], (0.0, gain / fan_in.sqrt()));
        let bias = self.parameters("bias", &[w.out], (0.0, 0.1));
        let op = Conv2d {
            strides: [w.stride; 2],
            pads: [w.pad; 4],
            dilations: [1; 2],
            groups: w.groups,
            layout: Layout::Nchw,
            data_zero_point: 0,
            weight_zero_point: 0,
        };
        self.node(op, &[x, weight, bias])
    }

    /// A fully connected layer on the rows of a matrix.
    pub fn dense(&mut self, x: ValueId, out: usize, gain: f32) -> Made {
        let depth = self.shape(x)[1];
        let weight = self.parameters("weight", &[out, depth], (0.0, gain / (depth as f32).sqrt()));
        let bias = self.parameters("bias", &[out], (0.0, 0.1));
        self.node(Dense { data_zero_point: 0, weight_zero_point: 0 }, &[x, weight, bias])
    }

    pub fn add(&mut self, a: ValueId, b: ValueId) -> Made {
        self.node(Add {}, &[a, b])
    }

    pub fn matmul(&mut self, a: ValueId, b: ValueId) -> Made {
        self.node(MatMul {}, &[a, b])
    }

    pub fn binary(&mut self, kind: BinaryKind, a: ValueId, b: ValueId) -> Made {
        self.node(Binary { kind }, &[a, b])
    }

    pub fn unary(&mut self, kind: UnaryKind, x: ValueId) -> Made {
        self.node(Unary { kind, alpha: 0.0, beta: 0.0 }, &[x])
    }

    pub fn reshape(&mut self, x: ValueId, shape: &[usize]) -> Made {
        self.node(Reshape { shape: shape.iter().map(|&n| n as i64).collect() }, &[x])
    }

    pub fn transpose(&mut self, x: ValueId, perm: &[usize]) -> Made {
        self.node(Transpose { perm: perm.to_vec() }, &[x])
    }

    /// Layer normalization of each row of a matrix.
    pub fn layer_norm(&mut self, x: ValueId) -> Made {
        let width = self.shape(x)[1];
        let mean = |net: &mut Net, v| net.node(Reduce { kind: ReduceKind::Mean, axes: vec![1], keep_dims: true }, &[v]);
        let middle = mean(self, x)?;
        let less = self.binary(BinaryKind::Sub, x, middle)?;
        let square = self.binary(BinaryKind::Mul, less, less)?;
        let variance = mean(self, square)?;
        let epsilon = self.constant("epsilon", Tensor::scalar(1e-5f32));
        let sum = self.add(variance, epsilon)?;
        let root = self.unary(UnaryKind::Sqrt, sum)?;
        let factor = self.unary(UnaryKind::Reciprocal, root)?;
        let standard = self.binary(BinaryKind::Mul, less, factor)?;
        let scale = self.parameters("scale", &[width], (1.0, 0.1));
        let scaled = self.binary(BinaryKind::Mul, standard, scale)?;
        let bias = self.parameters("bias", &[width], (0.0, 0.1));
        self.add(scaled, bias)
    }
}
