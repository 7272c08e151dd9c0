use crate::te::{Array, Builder, Combiner, DType, Expr, Func, Program, Scalar};
use crate::testing::inputs;
use crate::tir::{
    Action, Block, Buffer, For, Function, LoopKind, Scope, Stmt, TirError, evaluate, lower, parse, run, verify,
};

/// A padded 3x3 convolution with a requantized result, which uses every kind of definition.
pub fn conv() -> Program {
    let (h, w, ci, co) = (5, 4, 3, 2);
    let mut b = Builder::new("conv");
    let x = b.input("x", DType::I8, &[h, w, ci]);
    let k = b.input("k", DType::I8, &[co, 3, 3, ci]);
    let m = b.input("m", DType::I32, &[co]);
    let pad = b.compute("pad", &[h + 2, w + 2, ci], |i| {
        let (y, z) = (i[0].clone() - 1, i[1].clone() - 1);
        let inside = Expr::int(0)
            .le(y.clone())
            .and(y.clone().lt(Expr::int(h)))
            .and(Expr::int(0).le(z.clone()))
            .and(z.clone().lt(Expr::int(w)));
        inside.select(x.at(&[y, z, i[2].clone()]), Expr::Int(-3, DType::I8))
    });
    let acc = b.reduce("acc", DType::I32, &[h, w, co], &[("ky", 3), ("kx", 3), ("c", ci)], Combiner::Sum, |i, r| {
        let at = [i[0].clone() + r[0].clone(), i[1].clone() + r[1].clone(), r[2].clone()];
        let tap = [i[2].clone(), r[0].clone(), r[1].clone(), r[2].clone()];
        (pad.at(&at).cast(DType::I32) + 3) * k.at(&tap).cast(DType::I32)
    });
    let y = b.compute("y", &[h, w, co], |i| {
        let scaled = Expr::call(Func::ScaleDouble, vec![acc.at(i), m.at(&[i[2].clone()]), Expr::i32(-5)]);
        Expr::call(Func::OffsetClamp, vec![scaled, Expr::i32(4), Expr::i32(-128), Expr::i32(127)]).cast(DType::I8)
    });
    b.finish(&[y])
}

#[test]
fn convolution_evaluates_like_plain_loops() {
    let f = lower(&conv()).unwrap();
    let args = inputs(&f);
    let got = run(&f, &args).unwrap();
    let at = |a: &Array, i: &[i64]| a.get(a.position(i).unwrap()).unwrap().int();
    for (h, w, co) in (0..5).flat_map(|h| (0..4).flat_map(move |w| (0..2).map(move |c| (h, w, c)))) {
        let mut acc = 0i64;
        for (ky, kx, c) in (0..3).flat_map(|a| (0..3).flat_map(move |b| (0..3).map(move |c| (a, b, c)))) {
            let (y, x) = (h + ky - 1, w + kx - 1);
            if (0..5).contains(&y) && (0..4).contains(&x) {
                acc += (at(&args[0], &[y, x, c]) + 3) * at(&args[1], &[co, ky, kx, c]);
            }
        }
        let s = tilewright_hw::num::scale_double(acc as i32, at(&args[2], &[co]) as i32, -5);
        assert_eq!(at(&got[0], &[h, w, co]), (s as i64 + 4).clamp(-128, 127));
    }
}

#[test]
fn text_parses_back() {
    let f = lower(&conv()).unwrap();
    let text = f.to_string();
    assert_eq!(parse(&text).unwrap(), f, "{text}");
}

#[test]
fn deep_and_cut_texts_give_errors_and_no_panic() {
    let deep = format!("function f {{ output a: i64[] block b {{ a[] = {}1 }} }}", "(".repeat(100_000));
    assert!(parse(&deep).is_err());
    // Every proper prefix of a valid text is rejected without a panic.
    let text = lower(&conv()).unwrap().to_string();
    let cut = text.char_indices().map(|(i, _)| i).filter(|i| *i < text.trim_end().len());
    cut.for_each(|i| assert!(parse(&text[..i]).is_err()));
}

/// What text cannot express; `tests/files/tir` has the other errors.
#[test]
fn the_verifier_finds_what_text_cannot_say() {
    let function = |value: Expr| Function {
        name: "f".into(),
        intrinsics: Vec::new(),
        params: vec![Buffer { name: "b".into(), dtype: DType::F32, shape: vec![-1], scope: Scope::Global }],
        outputs: 2,
        locals: Vec::new(),
        body: Stmt::For(For {
            var: "i".into(),
            extent: -1,
            kind: LoopKind::Serial,
            body: Box::new(Stmt::Block(Block {
                name: "c".into(),
                reduce: Vec::new(),
                guards: Vec::new(),
                init: None,
                action: Action::Store { buffer: "b".into(), indices: vec![Expr::Var("i".into())], value },
            })),
        }),
    };
    let problems = |value: Expr| match verify(&function(value)) {
        Err(TirError::Malformed { problems, .. }) => problems,
        other => panic!("{other:?}"),
    };
    let always = ["2 outputs but 1 parameters", "buffer b has a negative extent", "loop i has a negative extent"];
    let cases = [
        (Expr::Int(1, DType::F32), "1 is not a valid f32"),
        (Expr::Call(Func::Exp, vec![]), "exp takes 1 arguments"),
        (Expr::Load { buffer: "q".into(), dtype: DType::F32, indices: vec![] }, "no buffer is named q"),
    ];
    for (value, problem) in cases {
        assert_eq!(problems(value), [&always[..], &[format!("block c: {problem}").as_str()]].concat());
    }
    let two = Expr::Float(1.0, DType::I8);
    let stored = "block c: the value stored must be f32, `1.0i8` is i8";
    assert_eq!(problems(two), [&always[..], &["block c: a float constant cannot be i8", stored]].concat());
}

#[test]
fn out_of_bounds_is_an_error() {
    let f = parse("function f { input a: i8[2] output b: i8[2] for i in 2 { block c { b[i] = a[i + 1] } } }").unwrap();
    let e = run(&f, &inputs(&f)).unwrap_err();
    assert_eq!(e.to_string(), "block c accesses a[2], outside of its shape [2]");
}

#[test]
fn float_functions_evaluate() {
    let mut b = Builder::new("f");
    let x = b.input("x", DType::F32, &[3]);
    let y = b.compute("y", &[3], |i| Expr::call(Func::RoundEven, vec![x.at(i)]) + Expr::call(Func::Erf, vec![x.at(i)]));
    let mut a = Array::zeros(DType::F32, &[3]);
    for (i, v) in [0.5, 1.5, -2.5].into_iter().enumerate() {
        a.set(i, Scalar::F(v));
    }
    let out = &evaluate(&b.finish(&[y]), &[a]).unwrap()[0];
    for (i, v) in [0.520_499_9, 2.966_105_2, -2.999_593].into_iter().enumerate() {
        assert!((out.get(i).unwrap().float() - v).abs() < 1e-6);
    }
}
