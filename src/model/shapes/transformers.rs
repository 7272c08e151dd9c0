//! Transformer encoders.

use super::net::{Made, Net, Window};
use tilewright_compiler::graph::op::{Concat, Gather, Slice, Softmax, UnaryKind};
use tilewright_compiler::graph::{DType, GraphError, ValueId};

/// Magnitude of a residual branch relative to the data that it is added to.
const BRANCH: f32 = 0.5;

/// Multi-head attention on `[tokens, width]`.
fn attention(net: &mut Net, x: ValueId, heads: usize) -> Made {
    let [tokens, width] = [net.shape(x)[0], net.shape(x)[1]];
    let each = width / heads;
    // The weights of the queries are divided by the square root of a head's width.
    let query = net.dense(x, width, 1.0 / (each as f32).sqrt())?;
    let key = net.dense(x, width, 1.0)?;
    let value = net.dense(x, width, 1.0)?;
    let mut split = |v, perm: [usize; 3]| {
        let v = net.reshape(v, &[tokens, heads, each])?;
        net.transpose(v, &perm)
    };
    let (query, key, value) = (split(query, [1, 0, 2])?, split(key, [1, 2, 0])?, split(value, [1, 0, 2])?);
    let scores = net.matmul(query, key)?;
    let softmax = Softmax { axis: 2, beta: 1.0, input_scale: 1.0, output_scale: 1.0, output_zero_point: 0 };
    let shares = net.node(softmax, &[scores])?;
    let mixed = net.matmul(shares, value)?;
    let joined = net.transpose(mixed, &[1, 0, 2])?;
    let joined = net.reshape(joined, &[tokens, width])?;
    net.dense(joined, width, 1.0)
}

fn perceptron(net: &mut Net, x: ValueId, inner: usize) -> Made {
    let width = net.shape(x)[1];
    let y = net.dense(x, inner, 1.0)?;
    let y = net.unary(UnaryKind::Gelu, y)?;
    net.dense(y, width, BRANCH)
}

/// The first row of a matrix.
fn first_row(net: &mut Net, x: ValueId) -> Made {
    let width = net.shape(x)[1];
    net.node(Slice { starts: vec![0, 0], sizes: vec![1, width], steps: vec![1, 1] }, &[x])
}

/// DeiT-tiny: 196 patches and a class token, 12 blocks of width 192 and three heads.
pub fn deit_tiny(net: &mut Net) -> Result<(), GraphError> {
    const WIDTH: usize = 192;
    let image = net.input("image", DType::F32, &[1, 3, 224, 224]);
    let patches = net.conv(image, Window { out: WIDTH, kernel: 16, stride: 16, pad: 0, groups: 1 }, 1.0)?;
    let patches = net.reshape(patches, &[WIDTH, 196])?;
    let patches = net.transpose(patches, &[1, 0])?;
    let class = net.parameters("class", &[1, WIDTH], (0.0, 1.0));
    let tokens = net.node(Concat { axis: 0 }, &[class, patches])?;
    let position = net.parameters("position", &[197, WIDTH], (0.0, 0.2));
    let mut x = net.add(tokens, position)?;
    for _ in 0..12 {
        let y = net.layer_norm(x)?;
        let y = attention(net, y, 3)?;
        x = net.add(x, y)?;
        let y = net.layer_norm(x)?;
        let y = perceptron(net, y, 4 * WIDTH)?;
        x = net.add(x, y)?;
    }
    let x = net.layer_norm(x)?;
    let x = first_row(net, x)?;
    let x = net.dense(x, 1000, 1.0)?;
    net.output("classes", x);
    Ok(())
}

/// BERT-tiny: 128 tokens of 30,522, two blocks of width 128 and two heads, and the pooled first token.
pub fn bert_tiny(net: &mut Net) -> Result<(), GraphError> {
    const WIDTH: usize = 128;
    const TOKENS: usize = 128;
    let words = net.input("input_ids", DType::I64, &[TOKENS]);
    let table = net.parameters("words", &[30_522, WIDTH], (0.0, 1.0));
    let x = net.node(Gather { axis: 0 }, &[table, words])?;
    let position = net.parameters("position", &[TOKENS, WIDTH], (0.0, 0.2));
    let x = net.add(x, position)?;
    let mut x = net.layer_norm(x)?;
    for _ in 0..2 {
        let y = attention(net, x, 2)?;
        let y = net.add(x, y)?;
        x = net.layer_norm(y)?;
        let y = perceptron(net, x, 4 * WIDTH)?;
        let y = net.add(x, y)?;
        x = net.layer_norm(y)?;
    }
    let first = first_row(net, x)?;
    let pooled = net.dense(first, WIDTH, 1.0)?;
    let pooled = net.unary(UnaryKind::Tanh, pooled)?;
    net.output("hidden", x);
    net.output("pooled", pooled);
    Ok(())
}
