use super::*;
use crate::tensor::DType;
use tilewright_driver::AccelProgram;

fn value(name: &str, len: usize, constant: Option<u32>) -> ValueInfo {
    ValueInfo { constant: constant.map(BlobId), ..ValueInfo::new(name, DType::I8, vec![len]) }
}

fn manifest() -> Manifest {
    Manifest {
        values: vec![value("x", 3, None), value("w", 3, Some(0)), value("y", 3, None)],
        inputs: vec![ValueId(0)],
        outputs: vec![ValueId(2)],
        steps: vec![Step {
            name: "add".into(),
            kind: StepKind::Packed { function: "add".into(), attributes: Default::default() },
            inputs: vec![ValueId(0), ValueId(1)],
            outputs: vec![ValueId(2)],
        }],
        nodes: vec![NodeInfo {
            name: "add".into(),
            op: "add".into(),
            place: Place::Cpu,
            why: "asked for".into(),
            macs: 0,
            step: Some(0),
            values: vec![Some(ValueId(2))],
            cost: None,
        }],
        ..Manifest::new("sum", "test")
    }
}

fn artifact() -> Artifact {
    Artifact::new("sum.twa", manifest(), vec![vec![1, 2, 3], vec![9; 100]]).unwrap()
}

#[test]
fn what_is_written_reads_back_and_blobs_are_aligned() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sum.twa");
    artifact().write(&path).unwrap();
    let read = Artifact::read(&path).unwrap();
    assert_eq!(read.blob(BlobId(0)), [1, 2, 3]);
    assert_eq!(read.blob(BlobId(1)), [9; 100]);
    assert!(read.manifest.blobs.iter().all(|blob| blob.offset % ALIGN as u64 == 0));
    assert_eq!(read.encode(), std::fs::read(&path).unwrap());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "a temporary file was left behind");
}

#[test]
fn every_flipped_byte_and_every_cut_is_found() {
    let whole = artifact().encode();
    let read = Artifact::decode("f", &whole).unwrap();
    let mut covered = vec![false; whole.len()];
    let blobs = &read.manifest.blobs;
    let text = usize::from(whole[16]) | usize::from(whole[17]) << 8;
    covered[..16 + 40].fill(true);
    covered[12..16].fill(false); // reserved
    covered[HEADER_BYTES..HEADER_BYTES + text].fill(true);
    for blob in blobs {
        covered[blob.offset as usize..][..blob.len as usize].fill(true);
    }
    for (at, covered) in covered.iter().enumerate() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        assert_eq!(Artifact::decode("f", &bytes).is_err(), *covered, "byte {at}");
    }
    let end = blobs.iter().map(|blob| blob.offset + blob.len).max().unwrap() as usize;
    for len in 0..end {
        assert!(Artifact::decode("f", &whole[..len]).is_err(), "cut at {len}");
    }
}

#[test]
fn parameters_can_be_in_a_file_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let [path, params, moved] = ["sum.twa", "sum.params", "elsewhere"].map(|name| dir.path().join(name));
    artifact().write_apart(&path, &params).unwrap();
    let whole = artifact();
    let same = |read: &Artifact| (0..2).all(|blob| read.blob(BlobId(blob)) == whole.blob(BlobId(blob)));
    let read = Artifact::read(&path).unwrap();
    assert!(same(&read));
    // Blob 0 is a constant, blob 1 is not.
    assert_eq!(read.manifest.blobs.iter().map(|blob| blob.apart).collect::<Vec<_>>(), [true, false]);
    assert_eq!(read.encode(), whole.encode(), "a file with all parameters can be made again");
    let (own, apart) = (std::fs::read(&path).unwrap(), std::fs::read(&params).unwrap());
    assert!(!own.windows(3).any(|window| window == [1, 2, 3]) && apart[64..67] == [1, 2, 3]);
    assert!(same(&Artifact::decode_with("m", &own, ParametersAt::Bytes(&apart)).unwrap()));
    std::fs::rename(&params, &moved).unwrap();
    assert!(same(&Artifact::read_with(&path, ParametersAt::File(&moved)).unwrap()));

    // Every wrong file is refused, with what to do.
    let (path_text, params_text) = (path.display(), params.display());
    let missing = Artifact::read(&path).unwrap_err().to_string();
    let start = format!("{path_text} keeps its parameters in {params_text}, which cannot be read: No such file");
    assert!(missing.starts_with(&start) && missing.contains("copy that file there, or give its path"), "{missing}");
    let refused = |bytes: &[u8]| {
        let error = Artifact::decode_with("m", &own, ParametersAt::Bytes(bytes)).unwrap_err();
        error.to_string().replace("the file sum.params in memory", "p")
    };
    let edited = |at: usize, byte: u8| {
        let mut bytes = apart.clone();
        bytes[at] ^= byte;
        refused(&bytes)
    };
    assert_eq!(
        Artifact::decode("m", &own).unwrap_err().to_string(),
        "m keeps its parameters in a file sum.params; open it together with the bytes of that file"
    );
    assert!(edited(0, 1).starts_with("p is not a file of parameters"), "{}", edited(0, 1));
    assert_eq!(
        edited(8, 2),
        "p has parameters version 3, but this program has 1; compile the model again with this program"
    );
    let damaged = |what: &str| format!("p is damaged: {what}; copy it again, or compile the model again");
    assert_eq!(edited(64, 1), damaged("the checksum of its contents differs"));
    assert_eq!(refused(&apart[..40]), damaged("it ends inside its header"));
    assert_eq!(refused(&apart[..100]), damaged("its length differs from the one in its header"));
    let other = Artifact::new("other", manifest(), vec![vec![1, 2, 4], vec![]]).unwrap().encode_apart("sum.params").1;
    let found = refused(&other);
    assert!(
        found.starts_with("p has other parameters (checksum ") && found.contains("than those that m was"),
        "{found}"
    );
    let (elsewhere, _) = artifact().encode_apart("../sum.params");
    let error = Artifact::decode_with("m", &elsewhere, ParametersAt::Beside(&path)).unwrap_err().to_string();
    assert!(error.contains("\"../sum.params\", its file of parameters, is not the name of a file"), "{error}");
}

