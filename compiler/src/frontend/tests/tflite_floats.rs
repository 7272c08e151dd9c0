//! Float operators of TFLite that the single-operator files leave out.

use super::*;
use tilewright_testing::flat::{self, Field};

/// The result of one operator on floats; `operand` is an additional constant of INT32.
fn result(code: i32, x: &Tensor, operand: &[i32], shape: &[usize]) -> Result<Tensor, ImportError> {
    let sizes = |shape: &[usize]| Field::Words(shape.iter().map(|&d| d as i32).collect());
    let tensor = |name: &str, shape: &[usize], ty: i8, buffer: i32| {
        vec![(0, sizes(shape)), (1, Field::Byte(ty)), (2, Field::Word(buffer)), (3, Field::text(name))]
    };
    let constant: Vec<u8> = operand.iter().flat_map(|v| v.to_le_bytes()).collect();
    let tensors = vec![tensor("x", x.shape(), 0, 0), tensor("axes", &[operand.len()], 2, 1), tensor("y", shape, 0, 0)];
    let inputs = if operand.is_empty() { vec![0] } else { vec![0, 1] };
    let operator = vec![(1, Field::Words(inputs)), (2, Field::Words(vec![2]))];
    let subgraph = vec![
        (0, Field::Tables(tensors)),
        (1, Field::Words(vec![0])),
        (2, Field::Words(vec![2])),
        (3, Field::Tables(vec![operator])),
    ];
    let model = vec![
        (1, Field::Tables(vec![vec![(3, Field::Word(code))]])),
        (2, Field::Tables(vec![subgraph])),
        (4, Field::Tables(vec![Vec::new(), vec![(0, Field::Bytes(constant))]])),
    ];
    let graph = tflite::import(&flat::file(&model, b"TFL3"), "net.tflite")?;
    Ok(eval(&graph, std::slice::from_ref(x)).unwrap().remove(0))
}

const MEAN: i32 = 40;
const RSQRT: i32 = 76;

#[test]
fn means_of_floats_are_over_any_dimensions() {
    let x = Tensor::from_fn(&[2, 3, 4], |i| (i * i % 17) as f32);
    let v = x.as_slice::<f32>().unwrap();
    let last = Tensor::from_fn(&[2, 3], |i| v[4 * i..4 * i + 4].iter().sum::<f32>() / 4.0);
    assert_eq!(result(MEAN, &x, &[-1], &[2, 3]).unwrap(), last);
    assert_eq!(result(MEAN, &x, &[2], &[2, 3, 1]).unwrap(), last.reshaped(&[2, 3, 1]).unwrap());
    let both = Tensor::from_fn(&[3], |i| (0..8).map(|k| v[k / 4 * 12 + 4 * i + k % 4]).sum::<f32>() / 8.0);
    assert_eq!(result(MEAN, &x, &[2, 0], &[3]).unwrap(), both);
    let pixels = Tensor::from_fn(&[1, 2, 2, 3], |i| i as f32);
    assert_eq!(result(MEAN, &pixels, &[1, 2], &[1, 3]).unwrap(), Tensor::new(&[1, 3], vec![4.5f32, 5.5, 6.5]).unwrap());
    assert_eq!(
        result(MEAN, &pixels, &[3], &[1, 2, 2]).unwrap(),
        Tensor::new(&[1, 2, 2], vec![1f32, 4.0, 7.0, 10.0]).unwrap()
    );
    let e = result(MEAN, &x, &[3], &[2, 3]).unwrap_err().to_string();
    assert!(e.contains("its axes must be in range for 3 dimensions, found 3"), "{e}");
}

#[test]
fn reciprocal_roots_of_floats() {
    let x = Tensor::vector(vec![1f32, 4.0, 0.25, 2.0]);
    assert_eq!(result(RSQRT, &x, &[], &[4]).unwrap(), Tensor::vector(vec![1f32, 0.5, 2.0, 1.0 / 2f32.sqrt()]));
}
