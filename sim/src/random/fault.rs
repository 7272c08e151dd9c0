//! Generates programs with exactly one fault.

use super::builder::Builder;
use super::image::{DUMP, MEMORY_BYTES};
use super::order::{Order, others, stuck};
use super::sample::{Aim, sample};
use super::{Program, body, image, prologue};
use crate::functional::fetch_burst;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{
    DecodeError, Gemm, INSN_BYTES, Load, Op, Opcode, Store, Unit, VecDst, VecSrc, Vector, WidthName, decode,
    illegal_reasons,
};
use tilewright_hw::regs::{TrapCause, TrapUnit};

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// An unknown opcode.
    Opcode,
    /// An illegal field value.
    Field,
    /// An index outside a memory, in this unit.
    Scratchpad(Unit),
    /// A row outside its base's limit, in load or store.
    Limit(Unit),
    /// A push to a full counter.
    Token,
    /// A push to a counter that stays full while the unit that pops it is busy. Only a timed device traps.
    Overrun,
    /// A row past the end of memory, in load or store.
    Bus(Unit),
    /// A stream that passes the end of memory.
    Fetch,
    /// Two operands of a vector micro-op in one bank.
    Operands,
    /// Two units at one port because a token is missing. Only a timed device traps.
    Collision,
    /// A pop without a push.
    Deadlock,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: &[FaultKind] = &[
        FaultKind::Opcode,
        FaultKind::Field,
        FaultKind::Scratchpad(Unit::Load),
        FaultKind::Scratchpad(Unit::Gemm),
        FaultKind::Scratchpad(Unit::Vector),
        FaultKind::Scratchpad(Unit::Store),
        FaultKind::Limit(Unit::Load),
        FaultKind::Limit(Unit::Store),
        FaultKind::Token,
        FaultKind::Overrun,
        FaultKind::Bus(Unit::Load),
        FaultKind::Bus(Unit::Store),
        FaultKind::Fetch,
        FaultKind::Operands,
        FaultKind::Collision,
        FaultKind::Deadlock,
    ];

    /// Returns whether the functional simulator, which runs in program order, traps the same way.
    pub fn is_functional(self) -> bool {
        !matches!(self, FaultKind::Overrun | FaultKind::Collision | FaultKind::Deadlock)
    }

    /// Returns whether a program with this fault still ends when tokens are removed. It does not if its stream is
    /// broken or its tokens are the fault.
    pub fn may_be_loosened(self) -> bool {
        matches!(
            self,
            FaultKind::Scratchpad(_)
                | FaultKind::Limit(_)
                | FaultKind::Bus(_)
                | FaultKind::Operands
                | FaultKind::Collision
        )
    }
}

/// The trap that a device must take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Expected {
    /// The unit.
    pub unit: TrapUnit,
    /// The cause.
    pub cause: TrapCause,
    /// The instruction's ordinal in its unit, or for fetch its place in the stream.
    pub ordinal: u32,
}

/// A program with a fault.
#[derive(Debug, Clone)]
pub struct Planted {
    /// The kind.
    pub kind: FaultKind,
    /// The program.
    pub program: Program,
    /// The trap that it must end with.
    pub expected: Expected,
}

/// Generates a program with one fault of a kind. Returns `None` if this seed or configuration does not support it.
pub fn plant(config: &HwConfig, kind: FaultKind, seed: u64) -> Option<Planted> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let image = image::image(config, &mut rng);
    let mut builder = Builder::new(config, &image);
    prologue(&mut builder, &mut rng);
    plant_into(&mut builder, image, kind, seed, &mut rng)
}

