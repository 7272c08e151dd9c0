//! Fields of TFLite files that define how data are stored or what they mean: each is read, or refused with the true
//! reason.

use super::*;
use tilewright_testing::flat::{self, Field, Table};

const F32: i8 = 0;
const F16: i8 = 1;
const I8: i8 = 9;

const CONV_2D: i32 = 3;
const DEPTHWISE_CONV_2D: i32 = 4;
const DEQUANTIZE: i32 = 6;
const FULLY_CONNECTED: i32 = 9;
const RELU: i32 = 19;
const RESIZE_BILINEAR: i32 = 23;
const PRELU: i32 = 54;
const TRANSPOSE_CONV: i32 = 67;
const DENSIFY: i32 = 124;

/// A file under construction; buffer 0 is empty.
pub(super) struct File {
    tensors: Vec<Table>,
    buffers: Vec<Table>,
    codes: Vec<Table>,
    operators: Vec<Table>,
    inputs: Vec<i32>,
    outputs: Vec<i32>,
    /// Graphs behind the first one.
    further: Vec<Table>,
    root: Table,
}

impl File {
    pub fn new() -> File {
        let (tensors, codes, operators) = (Vec::new(), Vec::new(), Vec::new());
        File {
            tensors,
            buffers: vec![Vec::new()],
            codes,
            operators,
            inputs: Vec::new(),
            outputs: Vec::new(),
            further: Vec::new(),
            root: Vec::new(),
        }
    }

    /// Adds a tensor that is computed or an input, and returns its number.
    pub fn tensor(&mut self, name: &str, ty: i8, shape: &[usize]) -> i32 {
        let sizes = Field::Words(shape.iter().map(|&d| d as i32).collect());
        self.tensors.push(vec![(0, sizes), (1, Field::Byte(ty)), (2, Field::Word(0)), (3, Field::text(name))]);
        self.tensors.len() as i32 - 1
    }

    pub fn input(&mut self, name: &str, ty: i8, shape: &[usize]) -> i32 {
        let t = self.tensor(name, ty, shape);
        self.inputs.push(t);
        t
    }

    pub fn constant(&mut self, name: &str, ty: i8, shape: &[usize], data: Vec<u8>) -> i32 {
        let t = self.tensor(name, ty, shape);
        self.buffers.push(vec![(0, Field::Bytes(data))]);
        self.tensors[t as usize][2].1 = Field::Word(self.buffers.len() as i32 - 1);
        t
    }

    /// Makes a tensor an output.
    pub fn output(&mut self, t: i32) {
        self.outputs.push(t);
    }

    /// Adds a field to a tensor.
    fn field(&mut self, t: i32, id: usize, field: Field) {
        self.tensors[t as usize].push((id, field));
    }

    pub fn quantized(&mut self, t: i32, scale: &[f32], zero_point: &[i64], axis: i32) {
        let scale = Field::Words(scale.iter().map(|s| s.to_bits() as i32).collect());
        let zero_point = Field::Longs(zero_point.to_vec());
        self.field(t, 4, Field::Table(vec![(2, scale), (3, zero_point), (6, Field::Word(axis))]));
    }

    /// Adds a graph, and returns its number.
    pub fn graph(&mut self, build: impl FnOnce(&mut File)) -> i32 {
        let own = |file: &mut File| {
            let lists = (std::mem::take(&mut file.tensors), std::mem::take(&mut file.operators));
            (lists, std::mem::take(&mut file.inputs), std::mem::take(&mut file.outputs))
        };
        let outer = own(self);
        build(self);
        let graph = self.subgraph();
        ((self.tensors, self.operators), self.inputs, self.outputs) = outer;
        self.further.push(graph);
        self.further.len() as i32
    }

    fn subgraph(&self) -> Table {
        vec![
            (0, Field::Tables(self.tensors.clone())),
            (1, Field::Words(self.inputs.clone())),
            (2, Field::Words(self.outputs.clone())),
            (3, Field::Tables(self.operators.clone())),
        ]
    }

