//! Einsum, compared with a loop over all labels, and its errors.

use super::*;
use crate::frontend::onnx::testing::{Operand, Value, single};
use crate::graph::DType;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::BTreeMap;

fn import_one(equation: &str, operands: &[Operand]) -> Result<Graph, String> {
    let file = single("Einsum", &[("equation", Value::Word(equation))], operands, 1, 17);
    onnx::import(&file, "net.onnx", None, Sizes::default()).map_err(|e| e.to_string())
}

fn values(t: &Tensor) -> Vec<f64> {
    match t.data() {
        TensorData::I32(v) => v.iter().map(|&x| f64::from(x)).collect(),
        _ => t.as_slice::<f32>().unwrap().iter().map(|&x| f64::from(x)).collect(),
    }
}

/// The sums and their shape; letters are labels, digits the labels of the ellipsis.
fn plain(terms: &[String], operands: &[Tensor], result: &str) -> (Vec<usize>, Vec<f64>) {
    let mut sizes: BTreeMap<char, usize> = BTreeMap::new();
    for (term, t) in terms.iter().zip(operands) {
        for (c, &d) in term.chars().zip(t.shape()) {
            let size = sizes.entry(c).or_insert(d);
            *size = (*size).max(d);
        }
    }
    let labels: Vec<char> = sizes.keys().copied().collect();
    let shape: Vec<usize> = result.chars().map(|c| sizes[&c]).collect();
    let mut sums = vec![0.0; shape.iter().product()];
    let all: Vec<Vec<f64>> = operands.iter().map(values).collect();
    for i in 0..sizes.values().product::<usize>() {
        let (mut rest, mut place) = (i, BTreeMap::new());
        for c in &labels {
            place.insert(*c, rest % sizes[c]);
            rest /= sizes[c];
        }
        let at = |term: &str, shape: &[usize]| {
            term.chars().zip(shape).fold(0, |at, (c, &d)| at * d + if d == 1 { 0 } else { place[&c] })
        };
        let factors = terms.iter().zip(operands).zip(&all).map(|((term, t), v)| v[at(term, t.shape())]);
        sums[at(result, &shape)] += factors.product::<f64>();
    }
    (shape, sums)
}

#[test]
fn einsums_are_those_of_a_loop_over_all_labels() {
    let mut rng = SmallRng::seed_from_u64(3);
    let mut implied = 0;
    for _ in 0..400 {
        let sizes: Vec<usize> = (0..6).map(|_| rng.random_range(1..4)).collect();
        let (integers, ellipsis) = (rng.random_bool(0.2), rng.random_bool(0.4));
        let (mut written, mut terms, mut operands) = (Vec::new(), Vec::new(), Vec::new());
        let mut hidden = 0;
        for _ in 0..rng.random_range(1..4) {
            let letters: String =
                (0..rng.random_range(0..4)).map(|_| ['a', 'b', 'C', 'd'][rng.random_range(0..4)]).collect();
            let own = if ellipsis && rng.random_bool(0.7) { Some(rng.random_range(0..3)) } else { None };
            let (mut text, mut labels) = (letters.clone(), letters.clone());
            if let Some(k) = own {
                let at = rng.random_range(0..=letters.len());
                text.insert_str(at, "...");
                // Ellipses share their last dimensions: `1` is the last but one, `0` the last.
                labels.insert_str(at, ["", "1", "01"].map(|s| s.replace('0', "2"))[k].as_str());
                hidden = hidden.max(k);
            }
            let size = |c: char| match c {
                'a' => sizes[0],
                'b' => sizes[1],
                'C' => sizes[2],
                'd' => sizes[3],
                '1' => sizes[4],
                _ => sizes[5],
            };
            // A dimension of size 1 broadcasts, but not on a diagonal.
            let shape: Vec<usize> = labels
                .chars()
                .map(|c| if labels.matches(c).count() == 1 && rng.random_bool(0.15) { 1 } else { size(c) })
                .collect();
            let mut x = || rng.random_range(-3..4);
            operands.push(if integers {
                Tensor::from_fn(&shape, |_| x())
            } else {
                Tensor::from_fn(&shape, |_| x() as f32 / 2.0)
            });
            written.push(text);
            terms.push(labels);
        }
        let dots = ["", "1", "21"][hidden];
        let all: String = terms.concat();
        let mut letters: Vec<char> = all.chars().filter(char::is_ascii_alphabetic).collect();
        letters.sort_unstable();
        let (result, equation) = if rng.random_bool(0.3) {
            implied += 1;
            letters.retain(|c| all.matches(*c).count() == 1);
            (format!("{dots}{}", letters.iter().collect::<String>()), written.join(", "))
        } else {
            letters.dedup();
            letters.retain(|_| rng.random());
            let at = rng.random_range(0..=letters.len());
            let (front, back): (String, String) = (letters[..at].iter().collect(), letters[at..].iter().collect());
            let mark = if hidden > 0 || rng.random_bool(0.5) && written.concat().contains('.') { "..." } else { "" };
            (format!("{front}{dots}{back}"), format!("{} -> {front}{mark}{back}", written.join(",")))
        };
        let frozen: bool = rng.random();
        let operand = |(i, t): (usize, &Tensor)| match i {
            1 if frozen => Operand::Constant(t.clone()),
            _ => Operand::Given(t.clone()),
        };
        let made: Vec<Operand> = operands.iter().enumerate().map(operand).collect();
        let given: Vec<Tensor> =
            operands.iter().enumerate().filter(|(i, _)| *i != 1 || !frozen).map(|(_, t)| t.clone()).collect();
        let g = import_one(&equation, &made).unwrap_or_else(|e| panic!("{equation}: {e}"));
        let found = eval(&g, &given).unwrap().remove(0);
        let (shape, sums) = plain(&terms, &operands, &result);
        assert_eq!(found.shape(), shape, "{equation}");
        assert_eq!(found.dtype(), if integers { DType::I32 } else { DType::F32 });
        // The values are halves and quarters, so the sums are exact.
        assert_eq!(values(&found), sums, "{equation} of {operands:?}");
    }
    assert!(implied > 50, "{implied}");
}

