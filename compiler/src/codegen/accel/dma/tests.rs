use super::*;
use tilewright_hw::config::{DramSection, PRESETS};
use tilewright_hw::device::{Base, Command, Device};
use tilewright_hw::isa::{Insn, Load, Store, encode};
use tilewright_sim::{Csim, CsimOptions};

const MEMORY: u64 = 8 << 20;
const STREAM: u64 = 4 << 20;

/// Cycles per row of an instruction by the cycle model: the difference between 400 and 100 rows, divided by 300.
fn measured(config: &HwConfig, of_rows: impl Fn(u32) -> Insn) -> f64 {
    let options = CsimOptions { timing_only: true, ..CsimOptions::default() };
    let mut csim = Csim::new(config.clone(), MEMORY, options);
    let [few, many] = [100, 400].map(|rows| {
        csim.write(STREAM, &encode(&of_rows(rows), config).expect("fits")).expect("inside memory");
        let bases = vec![Base { addr: 0, limit: STREAM }];
        let command = Command { stream_addr: STREAM, insns: 1, bases, cycle_limit: None };
        let report = csim.run(&command).expect("ends");
        assert_eq!(report.trap, None);
        report.cycles.expect("the model has time")
    });
    (many - few) as f64 / 300.0
}

#[test]
fn rows_take_what_the_cycle_model_says() {
    let slow = DramSection::default().latency;
    let latencies = [1, 20, slow];
    for ((preset, _), latency) in PRESETS.iter().flat_map(|preset| latencies.map(|latency| (preset, latency))) {
        let mut config = HwConfig::load(preset).expect("presets load");
        config.dram.latency = latency;
        let bus = u64::from(config.bus_bytes());
        let size = config.entry_bytes(Mem::Out);
        for entries in [1, 2, 4, 5] {
            let row_bytes = entries * size;
            let bytes = u64::from(row_bytes);
            for at in [0, 1, bus - 1] {
                let (row_stride, offset) = (4096, at);
                // No more rows than the memory has entries for.
                let rows_of = |rows: u32| rows.min(config.out_depth / entries);
                let load = |rows| {
                    let rows = rows_of(rows);
                    Insn::new(Load { mem: Mem::Out, row_bytes, rows, row_stride, offset, ..Load::default() })
                };
                let store = |rows| {
                    let rows = rows_of(rows);
                    Insn::new(Store { mem: Mem::Out, row_bytes, rows, row_stride, offset, ..Store::default() })
                };
                if rows_of(400) < 400 {
                    continue;
                }
                let found = [measured(&config, load), measured(&config, store)];
                let rows = [load_row(bytes, at, Mem::Out, &config), store_row(bytes, at, Mem::Out, &config)];
                // The estimate does not cover lean stores, which read one row at a time, with short latencies.
                let kinds = if latency < slow { 1 } else { 2 };
                for (kind, found, row) in
                    [("load", found[0], rows[0]), ("store", found[1], rows[1])].into_iter().take(kinds)
                {
                    // A row's share of the memory latency need not be a whole number of cycles.
                    let fits = found <= row as f64 && row as f64 <= found + 1.0;
                    assert!(
                        fits,
                        "{preset}, latency {latency}: {kind} of {bytes} bytes at {at}: {found:.2} cycles, not {row}"
                    );
                }
            }
        }
    }
}