    pub fn operator(&mut self, code: i32, inputs: &[i32], output: i32, options: Option<(i8, Table)>) {
        self.operator_with(code, inputs, &[output], options);
    }

    pub fn operator_with(&mut self, code: i32, inputs: &[i32], outputs: &[i32], options: Option<(i8, Table)>) {
        self.codes.push(vec![(3, Field::Word(code))]);
        let mut table = vec![
            (0, Field::Word(self.codes.len() as i32 - 1)),
            (1, Field::Words(inputs.to_vec())),
            (2, Field::Words(outputs.to_vec())),
        ];
        if let Some((kind, options)) = options {
            table.extend([(3, Field::Byte(kind)), (4, Field::Table(options))]);
        }
        self.operators.push(table);
    }

    pub fn bytes(&self) -> Vec<u8> {
        let subgraphs = std::iter::once(self.subgraph()).chain(self.further.iter().cloned());
        let mut model = vec![
            (1, Field::Tables(self.codes.clone())),
            (2, Field::Tables(subgraphs.collect())),
            (4, Field::Tables(self.buffers.clone())),
        ];
        model.extend(self.root.clone());
        flat::file(&model, b"TFL3")
    }

    pub fn run(&self, inputs: &[Tensor]) -> Vec<Tensor> {
        eval(&tflite::import(&self.bytes(), "net.tflite").unwrap(), inputs).unwrap()
    }

    pub fn refused(&self) -> String {
        tflite::import(&self.bytes(), "net.tflite").unwrap_err().to_string()
    }
}

pub(super) fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn slopes_that_are_not_finite_count_below_zero_alone() {
    let x = [f32::NAN, f32::INFINITY, 2.0, 0.0, -2.0];
    for (slope, last) in [(0.5, -1.0), (f32::INFINITY, f32::NEG_INFINITY), (f32::NAN, f32::NAN)] {
        let mut file = File::new();
        let data = file.input("x", F32, &[5]);
        let slopes = file.constant("slope", F32, &[1], floats(&[slope]));
        let y = file.tensor("y", F32, &[5]);
        file.operator(PRELU, &[data, slopes], y, None);
        file.outputs.push(y);
        let found = file.run(&[Tensor::vector(x.to_vec())]);
        let bits = |values: &[f32]| values.iter().map(|v| if v.is_nan() { None } else { Some(*v) }).collect::<Vec<_>>();
        assert_eq!(bits(found[0].as_slice().unwrap()), bits(&[x[0], x[1], x[2], x[3], last]), "slope {slope}");
    }
}

fn fully_connected() -> Option<(i8, Table)> {
    Some((8, vec![(0, Field::Byte(0))]))
}

/// A matrix with whole blocks of zeros, of every size that the tests use.
fn matrix(rows: usize, columns: usize) -> Vec<i8> {
    let value = |r: usize, c: usize| if (r / 4 + c / 16) % 3 == 1 { 0 } else { (r * 31 + c * 7) as i8 | 1 };
    (0..rows * columns).map(|i| value(i / columns, i % columns)).collect()
}

/// A list of indices with elements of `width` bytes, and the kind of that width.
fn indices(list: &[usize], width: usize) -> [Field; 2] {
    let (kind, values) = match width {
        4 => (1, Field::Words(list.iter().map(|&i| i as i32).collect())),
        2 => (2, Field::Halves(list.iter().map(|&i| i as u16).collect())),
        _ => (3, Field::Bytes(list.iter().map(|&i| i as u8).collect())),
    };
    [Field::Byte(kind), Field::Table(vec![(0, values)])]
}

