//! Boards whose link is SPI: the driver's bytes go through a master to the pins of the Verilated shell.

use super::programs::{memory, run};
use super::{OPTIONS, config, device, with_memory};
use std::io;
use std::time::Duration;
use tilewright_driver::link::{Fault, LinkDevice, LinkOptions};
use tilewright_hw::device::Device;
use tilewright_hw::link::{ByteStream, SPI_CLOCKS, SpiBytes, SpiMaster};
use tilewright_shell::ShellMemory;
use tilewright_sim::Fsim;
use tilewright_sim::board::{LinkPins, VirtualBoard};
use tilewright_sim::random::{MEMORY_BYTES, generate};

fn link(clocks_per_bit: u32) -> LinkPins {
    LinkPins::Spi { clocks_per_bit }
}

#[test]
fn random_programs_give_what_the_functional_simulator_gives() {
    let config = config();
    for clocks in [SPI_CLOCKS, 11] {
        let Some(board) = with_memory(&config, link(clocks), ShellMemory::Host) else { return };
        let mut device = device(board, &config);
        let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
        for seed in 0..6 {
            let program = generate(&config, seed, 12);
            let expected = run(&mut fsim, &program).expect("a report");
            let found = run(&mut device, &program).unwrap_or_else(|error| panic!("{clocks}, seed {seed}: {error}"));
            assert_eq!((found.trap, found.retired, found.macs), (None, expected.retired, expected.macs), "seed {seed}");
            assert!(memory(&mut device) == memory(&mut fsim), "seed {seed}\n{}", program.text());
        }
        assert_eq!(device.retries(), 0);
    }
}

#[test]
fn memory_on_the_board_is_reached() {
    let config = config();
    let Some(board) = with_memory(&config, link(SPI_CLOCKS), ShellMemory::BlockRam { kib: 16 }) else { return };
    let mut device = device(board, &config);
    assert_eq!(device.memory_bytes(), 16 << 10);
    // Includes zeros and ones, which mean nothing between frames.
    let bytes: Vec<u8> = [vec![0; 5000], vec![0xff; 5000], (0..=255).collect()].concat();
    device.write(3, &bytes).expect("inside memory");
    let mut found = vec![7; bytes.len()];
    device.read(3, &mut found).expect("inside memory");
    assert!(found == bytes);
}

#[test]
fn a_clock_that_is_too_fast_is_told() {
    let config = config();
    for clocks in [2, 4] {
        let Some(board) = with_memory(&config, link(clocks), ShellMemory::Host) else { return };
        let fault = LinkDevice::open(board, config.clone(), OPTIONS).err().expect("is not opened").fault;
        assert!(matches!(fault, Fault::Garbage { .. } | Fault::Silent { .. }), "{clocks}: {fault}");
        assert!(fault.remedy().contains("bitstream"), "{}", fault.remedy());
    }
}

/// What a master receives instead of the board's bytes.
#[derive(Debug, Clone, Copy)]
enum Heard {
    /// A constant level, because the wire is disconnected.
    Level(u8),
    /// In one exchange, each bit is one place late.
    Late,
}

/// A board whose wires fail from some byte on.
struct Wires {
    board: VirtualBoard,
    harm: Option<(usize, Heard)>,
}

impl SpiMaster for Wires {
    fn exchange(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.board.exchange(bytes)?;
        let Some((at, heard)) = &mut self.harm else { return Ok(()) };
        let from = (*at).min(bytes.len());
        *at -= from;
        let bytes = &mut bytes[from..];
        match *heard {
            Heard::Level(level) => bytes.fill(level),
            Heard::Late if bytes.is_empty() => {}
            Heard::Late => {
                bytes.iter_mut().fold(0, |before, byte| {
                    let last = *byte << 7;
                    *byte = *byte >> 1 | before;
                    last
                });
                self.harm = None;
            }
        }
        Ok(())
    }

    fn now(&self) -> Duration {
        SpiMaster::now(&self.board)
    }
}

/// The wires' bytes, as the driver's port keeps them.
struct Port {
    wires: Wires,
    bytes: SpiBytes,
}

impl ByteStream for Port {
    fn name(&self) -> &str {
        "a port"
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.send(&mut self.wires, bytes)
    }

    fn receive(&mut self, bytes: &mut [u8], timeout: Duration) -> io::Result<usize> {
        self.bytes.receive(&mut self.wires, bytes, timeout)
    }

    fn now(&self) -> Duration {
        SpiMaster::now(&self.wires)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.bytes.clear();
        Ok(())
    }
}

fn port() -> Option<LinkDevice<Port>> {
    let board = with_memory(&config(), link(SPI_CLOCKS), ShellMemory::Host)?;
    Some(device(Port { wires: Wires { board, harm: None }, bytes: SpiBytes::default() }, &config()))
}

#[test]
fn a_board_that_goes_away_is_told() {
    let config = config();
    let program = generate(&config, 1, 12);
    for level in [0, 0xff] {
        for at in [0, 700, 4000] {
            let Some(mut device) = port() else { return };
            device.stream_mut().wires.harm = Some((at, Heard::Level(level)));
            let error = run(&mut device, &program).unwrap_err().to_string();
            assert!(error.starts_with("a port: nothing came within "), "{level:#x} from {at}: {error}");
            assert!(error.contains("check that the board has power"), "{error}");
            // It comes back.
            device.stream_mut().wires.harm = None;
            assert_eq!(run(&mut device, &program).expect("a report").trap, None);
        }
    }
}

#[test]
fn a_command_is_run_again_where_bits_are_heard_late() {
    let config = config();
    let program = generate(&config, 1, 12);
    let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
    run(&mut fsim, &program).expect("a report");
    let Some(mut device) = port() else { return };
    for (again, at) in [(1, 60), (2, 1001), (3, 3002)] {
        device.write(0, &vec![0; MEMORY_BYTES as usize]).expect("inside memory");
        device.stream_mut().wires.harm = Some((at, Heard::Late));
        assert_eq!(run(&mut device, &program).expect("a report").trap, None, "byte {at}");
        assert!(memory(&mut device) == memory(&mut fsim), "byte {at}");
        assert!(device.retries() <= again, "byte {at}");
    }
    assert!(device.retries() > 0, "frames were spoiled");
}

#[test]
fn a_port_that_says_nothing_is_silent() {
    let options = LinkOptions { answer: Duration::from_millis(1), ..OPTIONS };
    for level in [0, 0xff] {
        let Some(board) = with_memory(&config(), link(SPI_CLOCKS), ShellMemory::Host) else { return };
        let wires = Wires { board, harm: Some((0, Heard::Level(level))) };
        let opened = LinkDevice::open(Port { wires, bytes: SpiBytes::default() }, config(), options);
        let fault = opened.err().expect("nobody answers").fault;
        assert!(matches!(fault, Fault::Silent { .. }), "{level:#x}: {fault}");
    }
}
