//! Orders of small programs, and what the search knows about time.

use super::*;
use crate::{Builder, DriverError, Recording, Role};
use expect_test::{Expect, expect};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{Gemm, GemmUop, Load, Store, VecDst, VecOp, VecSrc, Vector, VectorUop};

const DATA_BYTES: u64 = 1 << 20;

/// A program and a name for each of its instructions.
struct Named {
    b: Builder,
    names: Vec<String>,
}

impl Named {
    fn new(config: &HwConfig) -> Named {
        let mut b = Builder::new(config).unwrap();
        let data = b.region("data", Role::Input, DATA_BYTES).unwrap();
        b.input("data", data, 0, DATA_BYTES);
        Named { b, names: Vec::new() }
    }

    /// Names the instructions that were added last; loads of micro-ops come before the one that needs them.
    fn name(&mut self, name: &str) {
        while self.names.len() + 1 < self.b.len() {
            self.names.push("uops".into());
        }
        self.names.push(name.into());
    }

    fn load(&mut self, name: &str, mem: Mem, entry: u32, bytes: u32, offset: u64) {
        self.b.load(Load { mem, entry, base: 1, offset, row_bytes: bytes, ..Load::default() }).unwrap();
        self.name(name);
    }

    fn store(&mut self, name: &str, entry: u32, bytes: u32, offset: u64) {
        self.b.store(Store { entry, base: 1, offset, row_bytes: bytes, ..Store::default() }).unwrap();
        self.name(name);
    }

    fn gemm(&mut self, name: &str, acc: u32, inp: u32, rows: u32) {
        let gemm = Gemm { acc, inp, count0: rows, acc0: 1, inp0: 1, ..Gemm::default() };
        self.b.gemm(gemm, &[GemmUop::default()]).unwrap();
        self.name(name);
    }

    fn requant(&mut self, name: &str, out: u32, acc: u32, rows: u32) {
        let requant = Vector { op: VecOp::Requant, a: VecSrc::Acc, b: VecSrc::Param, b_at: 1, ..Vector::default() };
        self.vector(name, Vector { dst_at: out, a_at: acc, ..requant }, [1, 1, 0], rows);
    }

    fn qadd(&mut self, name: &str, out: u32, other: u32, rows: u32) {
        let qadd = Vector { op: VecOp::Qadd, a: VecSrc::Out, b: VecSrc::Out, ..Vector::default() };
        self.vector(name, Vector { dst_at: out, a_at: out, b_at: other, ..qadd }, [1, 1, 1], rows);
    }

    fn vector(&mut self, name: &str, x: Vector, steps: [u32; 3], rows: u32) {
        let [dst0, a0, b0] = steps;
        let vector = Vector { dst: VecDst::Out, count0: rows, dst0, a0, b0, ..x };
        self.b.vector(vector, &[VectorUop::default()]).unwrap();
        self.name(name);
    }

    fn record(self) -> (Recording, Vec<String>) {
        (self.b.record(), self.names)
    }
}

/// Products with a residual addition, tile by tile, as an operator emits them: the operand of the addition has one
/// place, so its load waits for the addition of the tile before.
fn residual(config: &HwConfig, tiles: u32) -> Named {
    let mut p = Named::new(config);
    let upper = config.out_depth / 2;
    p.load("params", Mem::Param, 0, 1024, 0);
    p.load("wgt", Mem::Wgt, 0, 256, 4096);
    for tile in 0..tiles {
        let (slot, offset) = (128 * (tile % 2), u64::from(2048 * tile));
        p.load(&format!("inp{tile}"), Mem::Inp, 128 * (tile % 4), 2048, 8192 + offset);
        p.gemm(&format!("gemm{tile}"), 512 * (tile % 4), 128 * (tile % 4), 128);
        p.requant(&format!("requant{tile}"), slot, 512 * (tile % 4), 128);
        p.load(&format!("other{tile}"), Mem::Out, upper, 2048, (1 << 18) + offset);
        p.qadd(&format!("qadd{tile}"), slot, upper, 128);
        p.store(&format!("store{tile}"), slot, 2048, (1 << 19) + offset);
    }
    p
}

fn config() -> HwConfig {
    HwConfig::load("1x16x16").unwrap()
}

/// The order that a search finds, by names, and the waits.
fn check(program: Named, search: Search, expected: &Expect) {
    let (recording, names) = program.record();
    let order = recording.search(search);
    recording.program(&order).unwrap();
    let found: Vec<&str> = order.places.iter().map(|&place| names[place as usize].as_str()).collect();
    let mut text = found.chunks(9).map(|row| row.join(" ")).collect::<Vec<_>>().join("\n");
    for &(later, first) in &order.waits {
        text += &format!("\n{} waits for {}", names[later as usize], names[first as usize]);
    }
    expected.assert_eq(&text);
}

#[test]
fn loads_run_ahead_of_a_load_that_waits() {
    check(
        residual(&config(), 4),
        Search::FIRST,
        &expect![[r#"
            inp0 wgt uops params gemm0 uops other0 requant0 inp1
            qadd0 inp2 gemm1 inp3 gemm2 gemm3 requant1 other1 store0
            qadd1 requant2 other2 store1 qadd2 requant3 other3 store2 qadd3
            store3"#]],
    );
}

#[test]
fn a_search_that_may_not_look_ahead_keeps_each_units_order() {
    let (recording, _) = residual(&config(), 4).record();
    let order = recording.search(Search { loads: 1, patience: 0 });
    for unit in tilewright_hw::isa::Unit::ALL {
        let own = order.places.iter().filter(|&&place| recording.conflicts[place as usize].unit == unit);
        assert!(own.is_sorted(), "{}", unit.name());
    }
}

#[test]
fn an_empty_program_has_an_empty_order() {
    let (recording, _) = Named::new(&config()).record();
    assert_eq!(recording.search(Search::FIRST), Order::default());
}

#[test]
fn an_order_that_is_not_legal_is_refused() {
    let (recording, names) = residual(&config(), 2).record();
    let refused = |edit: &dyn Fn(&mut Order)| {
        let mut order = Order::of_program(recording.len());
        edit(&mut order);
        match recording.program(&order) {
            Err(DriverError::Order { what }) => what,
            other => panic!("{other:?}"),
        }
    };
    let of = |name: &str| names.iter().position(|n| n == name).unwrap();
    let (load, gemm) = (of("inp0"), of("gemm0"));
    let mut found = vec![
        refused(&|order| _ = order.places.pop()),
        refused(&|order| order.places[1] = 0),
        refused(&|order| order.places[1] = 1000),
        refused(&|order| order.places.swap(load, gemm)),
        refused(&|order| order.waits.push((load as u32, gemm as u32))),
        refused(&|order| order.waits.push((1000, 0))),
    ];
    found.push(String::new());
    expect![[r#"
        it has 15 instructions, the program has 16
        instruction 0 occurs twice or is not one of the program's
        instruction 1000 occurs twice or is not one of the program's
        instruction 4 does not come after 2
        instruction 2 does not come after 4
        instruction 1000 does not come after 0
    "#]]
    .assert_eq(&found.join("\n"));
}
