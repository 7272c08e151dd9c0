//! Registers and buffer in ordinary files: a folder plays the system, a thread plays the core.

use super::cache::Cache;
use super::error::SystemDeviceKind;
use super::find::FoundCore;
use super::interrupt::Interrupt;
use super::uio::{cannot_open, open_alone};
use super::*;
use memmap2::MmapRaw;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tilewright_hw::HwConfig;
use tilewright_hw::device::{Base, Command, Device, DeviceError};
use tilewright_hw::host::{Registers, WrongHardware};
use tilewright_hw::isa::ISA_VERSION;
use tilewright_hw::peripheral::{Peripheral, WINDOW_BYTES};
use tilewright_hw::regs;
use tilewright_sim::Fsim;
use tilewright_sim::random::{FaultKind, MEMORY_BYTES, generate, plant};

const BUFFER_ADDR: u64 = 0x1e90_0000;
const BUFFER_BYTES: u64 = 2 * MEMORY_BYTES;

fn config() -> HwConfig {
    HwConfig::parse("wide", include_str!("../../tests/peripheral/wide.toml")).expect("is a configuration")
}

/// A system with one core and its buffer.
struct System(TempDir);

impl System {
    fn new(config: &HwConfig) -> System {
        let system = System(tempfile::tempdir().expect("a folder"));
        // Another device next to it.
        system.put("sys/class/uio/uio0/name", "pl-timer\n");
        system.put("sys/class/uio/uio1/name", "tilewright\n");
        system.put("sys/class/uio/uio1/maps/map0/addr", "0x43c00000\n");
        system.put("sys/class/uio/uio1/maps/map0/size", "0x1000\n");
        system.put("sys/class/uio/uio1/maps/map0/offset", "0x0\n");
        system.put("sys/class/u-dma-buf/tilewright/phys_addr", &format!("{BUFFER_ADDR:#018x}\n"));
        system.put("sys/class/u-dma-buf/tilewright/size", &format!("{BUFFER_BYTES}\n"));
        system.put("sys/class/u-dma-buf/tilewright/dma_coherent", "0\n");
        system.put("sys/class/u-dma-buf/tilewright/sync_for_cpu", "");
        system.put("sys/class/u-dma-buf/tilewright/sync_for_device", "");
        system.put("dev/uio1", "");
        system.put("dev/tilewright", "");
        let mut registers = vec![0u8; WINDOW_BYTES as usize];
        let hash = config.hash();
        for (register, value) in [
            (regs::ID, regs::ID_VALUE),
            (regs::ISA_VERSION, ISA_VERSION),
            (regs::CONFIG_HASH_LO, hash as u32),
            (regs::CONFIG_HASH_HI, (hash >> 32) as u32),
        ] {
            registers[register as usize..][..4].copy_from_slice(&value.to_ne_bytes());
        }
        fs::write(system.path("dev/uio1"), registers).expect("a file");
        fs::write(system.path("dev/tilewright"), vec![0; BUFFER_BYTES as usize]).expect("a file");
        system
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.root().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn remove(&self, name: &str) {
        fs::remove_dir_all(self.path(name)).or_else(|_| fs::remove_file(self.path(name))).expect("it was there");
    }

    fn find(&self) -> Result<FoundCore, PeripheralError> {
        find(self.root(), &Names::default())
    }

    fn fault(&self) -> Fault {
        self.find().expect_err("something is missing").fault
    }

    /// Offset and size of each range that was written to one of the buffer's files.
    fn told(&self, file: &str) -> Vec<(u64, u64)> {
        let text = fs::read_to_string(self.path("sys/class/u-dma-buf/tilewright").join(file)).expect("a file");
        let range = |line: &str| {
            let command = u64::from_str_radix(line.strip_prefix("0x").expect("hexadecimal"), 16).expect("a number");
            assert_eq!(command & 0xf, 1, "both directions, and the bit that asks for it");
            (command >> 32, command & 0xffff_fff0)
        };
        text.lines().map(range).collect()
    }
}

/// A core whose registers and buffer are files: it waits for the doorbell and runs the command on the functional
/// simulator.
struct Core {
    config: HwConfig,
    registers: MmapRaw,
    buffer: MmapRaw,
    interrupt: UnixStream,
    enabled: bool,
}

impl Core {
    fn reg(&self, addr: u32) -> *mut u32 {
        self.registers.as_mut_ptr().wrapping_add(addr as usize).cast()
    }