/// Stores a matrix in blocks of `block`, with dimensions in this order, within blocks too, and without blocks of zeros
/// along the second dimension. Returns the tables and the stored elements.
fn sparse(dense: &[i8], shape: [usize; 2], block: [usize; 2], order: [usize; 2], width: usize) -> (Table, Vec<i8>) {
    let blocks = [shape[0] / block[0], shape[1] / block[1]];
    let [outer, inner] = order;
    let (mut segments, mut found, mut stored) = (vec![0], Vec::new(), Vec::new());
    for a in 0..blocks[outer] {
        for b in 0..blocks[inner] {
            let mut elements = Vec::new();
            for x in 0..block[outer] {
                for y in 0..block[inner] {
                    let mut at = [0; 2];
                    at[outer] = a * block[outer] + x;
                    at[inner] = b * block[inner] + y;
                    elements.push(dense[at[0] * shape[1] + at[1]]);
                }
            }
            if elements.iter().any(|e| *e != 0) {
                found.push(b);
                stored.extend(elements);
            }
        }
        segments.push(found.len());
    }
    let size = |n: usize| vec![(1, Field::Word(n as i32))];
    let ([k0, segments], [k1, found]) = (indices(&segments, width), indices(&found, width));
    let listed = vec![(0, Field::Byte(1)), (2, k0), (3, segments), (4, k1), (5, found)];
    let levels = vec![size(blocks[outer]), listed, size(block[outer]), size(block[inner])];
    let order = [outer, inner, 2 + outer, 2 + inner].map(|o| o as i32).to_vec();
    (vec![(0, Field::Words(order)), (1, Field::Words(vec![0, 1])), (2, Field::Tables(levels))], stored)
}

/// Fully connected layers with sparse weights: floats, floats after DENSIFY, and int8 after DENSIFY and DEQUANTIZE.
fn sparse_layers(tables: &Table, stored: &[i8], [rows, columns]: [usize; 2]) -> File {
    let mut f = File::new();
    let x = f.input("x", F32, &[1, columns]);
    let wide: Vec<f32> = stored.iter().map(|&v| v.into()).collect();
    for (i, ty) in [F32, F32, I8].into_iter().enumerate() {
        let data = if ty == I8 { stored.iter().map(|v| *v as u8).collect() } else { floats(&wide) };
        let mut w = f.constant(&format!("w{i}"), ty, &[rows, columns], data);
        f.field(w, 6, Field::Table(tables.clone()));
        if i > 0 {
            let dense = f.tensor(&format!("dense{i}"), ty, &[rows, columns]);
            if ty == I8 {
                f.quantized(dense, &[0.5], &[0], 0);
                f.quantized(w, &[0.5], &[0], 0);
            }
            f.operator(DENSIFY, &[w], dense, None);
            w = dense;
        }
        if ty == I8 {
            let real = f.tensor("real", F32, &[rows, columns]);
            f.operator(DEQUANTIZE, &[w], real, None);
            w = real;
        }
        let y = f.tensor(&format!("y{i}"), F32, &[1, rows]);
        f.operator(FULLY_CONNECTED, &[x, w], y, fully_connected());
        f.outputs.push(y);
    }
    f
}