/// Continues a program so that it has one fault of a kind.
pub(super) fn plant_into(
    builder: &mut Builder,
    image: Vec<u8>,
    kind: FaultKind,
    seed: u64,
    rng: &mut SmallRng,
) -> Option<Planted> {
    let before = rng.random_range(0..10);
    body(builder, before, rng);
    let place = builder.insns.len();
    let cause = match kind {
        FaultKind::Opcode | FaultKind::Field => {
            body(builder, 6, rng);
            return broken_bits(Program::from_builder(builder, image, seed, 0), kind, rng);
        }
        FaultKind::Fetch => {
            body(builder, 12, rng);
            return past_the_end(Program::from_builder(builder, image, seed, 0), rng);
        }
        FaultKind::Collision => {
            let unit = collision(builder, rng)?;
            return finish(builder, image, seed, kind, unit, TrapCause::Collision, None);
        }
        FaultKind::Deadlock => return deadlock(builder, image, seed, rng),
        FaultKind::Token => {
            let (unit, place) = overflow(builder, rng)?;
            return finish(builder, image, seed, kind, unit, TrapCause::Token, Some(place));
        }
        FaultKind::Overrun => {
            let (unit, place) = overrun(builder, rng)?;
            return finish(builder, image, seed, kind, unit, TrapCause::Token, Some(place));
        }
        FaultKind::Scratchpad(unit) => (unit, Aim::OutsideScratchpad, TrapCause::Scratchpad),
        FaultKind::Limit(unit) => (unit, Aim::OutsideLimit, TrapCause::Limit),
        FaultKind::Bus(unit) => (unit, Aim::OutsideMemory, TrapCause::Bus),
        FaultKind::Operands => (Unit::Vector, Aim::Good, TrapCause::Collision),
    };
    let (unit, aim, cause) = cause;
    let taken = (0..400).any(|_| {
        let op = sample(unit, builder.config, aim, rng);
        builder.add(op, Some(cause), rng).is_ok()
    });
    if !taken {
        return None;
    }
    let after = rng.random_range(0..6);
    body(builder, after, rng);
    finish(builder, image, seed, kind, unit, cause, Some(place))
}

/// Finishes a program whose trap belongs to the instruction at `place`, or to the unit's last instruction.
fn finish(
    builder: &Builder,
    image: Vec<u8>,
    seed: u64,
    kind: FaultKind,
    unit: Unit,
    cause: TrapCause,
    place: Option<usize>,
) -> Option<Planted> {
    let order = Order::of(&builder.insns, builder.config).ok();
    let last = || builder.insns.iter().rposition(|i| i.unit() == unit);
    let place = place.or_else(last)?;
    let ordinal = builder.insns[..place].iter().filter(|i| i.unit() == unit).count() as u32;
    debug_assert!(order.is_none_or(|o| o.ordinals[place] == ordinal));
    let program = Program::from_builder(builder, image, seed, 0);
    Some(Planted { kind, program, expected: Expected { unit: unit.into(), cause, ordinal } })
}

/// Moves the stream so that it passes the end of memory. The first instruction of the first burst past the end traps.
fn past_the_end(mut program: Program, rng: &mut SmallRng) -> Option<Planted> {
    let insns = program.insns.len() as u64;
    if insns == 0 {
        return None;
    }
    let inside = rng.random_range(0..insns);
    program.stream_addr = MEMORY_BYTES - inside * INSN_BYTES as u64;
    let command = program.command();
    let ordinal = (0..insns)
        .find(|place| {
            let addr = program.stream_addr + place * INSN_BYTES as u64;
            fetch_burst(&program.config, &command, addr).end > MEMORY_BYTES
        })
        .unwrap_or(inside) as u32;
    let expected = Expected { unit: TrapUnit::Fetch, cause: TrapCause::Bus, ordinal };
    Some(Planted { kind: FaultKind::Fetch, program, expected })
}