    fn get(&self, addr: u32) -> u32 {
        // SAFETY: the register is inside the map, and aligned.
        unsafe { self.reg(addr).read_volatile() }
    }

    fn set(&self, addr: u32, value: u32) {
        // SAFETY: as for reading.
        unsafe { self.reg(addr).write_volatile(value) }
    }

    fn wide(&self, addr: u32) -> u64 {
        u64::from(self.get(addr)) | u64::from(self.get(addr + 4)) << 32
    }

    /// Runs commands until the other end of the interrupt is gone.
    fn serve(mut self) {
        self.interrupt.set_read_timeout(Some(Duration::from_millis(1))).expect("a time");
        while self.hears() {
            if self.get(regs::DOORBELL) != 0 {
                self.set(regs::DOORBELL, 0);
                self.run();
                // The interrupt was enabled before the doorbell was written.
                if !self.enabled {
                    self.hears();
                }
                assert!(self.enabled);
                self.enabled = false;
                self.interrupt.write_all(&1u32.to_ne_bytes()).expect("somebody waits");
            }
        }
    }

    /// Reads the interrupt's file, and returns whether the other end is still open.
    fn hears(&mut self) -> bool {
        let mut word = [0; 4];
        match self.interrupt.read(&mut word) {
            Ok(0) => return false,
            Ok(_) => self.enabled |= u32::from_ne_bytes(word) == 1,
            Err(_) => {}
        }
        true
    }