#[test]
fn errors_name_the_file_and_the_remedy() {
    let message = |bytes: &[u8]| Artifact::decode("m.twa", bytes).unwrap_err().to_string();
    assert_eq!(
        message(b"something else"),
        "m.twa is not a Tilewright artifact; make one with: tilewright compile MODEL -o FILE"
    );
    let mut bytes = artifact().encode();
    bytes[8] = 9;
    assert_eq!(
        message(&bytes),
        "m.twa has format version 9, but this program has 2; compile the model again with this program"
    );
    let mut bytes = artifact().encode();
    bytes[HEADER_BYTES + 5] ^= 1;
    assert_eq!(
        message(&bytes),
        "m.twa is damaged: the manifest's checksum differs; copy it again, or compile the model again"
    );
    let mut newer = manifest();
    newer.isa_version += 1;
    let bytes = Artifact::new("m.twa", newer, vec![vec![1, 2, 3]]).unwrap().encode();
    assert_eq!(
        message(&bytes),
        format!(
            "m.twa has instruction set version {}, but this program has {ISA_VERSION}; \
             compile the model again with this program",
            ISA_VERSION + 1
        )
    );
}

#[test]
fn another_configuration_is_refused_by_name() {
    let config = |name: &str| HwConfig::load(name).unwrap();
    let (small, large) = (config("1x8x8"), config("1x16x16"));
    let mut m = manifest();
    m.hardware = Some(Hardware { name: small.name.clone(), hash: small.hash(), toml: String::new() });
    let artifact = Artifact::new("m.twa", m, vec![vec![1, 2, 3]]).unwrap();
    assert!(artifact.check_hardware(&small).is_ok());
    assert_eq!(
        artifact.check_hardware(&large).unwrap_err().to_string(),
        format!(
            "m.twa was compiled for configuration 1x8x8 ({:016x}), but the device has 1x16x16 ({:016x}); \
             run it without --hw to use its own configuration, or compile the model again for the device's configuration",
            small.hash(),
            large.hash()
        )
    );
}

fn accel() -> StepKind {
    let program = AccelProgram {
        config_hash: 0,
        isa_version: ISA_VERSION,
        stream: vec![],
        regions: vec![],
        constants: vec![],
        sections: vec![],
        inputs: vec![],
        outputs: vec![],
    };
    StepKind::Accel(AccelStep {
        program,
        stream: BlobId(0),
        constants: BlobId(0),
        inputs: vec![],
        outputs: vec![],
        tensors: vec![],
        layers: vec![],
        runs: vec![],
    })
}

#[test]
fn a_manifest_that_leads_nowhere_is_refused() {
    type Edit = fn(&mut Manifest);
    let cases: &[(Edit, &str)] = &[
        (|m| m.inputs = vec![ValueId(7)], "the list of inputs refers to value 7, which does not exist"),
        (|m| m.inputs.push(ValueId(1)), "input w is a constant, or listed twice"),
        (|m| m.inputs.push(ValueId(0)), "input x is a constant, or listed twice"),
        (|m| m.outputs = vec![ValueId(7)], "the list of outputs refers to value 7, which does not exist"),
        (|m| m.steps.clear(), "nothing writes the output y"),
        (|m| m.inputs.clear(), "step add reads x before anything wrote it"),
        (|m| m.steps[0].outputs[0] = ValueId(1), "step add must not write w"),
        (|m| m.steps[0].outputs[0] = ValueId(0), "step add must not write x"),
        (|m| m.values[1].constant = Some(BlobId(5)), "constant w refers to blob 5, which does not exist"),
        (|m| m.values[1].shape = vec![4], "constant w does not have the 4 bytes of its shape"),
        (|m| m.values[0].shape = vec![usize::MAX, 2], "value x of shape 18446744073709551615x2 is too large"),
        (|m| m.nodes[0].step = Some(3), "node add refers to a step that does not exist"),
        (
            |m| m.steps[0].kind = StepKind::Cpu { function: "f".into(), object: 0, workspace_bytes: 0 },
            "step add refers to object code 0, which does not exist",
        ),
        (|m| m.steps[0].kind = accel(), "step add runs on an accelerator, but the artifact names no configuration"),
        (
            |m| {
                m.steps[0].kind = accel();
                m.hardware = Some(Hardware { name: "x".into(), hash: 0, toml: String::new() });
            },
            "step add and its program differ in their numbers of tensors",
        ),
    ];
    for (edit, reason) in cases {
        let mut m = manifest();
        edit(&mut m);
        let error = Artifact::new("m.twa", m, vec![vec![1, 2, 3]]).unwrap_err().to_string();
        assert_eq!(error, format!("m.twa is damaged: {reason}; copy it again, or compile the model again"));
    }
}

#[test]
fn a_file_cut_within_its_first_bytes_is_a_damaged_artifact() {
    let bytes = artifact().encode();
    for len in [1, 4, 7, 8, 63] {
        assert!(Artifact::is_one(&bytes[..len]));
        let error = Artifact::decode("cut.twa", &bytes[..len]).unwrap_err().to_string();
        assert!(error.starts_with("cut.twa is damaged: it ends inside its header"), "{error}");
    }
    assert!(!Artifact::is_one(b"") && !Artifact::is_one(b"TILES"));
}