/// Corrupts the bits of one instruction.
fn broken_bits(mut program: Program, kind: FaultKind, rng: &mut SmallRng) -> Option<Planted> {
    if program.insns.is_empty() {
        return None;
    }
    let place = rng.random_range(0..program.insns.len());
    let at = place * INSN_BYTES;
    let mut bytes = [0; INSN_BYTES];
    bytes.copy_from_slice(&program.stream[at..at + INSN_BYTES]);
    let good = bytes;
    let config = program.config.clone();
    for _ in 0..200 {
        bytes = good;
        if kind == FaultKind::Opcode {
            if rng.random() {
                rng.fill(&mut bytes[..]);
            }
            let codes: Vec<u8> = (0..16).filter(|c| Opcode::from_code(*c).is_none()).collect();
            bytes[0] = bytes[0] & 0xf0 | codes[rng.random_range(0..codes.len())];
        } else {
            break_field(&mut bytes, program.insns[place].op.opcode(), &config, rng);
        }
        let cause = match decode(&bytes, &config) {
            Err(DecodeError::Opcode(_)) => TrapCause::Opcode,
            Err(DecodeError::Field { .. }) => TrapCause::Field,
            Ok(insn) if illegal_reasons(&insn, &config).is_empty() => continue,
            Ok(_) => TrapCause::Field,
        };
        let wanted = if kind == FaultKind::Opcode { TrapCause::Opcode } else { TrapCause::Field };
        if cause == wanted {
            program.stream[at..at + INSN_BYTES].copy_from_slice(&bytes);
            let expected = Expected { unit: TrapUnit::Fetch, cause, ordinal: place as u32 };
            return Some(Planted { kind, program, expected });
        }
    }
    None
}

/// Changes the bits of one field: in the header, an operand field, or the unused bits after the fields.
fn break_field(bytes: &mut [u8; INSN_BYTES], opcode: Opcode, config: &HwConfig, rng: &mut SmallRng) {
    let mut fields = vec![(4, 4), (8, 4), (12, 4)];
    let mut at = 16;
    for field in opcode.fields() {
        let width = config.field_width(field.width);
        if width > 0 {
            fields.push((at, width));
        }
        at += width;
    }
    if at < 256 {
        fields.push((at, 256 - at));
    }
    let (from, width) = fields[rng.random_range(0..fields.len())];
    let way = rng.random_range(0..3);
    let lone = rng.random_range(0..width);
    for i in 0..width {
        let bit = match way {
            0 => false,
            1 => rng.random(),
            _ => i == lone || from + width == 256 && rng.random(),
        };
        let (byte, mask) = (((from + i) / 8) as usize, 1 << ((from + i) % 8));
        bytes[byte] = bytes[byte] & !mask | if bit { mask } else { 0 };
    }
}

/// Pushes tokens that nothing pops until the counter overflows. Returns the unit and the place of the last push.
fn overflow(builder: &mut Builder, rng: &mut SmallRng) -> Option<(Unit, usize)> {
    let from = Unit::ALL[rng.random_range(0..4usize)];
    let to = others(from).nth(rng.random_range(0..3usize))?;
    // Pops of this pair still in flight would make room, so the pair must be unused.
    if builder.insns.iter().any(|i| i.unit() == from && i.push.contains(to)) {
        return None;
    }
    let full = (1usize << builder.config.token_bits) - 1;
    let begin = builder.insns.len();
    let mut pushed = 0;
    while pushed <= full {
        add_small(builder, from, rng)?;
        pushed += 1;
    }
    let places: Vec<usize> = (begin..builder.insns.len()).collect();
    for place in &places {
        builder.insns[*place].push.insert(to);
    }
    Some((from, *places.last()?))
}

