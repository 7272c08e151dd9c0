use super::super::testing::external_constant;
use crate::frontend::{Sizes, import, onnx};
use crate::graph::{Tensor, eval};
use std::os::unix::fs::symlink;
use std::path::Path;

/// A model beside which a constant of four floats, 1.5 each, lies behind four bytes.
fn write(model: &Path, data: &Path, location: &str) {
    std::fs::write(model, external_constant(location, 4)).unwrap();
    std::fs::write(data, 1.5f32.to_le_bytes().repeat(5)).unwrap();
}

/// The result for ones, or why there is none.
fn run(model: &Path) -> Result<Vec<f32>, String> {
    let g = import(model).map_err(|e| e.to_string())?;
    Ok(eval(&g, &[Tensor::vector(vec![1f32; 4])]).unwrap()[0].as_slice::<f32>().unwrap().to_vec())
}

#[test]
fn a_location_may_name_its_own_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (model, below) = (folder.path().join("net.onnx"), folder.path().join("a"));
    std::fs::create_dir(&below).unwrap();
    for (location, data) in [
        ("w.bin", folder.path().join("w.bin")),
        ("./w.bin", folder.path().join("w.bin")),
        (".//w.bin", folder.path().join("w.bin")),
        ("././w.bin", folder.path().join("w.bin")),
        ("./a/w.bin", below.join("w.bin")),
        ("a/./w.bin", below.join("w.bin")),
    ] {
        write(&model, &data, location);
        assert_eq!(run(&model).unwrap(), [2.5; 4], "{location}");
        std::fs::remove_file(&data).unwrap();
    }
    let data = folder.path().join("w.bin");
    for location in ["../w.bin", "a/../w.bin", "./../w.bin", ".", "", "/w.bin", data.to_str().unwrap()] {
        write(&model, &data, location);
        let e = run(&model).unwrap_err();
        let wanted =
            format!("its data file `{location}` must be named by a path below the model's folder, without `..`");
        assert!(e.contains(&wanted), "{e}");
    }
}

#[test]
fn data_come_from_ordinary_files_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (model, data) = (folder.path().join("net.onnx"), folder.path().join("w.bin"));
    std::fs::write(&model, external_constant("w.bin", 4)).unwrap();
    std::fs::create_dir(&data).unwrap();
    assert!(run(&model).unwrap_err().contains("w.bin is no ordinary file"));
    // Nobody writes into this pipe, so that reading it would not end.
    std::fs::remove_dir(&data).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&data).status().unwrap().success());
    assert!(run(&model).unwrap_err().contains("w.bin is no ordinary file"));
}

#[test]
fn links_of_a_hub_are_followed() {
    let cache = tempfile::tempdir().unwrap();
    let (blobs, snapshot) = (cache.path().join("blobs"), cache.path().join("snapshots/1a2b/onnx"));
    std::fs::create_dir(&blobs).unwrap();
    std::fs::create_dir_all(&snapshot).unwrap();
    write(&blobs.join("aa"), &blobs.join("bb"), "net.onnx_data");
    let link = snapshot.join("net.onnx");
    symlink("../../../blobs/aa", &link).unwrap();
    symlink("../../../blobs/bb", snapshot.join("net.onnx_data")).unwrap();
    assert_eq!(run(&link).unwrap(), [2.5; 4]);
    // Links by their whole path.
    std::fs::remove_file(&link).unwrap();
    symlink(blobs.join("aa"), &link).unwrap();
    assert_eq!(run(&link).unwrap(), [2.5; 4]);
    // Data that are beside the file itself alone.
    std::fs::remove_file(snapshot.join("net.onnx_data")).unwrap();
    assert!(run(&link).unwrap_err().contains("cannot read its data from"));
    std::fs::rename(blobs.join("bb"), blobs.join("net.onnx_data")).unwrap();
    assert_eq!(run(&link).unwrap(), [2.5; 4]);
}

#[test]
fn links_that_lead_elsewhere_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (inner, outer) = (folder.path().join("inner"), folder.path().join("outer"));
    std::fs::create_dir(&inner).unwrap();
    std::fs::create_dir(&outer).unwrap();
    write(&inner.join("net.onnx"), &outer.join("secret"), "w.bin");
    symlink("../outer/secret", inner.join("w.bin")).unwrap();
    // The model is a plain file, and its data lie outside of its folder.
    let e = run(&inner.join("net.onnx")).unwrap_err();
    assert!(e.contains("its data file `w.bin` must lie in the model's folder, and it is a link to "), "{e}");
    assert!(e.contains("/outer/secret"), "{e}");
    // A link to the model in a third folder does not change that.
    let third = folder.path().join("third");
    std::fs::create_dir(&third).unwrap();
    symlink("../inner/net.onnx", third.join("net.onnx")).unwrap();
    assert!(run(&third.join("net.onnx")).unwrap_err().contains("must lie in the model's folder"));
    // Without a folder nothing is looked for.
    let e = onnx::import(&external_constant("w.bin", 4), "net.onnx", None, Sizes::default()).unwrap_err();
    assert!(e.to_string().contains("its data are in another file, which cannot be found from here"), "{e}");
}
