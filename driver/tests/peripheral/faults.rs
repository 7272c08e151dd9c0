//! Cores that do not answer, answer late, or are of another configuration.

use super::programs::{memory, run};
use super::{OPTIONS, axi, config, configs, device, options};
use std::io;
use std::time::Duration;
use tilewright_driver::peripheral::{Fault, PeripheralDevice, PeripheralOptions};
use tilewright_driver::{Builder, DriverError, Role, run_program};
use tilewright_hw::HwConfig;
use tilewright_hw::device::{Command, Device, DeviceError};
use tilewright_hw::host::{Registers, WrongHardware};
use tilewright_hw::isa::ISA_VERSION;
use tilewright_hw::peripheral::Peripheral;
use tilewright_hw::regs;
use tilewright_sim::Fsim;
use tilewright_sim::axi::{Axi, AxiOptions};
use tilewright_sim::random::{MEMORY_BYTES, generate};

/// A peripheral whose interrupts are lost, or whose registers read wrong.
struct Disturbed {
    axi: Axi,
    /// No interrupt reaches the host.
    is_deaf: bool,
    /// A register that reads as another value.
    lies: Option<(u32, u32)>,
}

impl Registers for Disturbed {
    type Error = io::Error;

    fn read_reg(&mut self, addr: u32) -> io::Result<u32> {
        let value = self.axi.read_reg(addr)?;
        Ok(self.lies.filter(|(register, _)| *register == addr).map_or(value, |(_, value)| value))
    }

    fn write_reg(&mut self, addr: u32, value: u32) -> io::Result<()> {
        self.axi.write_reg(addr, value)
    }
}

impl Peripheral for Disturbed {
    fn name(&self) -> &str {
        "a disturbed peripheral"
    }

    fn buffer_addr(&self) -> u64 {
        self.axi.buffer_addr()
    }

    fn buffer_bytes(&self) -> u64 {
        self.axi.buffer_bytes()
    }

    fn read_buffer(&mut self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.axi.read_buffer(at, bytes)
    }

    fn write_buffer(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.axi.write_buffer(at, bytes)
    }

    fn enable_interrupt(&mut self) -> io::Result<()> {
        self.axi.enable_interrupt()
    }

    fn wait_for_interrupt(&mut self, timeout: Duration) -> io::Result<bool> {
        Ok(self.axi.wait_for_interrupt(timeout)? && !self.is_deaf)
    }

    fn now(&self) -> Duration {
        self.axi.now()
    }
}

fn disturbed(config: &HwConfig) -> Option<Disturbed> {
    Some(Disturbed { axi: axi(config, &options(config))?, is_deaf: false, lies: None })
}

fn refused<P: Peripheral>(peripheral: P, config: HwConfig) -> Fault {
    PeripheralDevice::open(peripheral, config, OPTIONS).err().expect("is not opened").fault
}

#[test]
fn other_hardware_is_told() {
    let config = config();
    let Some(peripheral) = disturbed(&config) else { return };
    let other = HwConfig { queue_depth: 4, name: "other".into(), ..config.clone() };
    let expected = WrongHardware::Config { found: config.hash(), asked: other.hash(), name: "other".into() };
    assert_eq!(refused(peripheral, other), expected.into());
    for (register, expected) in [
        (regs::ID, WrongHardware::NoAccelerator { found: 7 }),
        (regs::ISA_VERSION, WrongHardware::Isa { found: 7, known: ISA_VERSION }),
    ] {
        let Some(peripheral) = disturbed(&config) else { return };
        let lies = Some((register, 7));
        assert_eq!(refused(Disturbed { lies, ..peripheral }, config.clone()), expected.into());
    }
}

#[test]
fn a_buffer_that_addresses_do_not_reach_is_told() {
    let config = config();
    let buffer_addr = config.last_address() + 1 - MEMORY_BYTES;
    let surroundings = AxiOptions { buffer_addr, buffer_bytes: MEMORY_BYTES + 0x1000, ..AxiOptions::default() };
    let Some(peripheral) = axi(&config, &surroundings) else { return };
    let fault = refused(peripheral, config);
    assert!(matches!(fault, Fault::OutOfReach { from: 0xc0000, to: 0x100fff, last: 0xfffff, .. }), "{fault}");
    assert_eq!(fault.remedy(), "build the bitstream of a configuration with offset_bits = 21 or more");
}

