//! Pictures as inputs, class names as outputs, and the networks that come with the program.

use crate::models::{carried, json};
use crate::{fine, tilewright};

/// Returns the message of a call that must fail with exit code 2.
#[track_caller]
fn refusal(dir: &std::path::Path, arguments: &[&str]) -> String {
    let outcome = tilewright(dir, arguments);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{arguments:?}");
    outcome.stderr
}

fn here() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_network_of_the_zoo_answers_its_sample_as_expected() {
    let list = json(&fine(here(), &["zoo", "--json"]));
    let list = list.as_array().expect("an array");
    assert!(list.len() >= 6);
    for network in list {
        let name = network["name"].as_str().expect("a name");
        let report = json(&fine(here(), &["run", name, "--device", "fsim", "--json"]));
        assert_eq!(report["expected"]["holds"], true, "{name}: {}", report["expected"]);
        assert!(!network["licence"].as_str().expect("a licence").is_empty(), "{name}");
        if network["classes"].as_u64() > Some(0) {
            assert!(report["answers"][0][0]["name"].is_string(), "{name}");
        }
    }
    let table = fine(here(), &["zoo"]);
    assert!(list.iter().all(|network| table.contains(network["name"].as_str().unwrap())), "{table}");
    let page = fine(here(), &["zoo", "efficientnet-lite0-int8"]);
    assert!(page.contains("tiger cat 39 %") && page.contains("Apache-2.0"), "{page}");
    let error = refusal(here(), &["run", "zoo:alexnet"]);
    assert!(error.contains("the zoo has no network alexnet; it has lenet"), "{error}");
}

#[test]
fn a_photo_goes_in_and_names_come_out_of_models_and_artifacts() {
    let dir = tempfile::tempdir().unwrap();
    let names = carried("photos/imagenet_labels_1000.txt");
    let photos = ["coffee.png", "camera.png"].map(|name| carried(&format!("photos/{name}")));
    fine(dir.path(), &["compile", "zoo:efficientnet-lite0-int8", "-o", "e.twa"]);
    let pictures = ["--input", &photos[0], "--input", &photos[1], "--preprocess", "crop=0.875,mean=127,scale=128"];
    let text = fine(dir.path(), &[&["run", "e.twa", "--class-names", &names, "--top", "2"], &pictures[..]].concat());
    let answers: Vec<&str> = text.lines().filter(|line| line.starts_with("answer")).collect();
    assert_eq!(answers.len(), 2, "{text}");
    assert!(answers[0].contains("coffee.png: espresso 9") && answers[0].contains("cup"), "{text}");
    assert!(answers[1].contains("camera.png: tripod 9"), "{text}");
    // Mean, scale and names are in the model file.
    let own = fine(dir.path(), &["run", "e.twa", "--input", &photos[0], "--preprocess", "crop=0.875", "--json"]);
    assert_eq!(json(&own)["answers"][0][0]["name"], "espresso");
}

#[test]
fn pictures_and_names_that_do_not_fit_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let photo = carried("photos/coffee.png");
    std::fs::write(dir.path().join("cut.png"), &std::fs::read(&photo).unwrap()[..5000]).unwrap();
    std::fs::write(dir.path().join("two.txt"), "cat\ndog\n").unwrap();
    let lenet = carried("lenet-mnist/model.onnx");
    let model = lenet.as_str();
    let cases: &[(&[&str], &str)] = &[
        (&["run", model, "--input", "cut.png"], "cut.png is not a picture that can be read"),
        (&["run", model, "--input", "none.png"], "cannot read none.png: No such file or directory"),
        (&["run", model, "--input", &photo], "--preprocess mean=127.5,scale=127.5"),
        (&["run", model, "--input", &photo, "--preprocess", "men=1"], "men is not known; keys are crop=SHARE"),
        (&["run", "zoo:lenet", "--preprocess", "mean=1"], "--preprocess is for pictures"),
        (
            &["run", "zoo:lenet", "--class-names", "two.txt"],
            "two.txt has 2 names, one per line, but the model's first output, 1x10, has 10",
        ),
        (&["run", "zoo:lenet", "--class-names", "none.txt"], "cannot read the names of classes in none.txt"),
        (&["run", model, "--input", &format!("picture={photo}")], "the model has no input picture; it has input"),
    ];
    for (arguments, wanted) in cases {
        let error = refusal(dir.path(), arguments);
        assert!(error.contains(wanted), "{arguments:?}: {error}");
    }
}

#[test]
fn a_tflite_files_own_description_prepares_pictures_and_names_classes() {
    let photo = carried("photos/chelsea.png");
    for file in ["mobilenetv1-0.25-128/model_uint8.tflite", "mobilenetv2-1.0-224/model_ptq_int8.tflite"] {
        let Some(model) = tilewright_testing::model(file) else { return };
        let report = json(&fine(here(), &["run", model.to_str().unwrap(), "--input", &photo, "--json"]));
        let guess = &report["answers"][0][0];
        assert_eq!(guess["name"], "Egyptian cat", "{file}: {}", report["answers"]);
        assert!(guess["probability"].as_f64() > Some(0.2), "{file}: {guess}");
    }
}