/// Pushes more tokens than a counter holds while the instruction that pops one of them waits for its busy unit. Returns
/// the unit that pushes and the place of the push that overflows.
fn overrun(builder: &mut Builder, rng: &mut SmallRng) -> Option<(Unit, usize)> {
    let (gemm, vector) = long(builder, rng)?;
    let (to, long) = if rng.random() { (Unit::Gemm, gemm) } else { (Unit::Vector, vector) };
    let from = others(to).nth(rng.random_range(0..3usize))?;
    // One instruction runs and the others fill the queue, which still has room for the one that pops.
    let busy = builder.config.queue_depth;
    for _ in 0..busy {
        builder.add(long, None, rng).ok()?;
    }
    if builder.insns.iter().any(|i| i.unit() == from && i.push.contains(to)) {
        return None;
    }
    let begin = builder.insns.len();
    let full = (1usize << builder.config.token_bits) - 1;
    let push = add_small(builder, from, rng)?;
    if (full as u64 + 1) * slowest(push, builder.config) > u64::from(busy) * long.least_cycles() {
        return None;
    }
    builder.add(small(long), None, rng).ok()?;
    let taker = builder.insns.len() - 1;
    for _ in 0..full {
        builder.add(push, None, rng).ok()?;
    }
    builder.insns[taker].pop.insert(from);
    // No instruction that pushes may wait for the busy unit.
    let mut pushes = (begin..builder.insns.len()).filter(|place| builder.insns[*place].unit() == from);
    if pushes.clone().any(|place| builder.insns[place].pop.contains(to)) {
        return None;
    }
    let one_too_many = pushes.nth(full)?;
    for place in begin..builder.insns.len() {
        if builder.insns[place].unit() == from {
            builder.insns[place].push.insert(to);
        }
    }
    Some((from, one_too_many))
}

/// Returns the most cycles that fetching and running a small instruction takes, whatever the memory's timing.
fn slowest(op: Op, config: &HwConfig) -> u64 {
    let cycles = |bytes: u32| {
        let beats = bytes.div_ceil(config.bus_bytes()) + 1;
        let bursts = beats.div_ceil(config.max_burst_beats);
        u64::from(5 * beats + 7 * bursts + 170 * bursts.div_ceil(config.outstanding))
    };
    let moved = match op {
        Op::Load(x) => cycles(x.row_bytes),
        Op::Store(x) => cycles(x.row_bytes),
        Op::Gemm(_) => 16,
        Op::Vector(x) => {
            // The drain and the descriptor come before the row.
            let row = match x.op.is_deep() {
                _ if config.vector_serial() => config.row_elements() * config.serial_element_cycles(x.op),
                true => config.deep_row_cycles(3),
                false => config.row_elements() / config.vector_lanes,
            };
            64 + u64::from(row)
        }
    };
    cycles(INSN_BYTES as u32) + moved
}

/// Adds an operation of a unit with little work.
fn add_small(builder: &mut Builder, unit: Unit, rng: &mut SmallRng) -> Option<Op> {
    (0..100).find_map(|_| {
        let op = small(sample(unit, builder.config, Aim::Good, rng));
        builder.add(op, None, rng).ok().map(|_| op)
    })
}

/// Returns the same operation with little work.
fn small(op: Op) -> Op {
    match op {
        Op::Load(x) => Load { rows: 1, planes: 1, y_before: 0, y_after: 0, z_before: 0, z_after: 0, ..x }.into(),
        Op::Gemm(x) => Gemm { uops: 1, count0: 1, count1: 1, count2: 1, ..x }.into(),
        Op::Vector(x) => Vector { uops: 1, count0: 1, count1: 1, count2: 1, ..x }.into(),
        Op::Store(x) => Store { rows: 1, planes: 1, ..x }.into(),
    }
}

/// Adds a pop without a push to an instruction near the end.
fn deadlock(builder: &mut Builder, image: Vec<u8>, seed: u64, rng: &mut SmallRng) -> Option<Planted> {
    // At most as many as the smallest queue holds, so that everything after it is dispatched.
    body(builder, 2, rng);
    let place = builder.insns.len().checked_sub(rng.random_range(1..=2usize))?;
    let to = builder.insns[place].unit();
    let from = others(to).find(|u| !builder.insns[place].pop.contains(*u))?;
    // If later instructions pop from this pair, one of them lacks the token instead.
    builder.insns[place].pop.insert(from);
    let (unit, ordinal) = *stuck(&builder.insns, builder.config).first()?;
    let program = Program::from_builder(builder, image, seed, 0);
    let expected = Expected { unit: unit.into(), cause: TrapCause::Deadlock, ordinal };
    Some(Planted { kind: FaultKind::Deadlock, program, expected })
}