    fn run(&self) {
        let bases = (0..self.config.bases)
            .map(|index| regs::BASE + 16 * index)
            .map(|at| (self.wide(at), self.wide(at + 8)))
            .map(|(addr, limit)| Base { addr: addr.saturating_sub(BUFFER_ADDR), limit })
            .collect();
        let stream_addr = self.wide(regs::STREAM_ADDR_LO) - BUFFER_ADDR;
        let command = Command { stream_addr, insns: self.get(regs::STREAM_INSNS), bases, cycle_limit: None };
        // SAFETY: the host does not touch the buffer while a command runs.
        let buffer = unsafe { std::slice::from_raw_parts_mut(self.buffer.as_mut_ptr(), BUFFER_BYTES as usize) };
        let mut fsim = Fsim::new(self.config.clone(), BUFFER_BYTES);
        fsim.write(0, buffer).expect("inside memory");
        let report = fsim.run(&command).expect("a report");
        fsim.read(0, buffer).expect("inside memory");
        self.set(regs::STATUS, if report.trap.is_some() { regs::STATUS_TRAPPED } else { 0 });
        if let Some(trap) = report.trap {
            self.set(regs::TRAP_CAUSE, trap.cause as u32);
            self.set(regs::TRAP_UNIT, trap.unit as u32);
            self.set(regs::TRAP_ORDINAL, trap.ordinal);
        }
        for (unit, retired) in report.retired.into_iter().enumerate() {
            self.set(regs::RETIRED + 4 * unit as u32, retired);
        }
        self.set(regs::CYCLES_LO, 1234);
    }
}

/// The system's core as a device, and a thread that plays the core.
fn device(system: &System, config: &HwConfig) -> PeripheralDevice<Uio> {
    let found = system.find().expect("it is there");
    let (host, core) = UnixStream::pair().expect("a pair");
    let file = |name| File::options().read(true).write(true).open(system.path(name)).expect("a file");
    let core = Core {
        config: config.clone(),
        registers: MmapRaw::map_raw(&file("dev/uio1")).expect("a map"),
        buffer: MmapRaw::map_raw(&file("dev/tilewright")).expect("a map"),
        interrupt: core,
        enabled: false,
    };
    std::thread::spawn(move || core.serve());
    let uio = Uio::of_files(found, &file("dev/uio1"), OwnedFd::from(host).into()).expect("files");
    PeripheralDevice::open(uio, config.clone(), PeripheralOptions::default()).expect("a core")
}

#[test]
fn programs_run_through_maps_and_files() {
    let config = config();
    let system = System::new(&config);
    let mut device = device(&system, &config);
    assert_eq!((device.name(), device.memory_bytes()), ("uio:tilewright", BUFFER_BYTES));
    let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
    for seed in 0..4 {
        let program = generate(&config, seed, 12);
        let [found, expected] = [&mut device as &mut dyn Device, &mut fsim].map(|device| {
            program.install(device).expect("inside memory");
            let report = device.run(&program.command()).expect("a report");
            let mut bytes = vec![0; MEMORY_BYTES as usize];
            device.read(0, &mut bytes).expect("inside memory");
            (report.trap, report.retired, report.macs, bytes)
        });
        assert!(found == expected, "seed {seed}: {:?}, not {:?}", found.1, expected.1);
    }
    assert_eq!(device.interrupts(), Interrupts { came: 4, missed: 0 });
    let fault = plant(&config, FaultKind::Opcode, 1).expect("a fault");
    fault.program.install(&mut device).expect("inside memory");
    let trap = device.run(&fault.program.command()).expect("a report").trap.expect("a trap");
    assert_eq!((trap.unit, trap.cause, trap.ordinal), {
        let expected = fault.expected;
        (expected.unit, expected.cause, expected.ordinal)
    });
}

#[test]
fn caches_are_told_of_whole_lines_around_what_is_copied() {
    let config = config();
    let system = System::new(&config);
    let mut uio = Uio::open(system.root(), &Names::default()).expect("it is there");
    uio.write_buffer(0x1234, &[7; 100]).expect("inside");
    assert_eq!(system.told("sync_for_cpu"), [(0x1200, 0xc0)]);
    assert_eq!(system.told("sync_for_device"), [(0x1200, 0xc0)]);
    let mut bytes = [0; 3];
    uio.read_buffer(0x1232, &mut bytes).expect("inside");
    assert_eq!(bytes, [0, 0, 7]);
    assert_eq!(system.told("sync_for_cpu")[1..], [(0x1200, 0x40)]);
    uio.read_buffer(BUFFER_BYTES - 1, &mut [0]).expect("inside");
    assert_eq!(system.told("sync_for_cpu")[2..], [(BUFFER_BYTES - 64, 0x40)]);
    uio.write_buffer(0, &[]).expect("nothing is copied");
    let error = uio.read_buffer(BUFFER_BYTES - 1, &mut [0; 2]).expect_err("passes the end");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    drop(uio);
    let lines = system.told("sync_for_cpu").len();
    // Coherent memory needs no maintenance, and no file for it.
    system.put("sys/class/u-dma-buf/tilewright/dma_coherent", "1\n");
    let mut uio = Uio::open(system.root(), &Names::default()).expect("it is there");
    uio.write_buffer(0, &[1]).expect("inside");
    assert_eq!(system.told("sync_for_cpu").len(), lines);
}

#[test]
fn registers_are_words_of_the_window() {
    let config = config();
    let system = System::new(&config);
    system.put("sys/class/uio/uio1/maps/map0/size", "0x2000\n");
    system.put("sys/class/uio/uio1/maps/map0/offset", "0x800\n");
    let mut window = vec![0; 0x800];
    window.extend(fs::read(system.path("dev/uio1")).expect("a file"));
    fs::write(system.path("dev/uio1"), &window).expect("a file");
    let mut uio = Uio::open(system.root(), &Names::default()).expect("it is there");
    assert_eq!(uio.read_reg(regs::ID).expect("a register"), regs::ID_VALUE);
    uio.write_reg(regs::STREAM_INSNS, 0x1234_5678).expect("a register");
    for wrong in [WINDOW_BYTES as u32, 2] {
        assert!(uio.read_reg(wrong).is_err() && uio.write_reg(wrong, 0).is_err());
    }
    let bytes = fs::read(system.path("dev/uio1")).expect("a file");
    assert_eq!(bytes[0x820..0x824], 0x1234_5678u32.to_ne_bytes());
}

#[test]
fn what_is_missing_is_named_with_what_to_do() {
    let config = config();
    let system = System::new(&config);
    assert_eq!(system.find().expect("it is there").registers.addr, 0x43c0_0000);
    let by_file = Names { uio: "uio1".into(), ..Names::default() };
    assert_eq!(find(system.root(), &by_file).expect("it is there").uio, "uio1");

    let named = |uio: &str, buffer: &str| Names { uio: uio.into(), buffer: buffer.into() };
    let error = find(system.root(), &named("tilewrite", "tilewright")).expect_err("has another name").to_string();
    let expected = "uio:tilewrite@tilewright: no UIO device is named tilewrite; name the device as the device tree does; \
                    there are pl-timer (uio0), tilewright (uio1)";
    assert_eq!(error, expected);
    for buffer in ["udmabuf0", "", "..", "../uio"] {
        let fault = find(system.root(), &named("tilewright", buffer)).expect_err("has another name").fault;
        assert!(matches!(fault, Fault::NoDevice { kind: SystemDeviceKind::Buffer, .. }), "{fault}");
        assert!(fault.remedy().contains("there are tilewright"), "{}", fault.remedy());
    }

    system.put("sys/class/uio/uio0/name", "tilewright\n");
    let fault = system.fault();
    assert_eq!(fault.to_string(), "uio0, uio1 are all named tilewright");
    assert_eq!(fault.remedy(), "use one of them: uio:uio0");
    system.put("sys/class/uio/uio0/name", "pl-timer\n");

    system.put("sys/class/uio/uio1/maps/map0/size", "0x800\n");
    assert_eq!(system.fault(), Fault::Window { found: 0x800, needed: 0x1000 });
    system.put("sys/class/uio/uio1/maps/map0/size", "4 KiB\n");
    let fault = system.fault().to_string();
    assert!(fault.ends_with("sys/class/uio/uio1/maps/map0/size contains \"4 KiB\", which is not a number"), "{fault}");
    system.put("sys/class/uio/uio1/maps/map0/size", "0x1000\n");

    system.remove("sys/class/u-dma-buf/tilewright");
    assert!(matches!(
        system.fault(),
        Fault::NoDevice { kind: SystemDeviceKind::Buffer, ref there_are, .. } if there_are.is_empty()
    ));
    system.remove("sys/class/u-dma-buf");
    let fault = system.fault();
    assert!(
        fault.to_string().starts_with("there are no u-dma-buf buffers: ")
            && fault.to_string().ends_with(" does not exist"),
        "{fault}"
    );
    assert!(fault.remedy().contains("modprobe u-dma-buf"), "{}", fault.remedy());
    system.remove("sys/class/uio");
    let fault = system.fault();
    assert!(
        fault.to_string().starts_with("there are no UIO devices: ") && fault.to_string().ends_with(" does not exist"),
        "{fault}"
    );
    assert!(fault.remedy().contains("modprobe uio_pdrv_genirq of_id=generic-uio"), "{}", fault.remedy());
}

#[test]
fn files_that_cannot_be_opened_are_named() {
    let config = config();
    let system = System::new(&config);
    let opened = || Uio::open(system.root(), &Names::default());
    let first = opened().expect("it is there");
    let error = opened().expect_err("it is in use").to_string();
    assert!(error.contains("another program uses ") && error.contains("dev/uio1; wait until it has ended"), "{error}");
    drop(first);
    // Two cores do not share a buffer.
    let held = open_alone(&system.path("dev/tilewright")).expect("it is free");
    let error = opened().expect_err("it is in use").to_string();
    assert!(error.contains("dev/tilewright; wait"), "{error}");
    drop(held);
    assert!(opened().is_ok());

    system.remove("sys/class/u-dma-buf/tilewright/sync_for_device");
    let found = system.find().expect("it is there");
    assert!(matches!(Cache::of(&found.buffer), Err(Fault::Open { path, .. }) if path.ends_with("sync_for_device")));
    system.remove("dev/uio1");
    let error = opened().expect_err("it is gone").to_string();
    assert!(error.contains("dev/uio1 cannot be opened: No such file"), "{error}");
    let denied = cannot_open(Path::new("/dev/uio1"), &io::ErrorKind::PermissionDenied.into());
    assert_eq!(denied.to_string(), "/dev/uio1 cannot be opened: permission denied");
    assert!(denied.remedy().contains("udev rule"));
}

#[test]
fn a_core_that_is_another_is_not_used() {
    let config = config();
    let system = System::new(&config);
    let other = HwConfig { queue_depth: 8, name: "other".into(), ..config.clone() };
    let uio = Uio::open(system.root(), &Names::default()).expect("it is there");
    let before = fs::read(system.path("dev/uio1")).expect("a file");
    let error = PeripheralDevice::open(uio, other, PeripheralOptions::default()).expect_err("it is another");
    assert!(matches!(error.fault, Fault::Wrong(WrongHardware::Config { .. })), "{error}");
    assert!(fs::read(system.path("dev/uio1")).expect("a file") == before, "nothing was written");
    // A device without an identity.
    system.put("dev/uio1", &"\0".repeat(WINDOW_BYTES as usize));
    let uio = Uio::open(system.root(), &Names::default()).expect("it is there");
    let error = PeripheralDevice::open(uio, config, PeripheralOptions::default()).expect_err("it is none");
    assert!(
        error.to_string().contains("the register ID is 0x00000000, which is not a Tilewright accelerator's"),
        "{error}"
    );
}

#[test]
fn an_interrupt_is_waited_for_no_longer_than_it_may_take() {
    let (host, mut core) = UnixStream::pair().expect("a pair");
    let mut interrupt = Interrupt(File::from(OwnedFd::from(host)));
    interrupt.enable().expect("somebody reads");
    let mut word = [0; 4];
    core.read_exact(&mut word).expect("a word");
    assert_eq!(u32::from_ne_bytes(word), 1);
    let begun = Instant::now();
    assert!(!interrupt.wait(Duration::from_millis(20)).expect("a wait"));
    assert!(begun.elapsed() >= Duration::from_millis(20));
    core.write_all(&7u32.to_ne_bytes()).expect("a word");
    assert!(interrupt.wait(Duration::from_secs(10)).expect("an interrupt"));
    assert!(!interrupt.wait(Duration::ZERO).expect("a wait"));
    drop(core);
    // A device without an interrupt answers a read with an error.
    assert!(interrupt.wait(Duration::from_secs(10)).is_err());
}

#[test]
fn a_core_whose_interrupt_cannot_be_waited_for_is_told() {
    let config = config();
    let system = System::new(&config);
    let (host, core) = UnixStream::pair().expect("a pair");
    let file = File::options().read(true).write(true).open(system.path("dev/uio1")).expect("a file");
    let found = system.find().expect("it is there");
    let uio = Uio::of_files(found, &file, OwnedFd::from(host).into()).expect("files");
    let mut device = PeripheralDevice::open(uio, config, PeripheralOptions::default()).expect("a core");
    drop(core);
    let outcome = device.run(&Command { bases: vec![Base { addr: 0, limit: 16 }], ..Command::default() });
    let Err(DeviceError::Tool { tool, reason, remedy }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(tool, "uio:tilewright");
    assert!(reason.starts_with("cannot wait for its interrupt: "), "{reason}");
    assert!(remedy.contains("(interrupts)"), "{remedy}");
}
