//! Functions of a server, and artifacts that run there.

use bytes::Bytes;
use tilewright_driver::{AccelProgram, MemoryRegion, Role};
use tilewright_runtime::artifact::{AccelStep, BlobId, Hardware, Manifest, Step, StepKind, ValueId, ValueInfo};
use tilewright_runtime::tensor::{DType, Tensor};
use tilewright_runtime::value::Value;
use tilewright_runtime::{Artifact, Function, Module};

use super::bad::fragile;
use super::*;
use crate::client::Remote;
use crate::endpoint::Access;

/// A model of a function `double`, which its server has.
pub(crate) fn doubling() -> Artifact {
    let value = |name: &str| ValueInfo::new(name, DType::F32, vec![4]);
    let step = Step {
        name: "double".into(),
        kind: StepKind::Packed { function: "double".into(), attributes: Default::default() },
        inputs: vec![ValueId(0)],
        outputs: vec![ValueId(1)],
    };
    let manifest = Manifest {
        model: "doubling".into(),
        producer: "a test".into(),
        isa_version: tilewright_hw::isa::ISA_VERSION,
        layout_version: tilewright_hw::layout::LAYOUT_VERSION,
        hardware: None,
        cpu: None,
        cuda: Vec::new(),
        values: vec![value("x"), value("y")],
        inputs: vec![ValueId(0)],
        outputs: vec![ValueId(1)],
        output_names: Vec::new(),
        counted: Vec::new(),
        steps: vec![step],
        about: Default::default(),
        nodes: Vec::new(),
        blobs: Vec::new(),
        parameters: None,
        variants: Vec::new(),
        open_inputs: Vec::new(),
        buckets: Vec::new(),
    };
    Artifact::new("doubling", manifest, Vec::new()).expect("is an artifact")
}

pub(crate) fn functions() -> Registry {
    let functions = Registry::new();
    functions.add(Function::new("double", |args| {
        let tensors = args.tensors(0)?;
        let doubled: Vec<f32> = tensors[0].to_f64().iter().map(|value| 2.0 * *value as f32).collect();
        Ok(Tensor::from_f32(tensors[0].shape.clone(), &doubled).expect("has as many").into())
    }));
    functions.add(Function::new("echo", |args| Ok(Value::List(args.values().to_vec()))));
    functions.add(Function::new("panic", |_| panic!("as it should")));
    functions.add(Function::new("adder", |args| {
        let more = *args.get::<i64>(0)?;
        Ok(Function::new("add", move |args| Ok((args.get::<i64>(0)? + more).into())).into())
    }));
    functions
}

/// A server with these functions and the functional simulator.
fn serving(limits: Limits) -> Running {
    let lends = Lends { functions: functions(), ..simulator(&small(), false, Arc::default()) };
    start(with_limits(limits), lends)
}

fn without_device(running: &Running) -> Remote {
    Remote::without_device(&endpoint(running).into(), &Access::default()).expect("a session")
}

fn call(module: &Module, name: &str, args: &[Value]) -> Result<Value, String> {
    let value = module.function(name).and_then(|function| function.call(args));
    value.map_err(|error| error.to_string())
}

fn upload(remote: &Remote, artifact: &Artifact) -> Result<Module, String> {
    remote.load("m.twa", artifact.encode().into(), &|_, _| ()).map_err(|error| error.to_string())
}

#[test]
fn functions_are_listed_and_called() {
    let running = serving(Limits::default());
    let remote = without_device(&running);
    assert_eq!(remote.module().names(), ["adder", "double", "echo", "load", "panic"]);
    let tensor = Tensor::from_f32(vec![3], &[1.0, 2.0, 3.0]).unwrap();
    let arguments = [
        1.into(),
        2.5.into(),
        "text".into(),
        Value::Bytes(Bytes::from(vec![7; 3 << 20])),
        Value::from_iter([("tensor", Value::Tensor(tensor.clone()))]),
        Value::List(vec![Value::None, tensor.into()]),
    ];
    let back = call(remote.module(), "echo", &arguments).expect("it returns");
    assert_eq!(format!("{back:?}"), format!("{:?}", Value::List(arguments.to_vec())));
    let at = endpoint(&running);
    assert_eq!(
        call(remote.module(), "none", &[]).unwrap_err(),
        format!(
            "remote:{at}: no function of the server of fsim is named none; there are: adder, double, echo, load, panic"
        )
    );
    assert_eq!(
        call(remote.module(), "adder", &["x".into()]).unwrap_err(),
        format!("remote:{at}: argument 0 of adder: it is a string where an integer is expected")
    );
    let panicked = call(remote.module(), "panic", &[]).unwrap_err();
    assert_eq!(panicked, format!("remote:{at}: panic panicked; see the log of the server"));
    // Functions that are returned are called there, too.
    let Value::Function(add) = call(remote.module(), "adder", &[40.into()]).unwrap() else { panic!("no function") };
    assert_eq!(add.call(&[2.into()]).unwrap().to_string(), "42");
    let foreign = call(remote.module(), "echo", &[Value::Function(add)]).unwrap_err();
    assert!(foreign.contains("function add is not of this server"), "{foreign}");
}