#[test]
fn sparse_weights_are_expanded() {
    let shape = [8, 48];
    let dense = matrix(shape[0], shape[1]);
    let x = Tensor::from_fn(&[1, shape[1]], |i| (i % 5) as f32 - 2.0);
    let v = x.as_slice::<f32>().unwrap();
    let row = |r: usize| (0..shape[1]).map(|c| v[c] * f32::from(dense[r * shape[1] + c])).sum::<f32>();
    let wanted = Tensor::from_fn(&[1, shape[0]], row);
    let half = Tensor::from_fn(&[1, shape[0]], |r| row(r) / 2.0);
    for (block, order, width) in [
        ([1, 1], [0, 1], 4),
        ([4, 1], [0, 1], 2),
        ([1, 4], [0, 1], 1),
        ([1, 16], [0, 1], 1),
        ([1, 16], [1, 0], 2),
        ([4, 4], [1, 0], 1),
        ([2, 8], [1, 0], 4),
    ] {
        let (tables, stored) = sparse(&dense, shape, block, order, width);
        assert!(stored.len() < dense.len());
        let found = sparse_layers(&tables, &stored, shape).run(std::slice::from_ref(&x));
        assert_eq!(found, [wanted.clone(), wanted.clone(), half.clone()], "{block:?} {order:?}");
    }
    // Every element stored, column by column; and none stored.
    let size = |n: usize| vec![(1, Field::Word(n as i32))];
    let tables = vec![(0, Field::Words(vec![1, 0])), (2, Field::Tables(vec![size(shape[1]), size(shape[0])]))];
    let columns: Vec<i8> = (0..dense.len()).map(|i| dense[i % shape[0] * shape[1] + i / shape[0]]).collect();
    assert_eq!(sparse_layers(&tables, &columns, shape).run(std::slice::from_ref(&x))[0], wanted);
    let (tables, stored) = sparse(&[0; 8], [2, 4], [1, 4], [0, 1], 1);
    let zeros = sparse_layers(&tables, &stored, [2, 4]).run(&[Tensor::from_fn(&[1, 4], |i| i as f32)]);
    assert_eq!(zeros[0], Tensor::new(&[1, 2], vec![0f32; 2]).unwrap());
}

#[test]
fn damaged_sparsity_tables_are_refused_by_name() {
    let dense = matrix(8, 48);
    let (good, stored) = sparse(&dense, [8, 48], [1, 16], [0, 1], 1);
    let message = |tables: &Table, stored: &[i8]| sparse_layers(tables, stored, [8, 48]).refused();
    let with = |id: usize, field: Field| {
        let mut tables = good.clone();
        tables.iter_mut().find(|(known, _)| *known == id).unwrap().1 = field;
        tables
    };
    let level = |at: usize, level: Table| {
        let Field::Tables(mut levels) = good[2].1.clone() else { panic!("no levels") };
        levels[at] = level;
        with(2, Field::Tables(levels))
    };
    let listed = |segments: &[usize], found: &[usize]| {
        let ([k0, segments], [k1, found]) = (indices(segments, 1), indices(found, 4));
        vec![(0, Field::Byte(1)), (2, k0), (3, segments), (4, k1), (5, found)]
    };
    for (tables, reason) in [
        (with(0, Field::Words(vec![0, 1, 2])), "their traversal_order [0, 1, 2] does not match 2 dimensions"),
        (with(0, Field::Words(vec![0, 2, 1, 3])), "their traversal_order [0, 2, 1, 3] does not match"),
        (with(0, Field::Words(vec![0, -1, 2, 3])), "they have a number below 0"),
        (with(1, Field::Words(vec![1, 1])), "their blocks of 16 do not divide dimension 1"),
        (level(0, vec![(1, Field::Word(9))]), "their dimension 0 has size 9, but 8 is expected"),
        (level(0, vec![(0, Field::Byte(2))]), "they have a dimension of kind 2"),
        (level(3, vec![(1, Field::Word(5))]), "their blocks of 5 do not divide dimension 1"),
        (level(1, vec![(0, Field::Byte(1))]), "a sparse dimension has no segments or no indices"),
        (level(1, listed(&[0, 1, 2, 1], &[0, 1])), "a sparse dimension has 4 ends of segments for 8 entries"),
        (level(1, listed(&[0, 1, 1, 1, 1, 1, 1, 1, 1], &[3])), "a sparse dimension of 3 has the indices [3]"),
        (level(1, listed(&[0, 2, 2, 2, 2, 2, 2, 2, 2], &[1, 1])), "a sparse dimension of 3 has the indices [1, 1]"),
    ] {
        let found = message(&tables, &stored);
        let start = "net.tflite is not a usable model: tensor `w0`: its sparsity tables are damaged: ";
        assert!(found.starts_with(start) && found.contains(reason), "{found}");
    }
    let found = message(&good, &stored[1..]);
    assert!(found.contains(&format!("they place {} elements of 4 bytes, but the tensor has", stored.len())), "{found}");
    let wide = sparse_layers(&good, &stored, [8, 48]);
    assert!(tflite::import(&wide.bytes(), "net.tflite").is_ok());
}

