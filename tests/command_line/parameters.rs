//! `compile --params`, and `--params` of the commands that read artifacts.

use crate::models::{digits, json, lenet};
use crate::{fine, refused};

#[test]
fn parameters_stay_in_a_file_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::create_dir(dir.join("sub")).unwrap();
    let compile = |more: &[&str]| fine(dir, &[&["compile", &lenet(), "--hw", "1x4x4"][..], more].concat());
    compile(&["-o", "whole.twa"]);
    compile(&["-o", "code.twa", "--params", "lenet.params"]);
    compile(&["-o", "cpu.twa", "--offload", "none", "--params", "sub/cpu.params"]);
    let size = |name: &str| dir.join(name).metadata().unwrap().len();
    let (whole, code, params) = (size("whole.twa"), size("code.twa"), size("lenet.params"));
    assert!(code + params < whole + 4096 && params > 44_000, "{whole} {code} {params}");
    let run = |more: &[&str]| {
        let base = ["run", more[0], "--input", &digits(), "--json", "--output-dir", "out"];
        json(&fine(dir, &[&base[..], &more[1..]].concat()));
        std::fs::read(dir.join("out/logits.npy")).unwrap()
    };
    let expected = run(&["whole.twa"]);
    assert_eq!(run(&["code.twa"]), expected);
    assert_eq!(run(&["cpu.twa", "--params", "sub/cpu.params", "--device", "cpu"]), expected);
    // Other commands find them too.
    assert_eq!(fine(dir, &["disasm", "code.twa"]), fine(dir, &["disasm", "whole.twa"]));
    assert!(fine(dir, &["inspect", "code.twa"]).contains("parameters in lenet.params"));
    std::fs::rename(dir.join("lenet.params"), dir.join("sub/other")).unwrap();
    fine(dir, &["diff", "code.twa", "--params", "sub/other", "--a", "fsim", "--b", "csim"]);

    refused(
        dir,
        &["run", "code.twa", "--input", &digits()],
        "code.twa keeps its parameters in lenet.params, which cannot be read: No such file or directory (os error 2); copy \
         that file there, or give its path (--params, tw_artifact_open_with)",
    );
    let other = crate::tilewright(dir, &["inspect", "code.twa", "--params", "sub/cpu.params"]);
    assert!(other.code == 2 && other.stderr.contains("sub/cpu.params has other parameters"), "{}", other.stderr);
    refused(
        dir,
        &["run", &lenet(), "--params", "sub/other", "--input", &digits()],
        "--params is for artifacts; a model file has its parameters itself",
    );
    refused(
        dir,
        &["compile", &lenet(), "-o", "x.twa", "--params", "./x.twa"],
        "--params ./x.twa is the model or the artifact itself; give another file",
    );
}
