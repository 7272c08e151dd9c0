//! Calls that no program should make, in any order: each ends, with a status and a text, and none with a fault.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use tilewright_c::*;
use tilewright_runtime::dlpack::{DLDataType, DLDevice, DLManagedTensorVersioned, DLPackVersion, DLTensor};

use super::network;

/// Most values that exist at a time.
const VALUES: usize = 64;

/// Bytes to which every pointer to elements points.
const ROOM: usize = 1 << 16;

/// Time in which a call must end.
const HANG: Duration = Duration::from_secs(60);

/// Bytes of this process's memory.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("it is there");
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number") * 4096
}

struct Fuzz {
    random: SmallRng,
    /// Values that exist.
    values: Vec<tw_value>,
    /// Values that were freed.
    freed: Vec<tw_value>,
    room: Vec<u8>,
    artifact: Vec<u8>,
    path: CString,
    /// Calls by status.
    statuses: [u64; 7],
}

const NONE: tw_value = tw_value { kind: TW_NONE, reserved: 0, data: tw_payload { integer: 0 } };

/// Texts that mean something somewhere.
const TEXTS: [&str; 21] = [
    "",
    "csim",
    "fsim",
    "serial:",
    "serial:/dev/none@x",
    "spi:/dev/none",
    "uio:none",
    "remote:127.0.0.1:1",
    "remote:x",
    "tracker:127.0.0.1:1/k",
    "1x4x4",
    "1x8x8",
    "session",
    "inputs",
    "run",
    "report",
    "alloc",
    "write",
    "read",
    "step:0",
    "batch = 1\nblock_in = 4",
];

impl Fuzz {
    fn number(&mut self) -> i64 {
        match self.random.random_range(0..5) {
            0 => self.random.random_range(0..8),
            1 => self.random.random_range(-4..4096),
            2 => i64::MAX - self.random.random_range(0..4),
            3 => 1 << self.random.random_range(0..63),
            _ => self.random.random(),
        }
    }

    fn text(&mut self) -> CString {
        let text = match self.random.random_range(0..4) {
            0 => (0..self.random.random_range(0..20)).map(|_| self.random.random_range(1..=255)).collect(),
            1 => vec![b'x'; self.random.random_range(0..5000)],
            _ => TEXTS.choose(&mut self.random).expect("there are some").as_bytes().to_vec(),
        };
        CString::new(text).expect("it has no zero")
    }

    /// A value: one that exists, one that was freed, a number, or one that never was.
    fn value(&mut self) -> tw_value {
        let kind = self.random.random_range(0..12);
        match self.random.random_range(0..10) {
            0 => *self.freed.choose(&mut self.random).unwrap_or(&NONE),
            1 => tw_value { kind, reserved: self.random.random(), data: tw_payload { handle: self.random.random() } },
            2 => tw_value { kind: TW_INTEGER, reserved: 0, data: tw_payload { integer: self.number() } },
            3 => tw_value { kind, ..*self.values.choose(&mut self.random).unwrap_or(&NONE) },
            _ => *self.values.choose(&mut self.random).unwrap_or(&NONE),
        }
    }

    fn values(&mut self) -> Vec<tw_value> {
        (0..self.random.random_range(0..5)).map(|_| self.value()).collect()
    }

    fn dtype(&mut self) -> DLDataType {
        let code = *[0, 1, 2, 6, 77].choose(&mut self.random).expect("there are some");
        let bits = *[8, 16, 32, 64, 0, 7].choose(&mut self.random).expect("there are some");
        DLDataType { code, bits, lanes: if self.random.random_range(0..20) == 0 { 2 } else { 1 } }
    }

    /// A shape whose elements are all in the room, or so many that no memory has them.
    fn shape(&mut self) -> Vec<i64> {
        let mut shape: Vec<i64> = (0..self.random.random_range(0..5)).map(|_| self.random.random_range(0..6)).collect();
        if !shape.is_empty() && self.random.random_range(0..8) == 0 {
            let place = self.random.random_range(0..shape.len());
            shape[place] = if self.random.random() { -1 } else { i64::MAX };
            shape.iter_mut().for_each(|axis| *axis = if *axis == 0 { 1 } else { *axis });
        }
        if self.random.random_range(0..4) == 0 { vec![1, 1, 28, 28] } else { shape }
    }