/// A float layer with 8-bit weights of this shape after DEQUANTIZE, or with float weights.
fn weight_only(code: i32, shape: &[usize], axis: i32, quantized: Option<(&[f32], &[i64])>, weights: &[i8]) -> File {
    let mut f = File::new();
    let real = |i: usize, (scale, zero): (&[f32], &[i64])| {
        let inner: usize = shape[axis as usize + 1..].iter().product();
        let channel = if scale.len() > 1 { i / inner % shape[axis as usize] } else { 0 };
        scale[channel] * (i64::from(weights[i]) - zero[channel]) as f32
    };
    let (x, y): (&[usize], &[usize]) = match code {
        FULLY_CONNECTED => (&[2, 6], &[2, 4]),
        CONV_2D => (&[1, 4, 4, 3], &[1, 4, 4, 4]),
        DEPTHWISE_CONV_2D => (&[1, 4, 4, 4], &[1, 4, 4, 4]),
        _ => (&[1, 2, 2, 3], &[1, 4, 4, 4]),
    };
    let x = f.input("x", F32, x);
    let given = (&[0.5f32, 0.25, 2.0, 1.5][..], &[1i64, -3, 0, 7][..]);
    let w = match quantized {
        Some((scale, zero)) => {
            let w = f.constant("w8", I8, shape, weights.iter().map(|v| *v as u8).collect());
            f.quantized(w, scale, zero, axis);
            let real = f.tensor("w", F32, shape);
            f.operator(DEQUANTIZE, &[w], real, None);
            real
        }
        None => {
            let reals: Vec<f32> = (0..weights.len()).map(|i| real(i, given)).collect();
            f.constant("w", F32, shape, floats(&reals))
        }
    };
    for name in ["y", "again"] {
        let y = f.tensor(name, F32, y);
        match code {
            FULLY_CONNECTED => f.operator(code, &[x, w], y, fully_connected()),
            TRANSPOSE_CONV => {
                let size = f.constant("size", 2, &[4], [1i32, 4, 4, 4].iter().flat_map(|v| v.to_le_bytes()).collect());
                f.operator(code, &[size, w, x], y, Some((49, vec![(1, Field::Word(2)), (2, Field::Word(2))])));
            }
            _ => {
                let kind = if code == CONV_2D { 1 } else { 2 };
                f.operator(code, &[x, w], y, Some((kind, vec![(1, Field::Word(1)), (2, Field::Word(1))])));
            }
        }
        f.outputs.push(y);
    }
    f
}

#[test]
fn weights_of_8_bits_behind_dequantize_are_used_as_floats() {
    let (scale, zero) = (&[0.5f32, 0.25, 2.0, 1.5][..], &[1i64, -3, 0, 7][..]);
    for (code, shape, axis) in [
        (FULLY_CONNECTED, &[4, 6][..], 0),
        (CONV_2D, &[4, 3, 3, 3], 0),
        (DEPTHWISE_CONV_2D, &[1, 3, 3, 4], 3),
        (TRANSPOSE_CONV, &[4, 2, 2, 3], 0),
    ] {
        let weights: Vec<i8> = (0..shape.iter().product::<usize>()).map(|i| (i * 37 % 251) as u8 as i8).collect();
        let input = |f: &File| {
            let g = tflite::import(&f.bytes(), "net.tflite").unwrap();
            let shape = g.inputs().map(|(_, v)| g.ty(v).shape().unwrap()).next().unwrap();
            Tensor::from_fn(&shape, |i| (i * 13 % 7) as f32 - 3.0)
        };
        let plain = weight_only(code, shape, axis, None, &weights);
        let x = input(&plain);
        let wanted = plain.run(std::slice::from_ref(&x));
        assert!(wanted[0].as_slice::<f32>().unwrap().iter().any(|v| *v != 0.0));
        let found = weight_only(code, shape, axis, Some((scale, zero)), &weights).run(std::slice::from_ref(&x));
        assert_eq!(found, wanted, "{code}");
        let whole = weight_only(code, shape, axis, Some((&[0.5], &[1])), &weights).run(std::slice::from_ref(&x));
        assert_eq!(whole[0], whole[1]);
        assert_ne!(whole, wanted);
    }
}

