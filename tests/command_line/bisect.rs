//! `bisect`.

use serde_json::Value as Json;

use crate::models::{digits, lenet};
use crate::{fine, refused};

#[test]
fn sound_passes_are_cleared_at_every_level() {
    let dir = tempfile::tempdir().unwrap();
    for level in ["-O0", "-O3"] {
        let text = fine(dir.path(), &["bisect", &lenet(), level, "--input", &digits()]);
        assert!(text.ends_with("no patch changes the answer\n"), "{text}");
        assert!(text.lines().next().unwrap().ends_with("graphs evaluated in 32 run(s)"), "{text}");
        assert!(text.contains("replace floats by integers: "), "{text}");
    }
    let report: Json = serde_json::from_str(&fine(dir.path(), &["bisect", &lenet(), "--json"])).unwrap();
    assert!(report["patches"].as_u64().unwrap() > 10 && report["suspect"] == Json::Null, "{report}");
    assert!(report["evaluations"].as_u64().unwrap() <= 6, "{report}");
}

#[test]
fn what_bisect_cannot_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fine(dir.path(), &["compile", &lenet(), "-o", "l.twa"]);
    refused(
        dir.path(),
        &["bisect", "l.twa"],
        "l.twa is compiled and no longer contains its graph; give the model that it was compiled from",
    );
    refused(
        dir.path(),
        &["bisect", &lenet(), "--offload", "none", "--keep-values"],
        "--offload, --keep-values: bisect runs only the graph passes, which do not use this; leave it out",
    );
    refused(dir.path(), &["bisect", "none.onnx"], "cannot read none.onnx: No such file or directory (os error 2)");
}