    fn tensor(&mut self, shape: &mut [i64], strides: &mut Option<Vec<i64>>) -> DLTensor {
        if self.random.random_range(0..10) == 0 {
            *strides = Some(shape.iter().map(|_| self.random.random_range(-3..40)).collect());
        }
        let device_type = if self.random.random_range(0..20) == 0 { 2 } else { 1 };
        let null = self.random.random_range(0..20) == 0;
        DLTensor {
            data: if null { ptr::null_mut() } else { self.room.as_mut_ptr().cast() },
            device: DLDevice { device_type, device_id: 0 },
            ndim: shape.len() as i32,
            dtype: self.dtype(),
            shape: shape.as_mut_ptr(),
            strides: strides.as_mut().map_or(ptr::null_mut(), |strides| strides.as_mut_ptr()),
            byte_offset: 0,
        }
    }

    /// A pointer, or null now and then.
    fn maybe<T>(&mut self, pointer: *mut T) -> *mut T {
        if self.random.random_range(0..25) == 0 { ptr::null_mut() } else { pointer }
    }

    /// Counts a status. An error has a text, and none is a fault of the library.
    fn ends(&mut self, call: u32, status: tw_status) -> bool {
        assert!((TW_OK..TW_PANIC).contains(&status), "call {call}: {status}: {}", last());
        self.statuses[status as usize] += 1;
        assert!(status == TW_OK || !last().is_empty(), "call {call}: {status} without a text");
        status == TW_OK
    }

    fn free(&mut self, place: usize) {
        let value = self.values.swap_remove(place);
        assert_eq!(tw_value_free(value), TW_OK, "{}", last());
        if value.kind >= TW_STRING {
            assert_eq!(tw_value_free(value), TW_INVALID_HANDLE, "it was freed");
            self.freed.push(value);
            if self.freed.len() > VALUES {
                self.freed.swap_remove(0);
            }
        }
    }