#[test]
fn weights_of_4_bits_are_those_of_8_with_the_same_values() {
    const INT4: i8 = 17;
    let weights: Vec<i8> = (0..15).map(|i| (i * 5 % 16 - 8) as i8).collect();
    let network = |ty: i8, data: Vec<u8>| {
        let mut f = File::new();
        let (x, w) = (f.input("x", F32, &[2, 5]), f.constant("w8", ty, &[3, 5], data));
        f.quantized(w, &[0.5, 0.25, 2.0], &[0, 0, 0], 0);
        let (real, y) = (f.tensor("w", F32, &[3, 5]), f.tensor("y", F32, &[2, 3]));
        f.operator(DEQUANTIZE, &[w], real, None);
        f.operator(FULLY_CONNECTED, &[x, real], y, fully_connected());
        f.outputs.push(y);
        f
    };
    let half = |i: usize| weights.get(i).map_or(0, |w| *w as u8 & 15);
    let packed: Vec<u8> = (0..8).map(|i| half(2 * i) | half(2 * i + 1) << 4).collect();
    let x = Tensor::from_fn(&[2, 5], |i| i as f32 - 4.5);
    let bytes = network(I8, weights.iter().map(|w| *w as u8).collect()).run(std::slice::from_ref(&x));
    assert_eq!(network(INT4, packed.clone()).run(&[x]), bytes);
    let short = tflite::import(&network(INT4, packed[..7].to_vec()).bytes(), "net.tflite").unwrap_err().to_string();
    assert!(short.contains("tensor `w8`: 7 bytes do not fit 15 elements of 4 bits"), "{short}");
}

#[test]
fn weights_may_be_inputs_of_float_layers() {
    let mut f = File::new();
    let (x, w) = (f.input("x", F32, &[1, 3]), f.input("w", F32, &[2, 3]));
    let y = f.tensor("y", F32, &[1, 2]);
    f.operator(FULLY_CONNECTED, &[x, w], y, fully_connected());
    f.outputs.push(y);
    let (row, matrix) = (Tensor::from_fn(&[1, 3], |i| i as f32), Tensor::from_fn(&[2, 3], |i| i as f32));
    assert_eq!(f.run(&[row, matrix]), [Tensor::new(&[1, 2], vec![5f32, 14.0]).unwrap()]);
    let mut f = File::new();
    let (x, w) = (f.input("x", F32, &[1, 1, 1, 2]), f.input("w", F32, &[1, 1, 1, 2]));
    let y = f.tensor("y", F32, &[1, 1, 1, 2]);
    f.operator(DEPTHWISE_CONV_2D, &[x, w], y, Some((2, vec![(1, Field::Word(1)), (2, Field::Word(1))])));
    f.outputs.push(y);
    let pair = |a: f32, b: f32| Tensor::new(&[1, 1, 1, 2], vec![a, b]).unwrap();
    assert_eq!(f.run(&[pair(2.0, 3.0), pair(5.0, 7.0)]), [pair(10.0, 21.0)]);
    // 8-bit sums need known weights at compile time.
    let mut f = File::new();
    let (x, w) = (f.input("x", I8, &[1, 3]), f.input("w", I8, &[2, 3]));
    let y = f.tensor("y", I8, &[1, 2]);
    for t in [x, w, y] {
        f.quantized(t, &[0.5], &[0], 0);
    }
    f.operator(FULLY_CONNECTED, &[x, w], y, fully_connected());
    f.outputs.push(y);
    let found = f.refused();
    assert!(found.contains("operand 1, `w`, must be a constant, not an input or computed at run time"), "{found}");
}

