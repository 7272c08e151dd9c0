//! What one session leaves, the next one does not see.

use std::sync::Mutex;

use tilewright_hw::config::Mem;
use tilewright_sim::random::generate;
use tilewright_testing::device::Hooked;

use super::*;

#[test]
fn memory_and_scratchpads_of_a_board_are_cleared() {
    for preset in ["1x4x4", "1x16x16", "4x16x16", "1x32x32"] {
        let mut config = HwConfig::load(preset).expect("is a preset");
        // Two devices that fit a processor with 32 bits.
        config.host.memory_mib = 64;
        let csim = Csim::new(config.clone(), config.memory_bytes(), CsimOptions::default());
        let board = Arc::new(Mutex::new(csim));
        let of_server = board.clone();
        let open_board = move |_: &HwConfig, _: Asked, _: &dyn Fn(&str)| -> Result<Box<dyn Device>, DeviceError> {
            Ok(Box::new(Hooked::sharing("board", &of_server)))
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
