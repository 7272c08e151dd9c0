use super::*;

#[test]
fn float_networks_are_close() {
    let lenet = models("lenet-mnist");
    let resnet = tilewright_testing::model("resnet8-cifar10");
    for folder in std::iter::once(lenet).chain(resnet) {
        let (found, expected) = run(&folder, "model.onnx");
        let r = relative(&found[0], &expected[0]);
        assert!(r < 1e-4, "{}: {r}", folder.display());
    }
}

fn argmax(v: &[f32]) -> usize {
    (0..v.len()).fold(0, |best, i| if v[i] > v[best] { i } else { best })
}

#[test]
fn quantized_lenet_gives_the_same_answer() {
    for model in ["model_qdq_perchannel.onnx", "model_qdq_pertensor.onnx"] {
        let (found, expected) = run(&models("lenet-mnist"), model);
        let (f, e) = (found[0].as_slice::<f32>().unwrap(), expected[0].as_slice::<f32>().unwrap());
        assert_eq!(argmax(f), argmax(e), "{model}: {f:?} {e:?}");
        assert!(relative(&found[0], &expected[0]) < 0.03, "{model}: {f:?} {e:?}");
    }
}