#[test]
fn an_artifact_is_uploaded_run_and_timed() {
    let running = serving(Limits::default());
    let remote = Remote::with_device(&endpoint(&running).into(), &Access::default(), None, Asked::default(), &|_| ())
        .expect("a session");
    assert_eq!(remote.device().map(|(name, config)| (name.as_str(), config.name.as_str())), Some(("fsim", "1x4x4")));
    let session = upload(&remote, &doubling()).expect("it is loaded");
    assert_eq!(session.kind(), "session");
    let x: Value = Tensor::from_f32(vec![4], &[1.0, 2.0, 3.0, 4.5]).unwrap().into();
    let Value::List(outputs) = call(&session, "run", std::slice::from_ref(&x)).unwrap() else { panic!("no list") };
    let Value::Tensor(y) = &outputs[0] else { panic!("no tensor") };
    assert_eq!(y.to_f64(), [2.0, 4.0, 6.0, 9.0]);
    let Value::Map(times) = call(&session, "time", &[5.into(), x]).unwrap() else { panic!("no map") };
    let Value::Tensor(seconds) = &times["seconds"] else { panic!("no tensor") };
    assert!(seconds.len() == 5 && seconds.to_f64().iter().all(|seconds| (0.0..1.0).contains(seconds)));
    let refused = call(&session, "time", &[0.into()]).unwrap_err();
    assert!(refused.contains("0 runs cannot be timed; ask for 1 to 1048576"), "{refused}");
}

#[test]
fn frames_that_nobody_waits_for_are_limited() {
    let running = serving(Limits::default());
    let remote = without_device(&running);
    let sessions = [(); 2].map(|()| upload(&remote, &doubling()).expect("it is loaded"));
    let x: Value = Tensor::from_f32(vec![4], &[1.0, 2.0, 3.0, 4.5]).unwrap().into();
    let submit = |index: usize| match call(&sessions[index % 2], "submit", std::slice::from_ref(&x))? {
        Value::Function(wait) => Ok(wait),
        other => Err(other.kind().to_string()),
    };
    let mut waits: Vec<Function> = (0..10).map(|index| submit(index).expect("there is room")).collect();
    let refused = submit(0).unwrap_err();
    assert!(refused.contains("10 frames were submitted and not waited for") && refused.contains("wait for one"));
    let last = waits.pop().expect("there are ten");
    let Value::List(outputs) = last.call(&[]).expect("it is finished") else { panic!("no list") };
    let Value::Tensor(y) = &outputs[0] else { panic!("no tensor") };
    assert_eq!(y.to_f64(), [2.0, 4.0, 6.0, 9.0]);
    let again = last.call(&[]).unwrap_err().to_string();
    assert!(again.contains("this frame was waited for already"), "{again}");
    waits.push(submit(1).expect("there is room for one"));
    submit(0).unwrap_err();
    // Those that are dropped make room.
    waits.clear();
    (0..10).for_each(|index| waits.push(submit(index).expect("there is room")));
}