/// Number of micro-ops with all indices zero that a long instruction repeats.
const LONG_UOPS: u32 = 16;

/// Returns an instruction of gemm and one of vector that keep their units busy for thousands of cycles. Loads their
/// micro-ops.
fn long(builder: &mut Builder, rng: &mut SmallRng) -> Option<(Op, Op)> {
    let config = builder.config;
    for mem in [Mem::GemmUop, Mem::VectorUop] {
        let row_bytes = LONG_UOPS * config.entry_bytes(mem);
        let zeros = Load { mem, offset: super::image::ZEROS, row_bytes, ..Load::default() };
        builder.add(zeros.into(), None, rng).ok()?;
    }
    let count = ((1u32 << config.width(WidthName::Loop)) - 1).min(24);
    let (uops, count0, count1) = (LONG_UOPS, count, count);
    let gemm = Gemm { uops, count0, count1, ..Gemm::default() };
    let vector = Vector { dst: VecDst::Acc, a: VecSrc::Out, uops, count0, count1, ..Vector::default() };
    Some((gemm.into(), vector.into()))
}

/// Adds two long instructions that use one port without being ordered. Returns the unit of lower number.
fn collision(builder: &mut Builder, rng: &mut SmallRng) -> Option<Unit> {
    let (Op::Gemm(gemm), Op::Vector(vector)) = long(builder, rng)? else { return None };
    let config = builder.config;
    let total = |mem: Mem| config.entries(mem) * config.entry_bytes(mem);
    let store = |mem| Store {
        mem,
        row_bytes: total(mem).min(0x1000),
        planes: 1,
        rows: 1,
        offset: DUMP.start,
        ..Store::default()
    };
    let load = |mem| Load { mem, row_bytes: total(mem).min(0x8000), ..Load::default() };
    let pairs: [(Op, Op); 5] = [
        (Gemm { accumulate: true, ..gemm }.into(), Vector { dst: VecDst::Out, a: VecSrc::Acc, ..vector }.into()),
        (Gemm { accumulate: false, ..gemm }.into(), load(Mem::Acc).into()),
        (gemm.into(), store(Mem::Inp).into()),
        (vector.into(), store(Mem::Out).into()),
        (vector.into(), load(Mem::Acc).into()),
    ];
    // Gemm uses its ports in every cycle. Vector does only if its lanes take a whole row; otherwise the two can miss
    // each other.
    let sure = if config.vector_lanes == config.row_elements() { pairs.len() } else { 3 };
    let (first, second) = pairs[rng.random_range(0..sure)];
    // Both start in the same cycle, when an instruction of a third unit retires that waits for everything before it.
    let units = [first, second].map(|op| op.opcode().unit());
    let third = Unit::ALL.into_iter().find(|u| !units.contains(u))?;
    add_small(builder, third, rng)?;
    let signal = builder.insns.len() - 1;
    builder.order_behind_all(rng).ok()?;
    for op in [first, second] {
        builder.add(op, None, rng).ok()?;
        let last = builder.insns.len() - 1;
        if !builder.insns[last].pop.contains(third) {
            builder.order_behind(signal, last, rng).ok()?;
        }
    }
    let taken = builder.insns.len() - 1;
    let [unit, second_unit] = units;
    // Remove the token between the two.
    let (a, b) = builder.insns.split_at_mut(taken);
    let missing = &mut b[0];
    if !missing.pop.contains(unit) {
        return None;
    }
    missing.pop = super::order::without(missing.pop, unit);
    let pusher = a.iter_mut().rev().find(|i| i.unit() == unit && i.push.contains(second_unit))?;
    pusher.push = super::order::without(pusher.push, second_unit);
    let order = Order::of(&builder.insns, config).ok()?;
    if !order.is_after(taken - 1, signal, third) || !order.is_after(taken, signal, third) {
        return None;
    }
    Some(unit.min(second_unit))
}