/// A RELU of floats with changed fields.
fn relu(change: impl FnOnce(&mut File, [i32; 2])) -> File {
    let mut f = File::new();
    let (x, y) = (f.input("x", F32, &[2]), f.tensor("y", F32, &[2]));
    f.operator(RELU, &[x], y, None);
    f.outputs.push(y);
    change(&mut f, [x, y]);
    f
}

#[test]
fn fields_that_change_what_data_mean_are_refused_by_name() {
    let details = |kind: i8| Field::Table(vec![(4, Field::Byte(kind)), (5, Field::Table(Vec::new()))]);
    let refused = |f: File, reason: &str| {
        let found = f.refused();
        assert!(found.contains(reason), "{found}");
    };
    for (kind, name) in
        [(1, "CustomQuantization"), (2, "BlockwiseQuantization"), (3, "MultiAxisQuantization"), (9, "kind 9")]
    {
        let f = relu(|f, [x, _]| f.field(x, 4, details(kind)));
        refused(f, &format!("tensor `x`: it is quantized by {}", if kind == 9 { "details of kind 9" } else { name }));
    }
    refused(
        relu(|f, [x, _]| f.field(x, 10, Field::Word(3))),
        "tensor `x`: its data are in another file (external_buffer)",
    );
    refused(relu(|f, [x, _]| f.field(x, 11, Field::Word(1))), "tensor `x`: it has an unknown field, number 11");
    refused(relu(|f, _| f.root.push((0, Field::Word(4)))), "its schema version 4 is not supported; the maximum is 3");
    refused(relu(|f, [x, _]| f.quantized(x, &[1.0, 2.0], &[0, 0, 0], 0)), "tensor `x` has more scales than");
    refused(relu(|f, [x, _]| f.quantized(x, &[1.0], &[0, 0], 0)), "tensor `x`: it has 2 zero points for 1 scales");
    let unranked = relu(|f, [_, y]| f.tensors[y as usize][0].1 = Field::Words(Vec::new()));
    refused(unranked, "the file does not declare the shape of its result, which is f32[2]");
    let mut f = File::new();
    let (state, y) = (f.tensor("state", F32, &[2]), f.tensor("y", F32, &[2]));
    f.field(state, 5, Field::Byte(1));
    f.operator(RELU, &[state], y, None);
    f.outputs.push(y);
    refused(f, "tensor `state` is a variable, whose value is kept from one run to the next");
    let layer = |options: (i8, Table)| {
        let mut f = File::new();
        let x = f.input("x", F32, &[1, 2]);
        let w = f.constant("w", F32, &[1, 2], floats(&[1.0, 2.0]));
        let y = f.tensor("y", F32, &[1, 1]);
        f.operator(FULLY_CONNECTED, &[x, w], y, Some(options));
        f.outputs.push(y);
        f
    };
    refused(layer((8, vec![(4, Field::Byte(4))])), "attribute quantized_bias_type is INT64; supported is INT32");
    refused(layer((8, vec![(5, Field::Byte(1))])), "its options: it has an unknown field, number 5");
    refused(layer((9, vec![(0, Field::Word(0))])), "its options are of kind 9; FULLY_CONNECTED has options of kind 8");
    // Fields without an effect: minimum and maximum, shape signature, rank.
    let harmless = relu(|f, [x, _]| {
        f.field(x, 4, Field::Table(vec![(0, Field::Words(vec![0])), (1, Field::Words(vec![1]))]));
        f.field(x, 7, Field::Words(vec![-1]));
        f.field(x, 8, Field::Byte(1));
    });
    assert_eq!(harmless.run(&[Tensor::vector(vec![-1f32, 2.0])]), [Tensor::vector(vec![0f32, 2.0])]);
}