#[test]
fn weights_make_a_dense_layer() {
    let zeros = |shape: &[usize]| Tensor::from_fn(shape, |_| 0f32);
    let operands = [Operand::Given(zeros(&[2, 5, 3])), Operand::Constant(zeros(&[3, 4]))];
    let g = import_one("bsd,dh->bsh", &operands).unwrap();
    let names: Vec<&str> = g.nodes().map(|(_, n)| n.op.name()).collect();
    assert!(names.contains(&"dense") && !names.contains(&"matmul") && !names.contains(&"transpose"), "{names:?}");
}

#[test]
fn equations_that_do_not_hold_are_named() {
    let zeros = |shape: &[usize]| Operand::Given(Tensor::from_fn(shape, |_| 0f32));
    let refused = |equation: &str, operands: &[Operand], want: &str| {
        let e = import_one(equation, operands).unwrap_err();
        assert!(e.contains(&format!("node `node` (Einsum): {want}")), "{e}");
    };
    let square = || zeros(&[3, 3]);
    refused("ij,jk->ik", &[square()], "its equation has 2 operands, but the node has 1");
    refused("ijk->i", &[square()], "its equation has 3 dimensions for operand 0, f32[3,3]");
    refused("i->i", &[square()], "its equation has 1 dimensions for operand 0, f32[3,3]");
    refused("ij->ii", &[square()], "its equation's result names `i` twice");
    refused("ij->k", &[square()], "its equation's result names `k`, which no operand has");
    refused(
        "i1->i",
        &[square()],
        "its equation has `1` in `i1`, which is not allowed; use letters, `...`, commas and one",
    );
    refused("i->j->i", &[square()], "its equation has `-` in `j->i`, which is not allowed");
    refused("...i...->i", &[square()], "its equation has two ellipses in `...i...`");
    refused("...i->i", &[square()], "its equation's result leaves out the ellipsis of its operands; add `...` to it");
    refused("ij,jk", &[square(), zeros(&[2, 3])], "its equation gives `j` the sizes 3 and 2");
    refused("ii->i", &[zeros(&[1, 3])], "its equation gives sizes 1 and 3 the same name");
    refused(
        "...i,...i",
        &[square(), zeros(&[2, 3])],
        "its equation gives a dimension of the ellipsis the sizes 3 and 2",
    );
    let letters: String = ('a'..='t').chain('A'..='T').collect();
    let both = format!("{},{}", &letters[..20], &letters[20..]);
    refused(
        &format!("{both}->{letters}"),
        &[zeros(&[1; 20]), zeros(&[1; 20])],
        "reshape: 40 dimensions are not supported",
    );
    let e = import_one("...->...", &[zeros(&[1; 5000])]).unwrap_err();
    assert!(e.contains("input `in0`: 5000 dimensions are not supported; the maximum is 32"), "{e}");
    let truth = Operand::Given(Tensor::from_fn(&[2], |_| true));
    refused("i->i", &[truth], "its operand 0 must be of type f32, i32 or i64, found bool[2]");
}