#[test]
fn a_program_that_the_buffer_is_too_small_for_is_refused_with_sizes() {
    let config = config();
    let surroundings = AxiOptions { buffer_bytes: 0x4000, answering_bytes: None, ..options(&config) };
    let Some(peripheral) = axi(&config, &surroundings) else { return };
    let mut device = device(peripheral, &config);
    let mut builder = Builder::new(&config).expect("tokens that hold");
    builder.region("tensors", Role::Scratch, 0x5000).expect("a base");
    let program = builder.finish().expect("a program");
    let no_inputs: [&[u8]; 0] = [];
    let error = run_program(&mut device, &program, &no_inputs).expect_err("it does not fit");
    let text = error.to_string();
    assert!(matches!(error, DriverError::DoesNotFit { size: 0x4000, .. }), "{text}");
    assert!(text.contains("of the device's 16384 bytes") && text.contains("tensors 20480"), "{text}");
}

#[test]
fn a_command_that_takes_too_many_cycles_is_given_up() {
    for config in configs() {
        let Some(peripheral) = axi(&config, &options(&config)) else { return };
        let mut device = device(peripheral, &config);
        let program = generate(&config, 3, 24);
        program.install(&mut device).expect("inside memory");
        let cycles = device.run(&program.command()).expect("a report").cycles;
        for limit in [1, 100, cycles.expect("it knows time") - 1] {
            let outcome = device.run(&Command { cycle_limit: Some(limit), ..program.command() });
            assert!(matches!(outcome, Err(DeviceError::CycleLimit { limit: told }) if told == limit), "{outcome:?}");
        }
        let outcome = device.run(&Command { cycle_limit: cycles, ..program.command() });
        assert_eq!(outcome.expect("it ends").cycles, cycles);
    }
}

#[test]
fn a_command_that_takes_too_long_is_given_up_and_the_next_one_runs() {
    let config = config();
    let Some(peripheral) = axi(&config, &options(&config)) else { return };
    let short = PeripheralOptions { command: Duration::from_micros(20), poll: Duration::from_micros(10), ..OPTIONS };
    let mut device = PeripheralDevice::open(peripheral, config.clone(), short).expect("the core answers");
    let program = generate(&config, 3, 24);
    program.install(&mut device).expect("inside memory");
    // The slow command is still running when its time is over.
    device.peripheral_mut().set_pressure(12);
    let error = device.run(&program.command()).expect_err("it takes longer").to_string();
    assert!(error.contains("a command did not end within 20µs and was stopped in cycle"), "{error}");
    assert!(error.contains("run again with a limit (run --max-cycles)"), "{error}");
    let mut device = super::device(device.into_peripheral(), &config);
    device.peripheral_mut().set_pressure(0);
    let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
    for device in [&mut device as &mut dyn Device, &mut fsim] {
        assert_eq!(run(device, &program).expect("a report").trap, None);
    }
    assert!(memory(&mut device) == memory(&mut fsim));
}

#[test]
fn a_memory_that_never_answers_is_told_until_it_answers_again() {
    let config = config();
    let Some(peripheral) = axi(&config, &options(&config)) else { return };
    let mut device = device(peripheral, &config);
    let program = generate(&config, 5, 12);
    program.install(&mut device).expect("inside memory");
    device.peripheral_mut().set_pressure(16);
    for _ in 0..2 {
        let error = device.run(&program.command()).expect_err("nothing passes").to_string();
        assert!(error.contains("the core does not come back from a reset"), "{error}");
        assert!(error.contains("connects and clocks the memory port"), "{error}");
    }
    device.peripheral_mut().set_pressure(3);
    assert_eq!(run(&mut device, &program).expect("a report").trap, None);
}

#[test]
fn interrupts_that_do_not_come_are_counted_and_the_status_is_looked_at() {
    let config = config();
    let Some(peripheral) = disturbed(&config) else { return };
    let mut device = device(Disturbed { is_deaf: true, ..peripheral }, &config);
    let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
    for seed in 0..2 {
        let program = generate(&config, seed, 12);
        for device in [&mut device as &mut dyn Device, &mut fsim] {
            assert_eq!(run(device, &program).expect("a report").trap, None);
        }
        assert!(memory(&mut device) == memory(&mut fsim), "seed {seed}");
    }
    assert_eq!((device.interrupts().came, device.interrupts().missed), (0, 2));
}

#[test]
fn what_another_program_left_running_is_ended() {
    let config = config();
    let Some(peripheral) = axi(&config, &options(&config)) else { return };
    let mut first = device(peripheral, &config);
    let program = generate(&config, 3, 24);
    program.install(&mut first).expect("inside memory");
    first.submit(&program.command()).expect("a ticket");
    let mut peripheral = first.into_peripheral();
    assert_ne!(peripheral.read_reg(regs::STATUS).expect("an answer") & regs::STATUS_BUSY, 0);
    let mut device = device(peripheral, &config);
    assert!(device.peripheral().is_idle());
    let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
    for device in [&mut device as &mut dyn Device, &mut fsim] {
        assert_eq!(run(device, &program).expect("a report").trap, None);
    }
    assert!(memory(&mut device) == memory(&mut fsim));
}