#[test]
fn corners_and_pixel_centers_exclude_each_other() {
    let mut f = File::new();
    let x = f.input("x", F32, &[1, 2, 2, 1]);
    let size = f.constant("size", 2, &[2], [4i32, 4].iter().flat_map(|v| v.to_le_bytes()).collect());
    let y = f.tensor("y", F32, &[1, 4, 4, 1]);
    f.operator(RESIZE_BILINEAR, &[x, size], y, Some((15, vec![(2, Field::Byte(1)), (3, Field::Byte(1))])));
    f.outputs.push(y);
    assert!(f.refused().contains("align_corners and half_pixel_centers must not both be set"));
}

#[test]
fn buffers_behind_the_tables_are_read() {
    let layer = |offset: i64, size: i64| {
        let mut f = File::new();
        let x = f.input("x", F32, &[1, 2]);
        let w = f.constant("w", F16, &[1, 2], Vec::new());
        f.buffers[1] = vec![(1, Field::Long(offset)), (2, Field::Long(size))];
        let real = f.tensor("real", F32, &[1, 2]);
        f.operator(DEQUANTIZE, &[w], real, None);
        let y = f.tensor("y", F32, &[1, 1]);
        f.operator(FULLY_CONNECTED, &[x, real], y, fully_connected());
        f.outputs.push(y);
        f.bytes()
    };
    let end = layer(2, 4).len();
    let mut file = layer(end as i64, 4);
    // 1.5 and -2 in half precision.
    file.extend([0x00, 0x3e, 0x00, 0xc0]);
    let graph = tflite::import(&file, "net.tflite").unwrap();
    let y = eval(&graph, &[Tensor::new(&[1, 2], vec![2f32, 1.0]).unwrap()]).unwrap();
    assert_eq!(y, [Tensor::new(&[1, 1], vec![1f32]).unwrap()]);
    let error = tflite::import(&file[..file.len() - 1], "net.tflite").unwrap_err().to_string();
    assert!(error.contains(&format!("a buffer of 4 bytes at offset {end} passes the end of the file")), "{error}");
}

#[test]
fn tensors_listed_more_than_once_are_outputs_each_time() {
    let x = Tensor::vector(vec![-1f32, 2.0]);
    let y = Tensor::vector(vec![0f32, 2.0]);
    let names = |f: &File| {
        let graph = tflite::import(&f.bytes(), "net.tflite").unwrap();
        graph.outputs().iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    let twice = relu(|f, [x, y]| f.outputs = vec![y, x, y]);
    assert_eq!(names(&twice), ["y", "x", "y"]);
    assert_eq!(twice.run(std::slice::from_ref(&x)), [y.clone(), x.clone(), y.clone()]);
    // uint8, which is int8 inside.
    let mut f = File::new();
    let (a, b) = (f.input("a", 3, &[2]), f.tensor("b", 3, &[2]));
    f.quantized(a, &[0.5], &[128], 0);
    f.quantized(b, &[0.5], &[128], 0);
    f.operator(RELU, &[a], b, None);
    f.outputs = vec![b, b];
    assert_eq!(names(&f), ["b", "b"]);
    let bytes = |v: [u8; 2]| Tensor::vector(v.to_vec());
    assert_eq!(f.run(&[bytes([3, 200])]), [bytes([128, 200]), bytes([128, 200])]);
    // Another tensor with the same name is another output.
    let alike = relu(|f, [x, y]| {
        let z = f.tensor("y", F32, &[2]);
        f.operator(RELU, &[x], z, None);
        f.outputs = vec![z, y];
    });
    assert_eq!(names(&alike), ["y", "y:1"]);
    let inputs = relu(|f, [x, _]| f.inputs = vec![x, x]);
    assert!(inputs.refused().contains("its tensor `x` is listed twice among the inputs"));
}
