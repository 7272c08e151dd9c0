//! What one session leaves, the next one does not see.

use std::sync::Mutex;

use tilewright_hw::config::Mem;
use tilewright_hw::device::{Command, RunReport, Ticket};
use tilewright_sim::random::generate;

use super::*;

/// A device that stays, as a board does.
struct Board(Arc<Mutex<Csim>>, HwConfig);

impl Device for Board {
    fn config(&self) -> &HwConfig {
        &self.1
    }
    fn name(&self) -> &str {
        "board"
    }
    fn memory_bytes(&self) -> u64 {
        self.0.lock().unwrap().memory_bytes()
    }
    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.0.lock().unwrap().write(addr, bytes)
    }
    fn read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.0.lock().unwrap().read(addr, bytes)
    }
    fn submit(&mut self, command: &Command) -> Result<Ticket, DeviceError> {
        self.0.lock().unwrap().submit(command)
    }
    fn wait(&mut self, ticket: Ticket) -> Result<RunReport, DeviceError> {
        self.0.lock().unwrap().wait(ticket)
    }
    fn scratchpad(&mut self, mem: Mem, entry: u32, count: u32) -> Result<Vec<u8>, DeviceError> {
        self.0.lock().unwrap().scratchpad(mem, entry, count)
    }
}

#[test]
fn memory_and_scratchpads_of_a_board_are_cleared() {
    for preset in ["1x4x4", "1x16x16", "4x16x16", "1x32x32"] {
        let mut config = HwConfig::load(preset).expect("is a preset");
        // Two devices that fit a processor with 32 bits.
        config.host.memory_mib = 64;
        let csim = Csim::new(config.clone(), config.memory_bytes(), CsimOptions::default());
        let board = Arc::new(Mutex::new(csim));
        let (of_server, own) = (board.clone(), config.clone());
        let open_board = move |_: &HwConfig, _: Asked, _: &dyn Fn(&str)| -> Result<Box<dyn Device>, DeviceError> {
            Ok(Box::new(Board(of_server.clone(), own.clone())))
        };
        let lends = Lends {
            name: "board".into(),
            config: config.clone(),
            devices: 1,
            disposable: false,
            open: Box::new(open_board),
            functions: Registry::new(),
            native: None,
        };
        let running = start(loopback(), lends);
        let mut first = open(&running, &config, Asked::default()).expect("a device");
        let program = generate(&config, 5, 40);
        program.install(&mut first).expect("it is written");
        first.write(1 << 20, &[9; 70_000]).expect("it is written");
        first.run(&program.command()).expect("it runs");
        // A command that nobody waits for.
        first.submit(&program.command()).expect("it is queued");
        first.flush().expect("all is done");
        drop(first);
        let mut second = open(&running, &config, Asked::default()).expect("a device");
        let mut memory = vec![1; 2 << 20];
        second.read(0, &mut memory).expect("it is read");
        assert!(memory.iter().all(|byte| *byte == 0), "{preset}: memory");
        for mem in Mem::ALL {
            let bytes = second.scratchpad(mem, 0, config.entries(mem)).expect("a simulator shows them");
            assert!(bytes.iter().all(|byte| *byte == 0), "{preset}: {}", mem.name());
        }
    }
}