#[test]
fn inputs_and_outputs_of_frames_are_limited_in_bytes() {
    // Two frames of four numbers in and out, of 4 bytes each.
    let running = serving(Limits { frames: 2 * 32 + 31, ..Limits::default() });
    let remote = without_device(&running);
    let sessions = [(); 2].map(|()| upload(&remote, &doubling()).expect("it is loaded"));
    let x: Value = Tensor::from_f32(vec![4], &[1.0; 4]).unwrap().into();
    let submit = |index: usize| call(&sessions[index], "submit", std::slice::from_ref(&x));
    let mut waits: Vec<Value> = (0..2).map(|index| submit(index).expect("there is room")).collect();
    let refused = submit(0).unwrap_err();
    let told = "m.twa has 32 bytes of inputs and outputs and the frames that were not waited for have 64, but the server allows 95; \
                wait for a frame, or raise its --max-frame-memory";
    assert!(refused.contains(told), "{refused}");
    let Some(Value::Function(wait)) = waits.pop() else { panic!("no function") };
    wait.call(&[]).expect("it is finished");
    waits.push(submit(1).expect("there is room for one"));
    submit(0).unwrap_err();
    waits.clear();
    (0..2).for_each(|index| waits.push(submit(index).expect("there is room")));
}

#[test]
fn frames_count_as_runs_and_stop_with_their_session() {
    let (functions, stopped) = (functions(), Arc::<AtomicUsize>::default());
    let count = stopped.clone();
    functions.add(Function::new("double", move |_| {
        while tilewright_hw::interrupt::check().is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        count.fetch_add(1, Ordering::SeqCst);
        Err("stopped".into())
    }));
    let lends = Lends { functions, ..simulator(&small(), false, Arc::default()) };
    let running = start(with_limits(Limits { run: Duration::from_millis(300), ..Limits::default() }), lends);
    let remote = without_device(&running);
    let session = upload(&remote, &doubling()).expect("it is loaded");
    let x: Value = Tensor::from_f32(vec![4], &[1.0; 4]).unwrap().into();
    let _frames = [(); 2].map(|()| call(&session, "submit", std::slice::from_ref(&x)).expect("it is submitted"));
    let begun = std::time::Instant::now();
    let ended = loop {
        assert!(begun.elapsed() < within(10), "the session goes on");
        match call(remote.module(), "echo", &[]) {
            Ok(_) => std::thread::sleep(Duration::from_millis(10)),
            Err(error) => break error,
        }
    };
    assert!(ended.contains("longer than its limit") && ended.contains("--max-seconds"), "{ended}");
    while stopped.load(Ordering::SeqCst) < 2 {
        assert!(begun.elapsed() < within(10), "the frames go on");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn what_cannot_run_is_refused_before_anything_is_used() {
    let running = serving(Limits { memory: 1 << 20, ..Limits::default() });
    let remote = without_device(&running);
    let artifact = doubling();
    let mut bytes = artifact.encode();
    let load = |bytes: &[u8]| {
        let loaded = remote.load("m.twa", Bytes::copy_from_slice(bytes), &|_, _| ());
        loaded.map(|_| ()).map_err(|error| error.to_string()).unwrap_err()
    };
    let last = bytes.len() - 1;
    assert!(load(&bytes[..last / 2]).contains("m.twa is damaged: it ends inside its manifest"));
    assert!(load(b"PK").contains("m.twa is not a Tilewright artifact"));
    bytes[70] ^= 1;
    assert!(load(&bytes).contains("m.twa is damaged: the manifest's checksum differs"));
    bytes[70] ^= 1;
    bytes[8] = 77;
    assert!(load(&bytes).contains("m.twa has format version 77, but this program has"));
    let too_many = load(&vec![0; 2 << 20]);
    assert!(too_many.contains("the call has more than 1048576 bytes, the limit of the server"), "{too_many}");
    let changed = |change: &dyn Fn(&mut Manifest)| {
        let mut manifest = artifact.manifest.clone();
        change(&mut manifest);
        load(&artifact.with_manifest(manifest).expect("is an artifact").encode())
    };
    let large = changed(&|manifest| manifest.values.iter_mut().for_each(|value| value.shape = vec![1 << 20]));
    assert!(large.contains("needs 8388608 bytes of memory") && large.contains("--max-memory"), "{large}");
    let unknown = changed(&|manifest| {
        manifest.steps[0].kind = StepKind::Packed { function: "none".into(), attributes: Default::default() };
    });
    assert!(unknown.contains("none"), "{unknown}");
    // The session goes on, and what was refused takes no memory.
    for _ in 0..100 {
        upload(&remote, &artifact).expect("it is loaded");
    }
}

#[test]
fn objects_are_released_and_those_of_others_unknown() {
    let running = serving(Limits::default());
    let (remote, other) = (without_device(&running), without_device(&running));
    for _ in 0..1500 {
        call(remote.module(), "adder", &[1.into()]).expect("there is room, because earlier ones are released");
    }
    let kept: Vec<_> = (0..1024).map_while(|_| call(remote.module(), "adder", &[1.into()]).ok()).collect();
    assert!((1000..=1024).contains(&kept.len()), "{}", kept.len());
    let full = call(remote.module(), "adder", &[1.into()]).unwrap_err();
    assert!(full.contains("the session has 1024 modules and functions of the server, its limit"), "{full}");
    let session = upload(&other, &doubling()).expect("it is loaded");
    let foreign = call(remote.module(), "echo", &[session.into()]).unwrap_err();
    assert!(foreign.contains("module m.twa is not of this server"), "{foreign}");
}

/// The same model, with a program of the accelerator that does nothing before it.
fn with_program() -> Artifact {
    let (config, artifact) = (small(), doubling());
    let program = AccelProgram {
        config_hash: config.hash(),
        isa_version: tilewright_hw::isa::ISA_VERSION,
        stream: Vec::new(),
        regions: vec![MemoryRegion { name: "constants".into(), role: Role::Params, bytes: 64 }],
        constants: Vec::new(),
        sections: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
    };
    let step = AccelStep {
        program,
        stream: BlobId(0),
        constants: BlobId(1),
        inputs: Vec::new(),
        outputs: Vec::new(),
        tensors: Vec::new(),
        layers: Vec::new(),
        runs: Vec::new(),
    };
    let step = Step { name: "nothing".into(), kind: StepKind::Accel(step), inputs: Vec::new(), outputs: Vec::new() };
    let hardware = Hardware { name: config.name.clone(), hash: config.hash(), toml: config.to_toml() };
    let steps = [&[step][..], &artifact.manifest.steps].concat();
    let manifest = Manifest { hardware: Some(hardware), steps, ..artifact.manifest };
    Artifact::new("m", manifest, vec![Vec::new(), vec![0; 64]]).expect("is an artifact")
}

#[test]
fn a_device_that_is_unplugged_under_an_uploaded_model_is_told_and_the_next_client_is_served() {
    let make = |config: &HwConfig, _: Asked, _: &dyn Fn(&str)| -> Result<Box<dyn Device>, DeviceError> {
        Ok(fragile(config, 9, "serial:/dev/ttyUSB1"))
    };
    let lends = Lends {
        disposable: false,
        open: Box::new(make),
        functions: functions(),
        ..simulator(&small(), false, Arc::default())
    };
    let running = start(loopback(), lends);
    for _ in 0..2 {
        let remote =
            Remote::with_device(&endpoint(&running).into(), &Access::default(), None, Asked::default(), &|_| ())
                .expect("a session");
        let session = upload(&remote, &with_program()).expect("it is loaded");
        let x: Value = Tensor::from_f32(vec![4], &[1.0; 4]).unwrap().into();
        let run = || call(&session, "run", std::slice::from_ref(&x));
        run().expect("the device still answers");
        let error = (0..20).find_map(|_| run().err()).expect("the device no longer answers");
        assert!(error.contains("serial:/dev/ttyUSB1: the board does not answer; plug it in"), "{error}");
        super::log::has(&[" WARN ", "serial:/dev/ttyUSB1: the board does not answer; plug it in"]);
        // Functions that need no device still answer.
        call(remote.module(), "echo", &[]).expect("the session goes on");
    }
    let without = without_device(&running);
    let session = upload(&without, &with_program()).unwrap_err();
    assert!(session.contains("nothing"), "{session}");
}

#[test]
fn a_client_that_is_gone_in_the_middle_of_an_upload_leaves_nothing() {
    let running = serving(Limits::default());
    for round in 0..3 {
        let mut raw = super::bad::Raw::new(&running);
        raw.open(|open| open.client = format!("half an upload {round}"));
        raw.until_opened();
        for _ in 0..8 {
            raw.send(crate::wire::request::Kind::Bulk(vec![3; crate::PIECE].into()));
        }
        drop(raw);
        let begun = std::time::Instant::now();
        let mut device = plain(&running);
        device.flush().expect("it has the device");
        assert!(begun.elapsed() < within(1), "{:?}", begun.elapsed());
        super::log::has(&[&format!("(half an upload {round}): "), ", after "]);
    }
}