    /// One call with arguments of every kind.
    fn call(&mut self, call: u32) {
        let mut made = NONE;
        let out = self.maybe(&raw mut made);
        let (name, other) = (self.text(), self.text());
        let (value, args) = (self.value(), self.values());
        let (mut length, mut data) = (0usize, ptr::null());
        let length_at = self.maybe(&raw mut length);
        let place = self.number() as usize;
        let c = |text: &CString| -> *const c_char { text.as_ptr() };
        let name_at = self.maybe(c(&name).cast_mut()).cast_const();
        // SAFETY: pointers are null or point to what the header says, and live until the call ends.
        let status = unsafe {
            match call {
                0 => tw_string_new(name_at, name.as_bytes().len(), out),
                1 => tw_bytes_new(name_at.cast(), name.as_bytes().len(), out),
                2 => tw_list_new(args.as_ptr(), args.len(), out),
                3 => {
                    let names: Vec<*const c_char> =
                        args.iter().map(|_| self.maybe(c(&name).cast_mut()).cast_const()).collect();
                    tw_map_new(names.as_ptr(), args.as_ptr(), args.len(), out)
                }
                4 => tw_value_copy(value, out),
                5 => tw_value_data(value, self.maybe(&raw mut data), length_at),
                6 => tw_value_length(value, length_at),
                7 => tw_value_item(value, place, out),
                8 => tw_value_named(value, name_at, out),
                9 => tw_value_names(value, out),
                10 => {
                    let (dtype, shape) = (self.dtype(), self.shape());
                    let room = self.room.as_mut_ptr();
                    tw_tensor_new(self.maybe(room).cast(), dtype, shape.as_ptr(), shape.len(), out)
                }
                11 => self.other_tensor(out),
                12 => {
                    let mut managed: *mut DLManagedTensorVersioned = ptr::null_mut();
                    let status = tw_tensor_to_dlpack(value, self.maybe(&raw mut managed));
                    if let Some(deleter) = managed.as_ref().and_then(|managed| managed.deleter) {
                        deleter(managed);
                    }
                    status
                }
                13 => {
                    let (mut dtype, mut shape, mut bytes) =
                        (DLDataType { code: 0, bits: 0, lanes: 0 }, [0i64; 8], 0usize);
                    let mut axes = self.random.random_range(0..=shape.len());
                    let (shape_at, axes_at) = (self.maybe(shape.as_mut_ptr()), self.maybe(&raw mut axes));
                    let (dtype_at, data_at) = (self.maybe(&raw mut dtype), self.maybe(&raw mut data));
                    tw_tensor_view(value, dtype_at, shape_at, axes_at, data_at, self.maybe(&raw mut bytes))
                }
                14 => tw_artifact_open(name_at, out),
                15 => tw_artifact_open(self.path.as_ptr(), out),
                16 => tw_artifact_open_with(self.path.as_ptr(), name_at, out),
                17 | 18 => {
                    let mut bytes = self.artifact.clone();
                    let place = self.random.random_range(0..bytes.len());
                    match self.random.random_range(0..4) {
                        0 => bytes[place] ^= 1 << self.random.random_range(0..8),
                        1 => bytes.truncate(place),
                        2 => bytes[place..].iter_mut().take(8).for_each(|byte| *byte = 0xff),
                        _ => {}
                    }
                    if call == 17 {
                        tw_artifact_open_bytes(bytes.as_ptr().cast(), bytes.len(), out)
                    } else {
                        let more = name.as_bytes();
                        tw_artifact_open_bytes_with(
                            bytes.as_ptr().cast(),
                            bytes.len(),
                            more.as_ptr().cast(),
                            more.len(),
                            out,
                        )
                    }
                }
                19 => tw_module_kind(value, out),
                20 => tw_module_functions(value, out),
                21 => tw_module_function(value, name_at, out),
                22 => tw_device_open(name_at, c(&other), out),
                23 => tw_session_open(value, self.value(), out),
                24 => {
                    let device = CString::new("fsim").expect("it has no zero");
                    let mut string = NONE;
                    tw_string_new(device.as_ptr(), 4, &raw mut string);
                    let status = tw_session_open(value, string, out);
                    tw_value_free(string);
                    status
                }
                25 => self.run(value),
                26 => {
                    let callback: tw_callback =
                        if self.random.random_range(0..20) == 0 { None } else { Some(callback) };
                    tw_function_new(name_at, callback, ptr::null_mut(), None, out)
                }
                27 => tw_function_call(value, args.as_ptr(), args.len(), out),
                28 => tw_function_find(name_at, out),
                29 => {
                    tw_function_unregister(c(&CString::new(format!("x{}", other.as_bytes().len())).expect("no zero")))
                }
                30 => {
                    tw_set_error(name_at);
                    TW_OK
                }
                31 => {
                    // Frees what may not exist; a value that does is freed below.
                    let stale = *self.freed.choose(&mut self.random).unwrap_or(&NONE);
                    tw_value_free(stale)
                }
                _ => {
                    // Registered under a name that no device has.
                    let name = CString::new(format!("x{}", other.as_bytes().len())).expect("it has no zero");
                    let mut function = NONE;
                    tw_function_new(name.as_ptr(), Some(callback), ptr::null_mut(), None, &raw mut function);
                    let status = tw_function_register(if self.random.random() { function } else { value });
                    tw_value_free(function);
                    status
                }
            }
        };
        if self.ends(call, status) && !out.is_null() && made.kind != TW_NONE {
            self.values.push(made);
        }
        while self.values.len() > VALUES || self.random.random_range(0..4) == 0 && !self.values.is_empty() {
            let place = self.random.random_range(0..self.values.len());
            self.free(place);
        }
    }

    /// A tensor of another program; it belongs to the library if it was taken.
    fn other_tensor(&mut self, out: *mut tw_value) -> tw_status {
        /// What the tensor needs.
        struct Owner {
            shape: Vec<i64>,
            strides: Option<Vec<i64>>,
            _data: Vec<u8>,
        }
        unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
            // SAFETY: both were leaked below, and the deleter is called once.
            unsafe {
                drop(Box::from_raw((*managed).manager_ctx.cast::<Owner>()));
                drop(Box::from_raw(managed));
            }
        }
        let mut owner = Box::new(Owner { shape: self.shape(), strides: None, _data: vec![0; ROOM] });
        let Owner { shape, strides, _data } = &mut *owner;
        let mut dl_tensor = self.tensor(shape, strides);
        if !dl_tensor.data.is_null() {
            dl_tensor.data = _data.as_mut_ptr().cast();
        }
        let version = DLPackVersion { major: if self.random.random_range(0..20) == 0 { 9 } else { 1 }, minor: 0 };
        let manager_ctx = Box::into_raw(owner).cast();
        let flags = self.random.random_range(0..4);
        let managed = Box::into_raw(Box::new(DLManagedTensorVersioned {
            version,
            manager_ctx,
            deleter: Some(delete),
            flags,
            dl_tensor,
        }));
        // SAFETY: it is valid, and is deleted once: by the library, or here if it was not taken.
        unsafe {
            let status = tw_tensor_from_dlpack(managed, out);
            if status != TW_OK {
                delete(managed);
            }
            status
        }
    }

    fn run(&mut self, session: tw_value) -> tw_status {
        let (mut shapes, mut strides) = ([vec![1, 1, 28, 28], vec![1, 10]], [None, None]);
        if self.random.random_range(0..4) == 0 {
            shapes = [self.shape(), self.shape()];
        }
        let [first, second] = &mut shapes;
        let [of_first, of_second] = &mut strides;
        let (input, mut output) = (self.tensor(first, of_first), self.tensor(second, of_second));
        let mut apart = vec![0u8; ROOM];
        if !output.data.is_null() {
            output.data = apart.as_mut_ptr().cast::<c_void>();
        }
        let counts = [self.random.random_range(0..2), self.random.random_range(0..2)];
        // SAFETY: both point to valid tensors, and the output does not overlap with the input.
        unsafe { tw_session_run(session, &raw const input, counts[0], &raw const output, counts[1]) }
    }
}

unsafe extern "C" fn callback(_: *mut c_void, args: *const tw_value, count: usize, result: *mut tw_value) -> tw_status {
    match count {
        0 => TW_FAILED,
        1 => TW_OK,
        // SAFETY: the library lends so many values, and the result can be written.
        2 => unsafe { tw_value_copy(*args, result) },
        _ => 99,
    }
}

fn last() -> String {
    // SAFETY: the text is valid until the next call on this thread.
    unsafe { CStr::from_ptr(tw_error()) }.to_string_lossy().into_owned()
}

/// Every call of the interface with arguments that are right and wrong, for SECONDS seconds or two.
#[test]
fn no_call_is_a_fault_of_the_library() {
    let seconds = tilewright_testing::asked("SECONDS").unwrap_or(2);
    let dir = tempfile::tempdir().expect("a folder");
    let [artifact, ..] = network(dir.path());
    let mut fuzz = Fuzz {
        random: SmallRng::seed_from_u64(tilewright_testing::asked("SEED").unwrap_or(1)),
        values: Vec::new(),
        freed: Vec::new(),
        room: vec![0; ROOM],
        artifact: std::fs::read(&artifact).expect("it was written"),
        path: CString::new(artifact.display().to_string()).expect("it has no zero"),
        statuses: [0; 7],
    };
    let (calls, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    let last_call = AtomicU64::new(0);
    let (mut early, begun) = (0, Instant::now());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut seen, mut since) = (0, Instant::now());
            while !ended.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
                let now = calls.load(Ordering::Relaxed);
                if now != seen {
                    (seen, since) = (now, Instant::now());
                }
                if since.elapsed() > HANG {
                    eprintln!("call {} hangs", last_call.load(Ordering::Relaxed));
                    std::process::abort();
                }
            }
        });
        // The watcher ends with this, also if an assertion fails.
        struct End<'a>(&'a AtomicBool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _end = End(&ended);
        while begun.elapsed() < Duration::from_secs(seconds) {
            let call = fuzz.random.random_range(0..33);
            last_call.store(call.into(), Ordering::Relaxed);
            fuzz.call(call);
            calls.fetch_add(1, Ordering::Relaxed);
            if early == 0 && begun.elapsed() > Duration::from_secs(seconds) / 3 {
                early = memory();
            }
        }
    });
    let late = memory();
    println!(
        "{} calls in {seconds} s; by status: {:?}; memory {} MB after a third, {} MB at the end",
        calls.into_inner(),
        fuzz.statuses,
        early >> 20,
        late >> 20
    );
    while !fuzz.values.is_empty() {
        fuzz.free(0);
    }
    for status in [TW_OK, TW_INVALID_ARGUMENT, TW_INVALID_HANDLE, TW_NOT_FOUND, TW_FAILED] {
        assert!(fuzz.statuses[status as usize] > 0, "no call ended with status {status}");
    }
    assert!(late < early + (64 << 20), "memory grew from {early} to {late} bytes");
}
