//! The space of a product's plans.

use super::depthwise::{self, ArrayTaps, DepthwiseTile};
use super::need::Need;
use super::op::Conv;
use super::plan::ConvPlan;
use super::tiles::{ConvTile, Search, TileSpace, Wanted};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::space::{Decisions, Knob, Space};
use crate::codegen::accel::view::View;
use tilewright_hw::config::{HwConfig, Mem};

/// What `ConvTile::pixels_inside` decides: which loop is the inner one.
const INNER: [&str; 2] = ["channels", "pixels"];

/// The forms of plans.
const FORMS: [&str; 3] = ["tiles", "depthwise", "packed"];

/// Returns the space of a layer's plans.
pub fn space(conv: &Conv, layer: &Layer, config: &HwConfig) -> Space {
    let mut forms = Vec::new();
    let views = [layer.input_view(), conv.results(layer)];
    let form = |word: &str| Knob { name: "form".into(), values: vec![word.into()] };
    if let Ok(need) = Need::of(conv, layer, config) {
        let knobs =
            tile_knobs(conv, Search { apart: false, need, pixel_load: None, wanted: Wanted::All }, views, config);
        forms.extend(knobs.map(|knobs| [vec![form(FORMS[0])], knobs].concat()));
    }
    if depthwise::is_shared(conv, views, layer.on_chip, config) {
        let taps = |name: &str| Knob { name: name.into(), values: (1..conv.taps()).map(Into::into).collect() };
        forms.push(vec![
            form(FORMS[1]),
            Knob::size("blocks", views[1].c.div_ceil(config.block() as usize)),
            Knob::size("rows", views[1].h),
            Knob::size("columns", views[1].w),
            taps("first_taps"),
            taps("even_taps"),
            taps("odd_taps"),
            taps("last_taps"),
        ]);
    }
    if let Some((flat, search, views)) = conv.packed_search(layer, config) {
        let knobs = tile_knobs(&flat, search, views, config);
        forms.extend(knobs.map(|knobs| [vec![form(FORMS[2])], knobs].concat()));
    }
    Space { forms }
}

/// Returns the decisions of a plan.
pub fn decisions(plan: &ConvPlan) -> Decisions {
    let form = |word: &str| Decisions::new([("form", word.into())]);
    match plan {
        ConvPlan::Tiles(t) => form(FORMS[0]).and(tile_decisions(t)),
        ConvPlan::Packed(t) => form(FORMS[2]).and(tile_decisions(t)),
        ConvPlan::Depthwise(t) => form(FORMS[1]).and(Decisions::new([
            ("blocks", t.blocks.into()),
            ("rows", t.rows.into()),
            ("columns", t.columns.into()),
            ("first_taps", t.array_taps.first.into()),
            ("even_taps", t.array_taps.even.into()),
            ("odd_taps", t.array_taps.odd.into()),
            ("last_taps", t.array_taps.last.into()),
        ])),
    }
}

/// Returns the plan of some decisions.
///
/// # Errors
/// The reason why it does not fit, or which decision is missing or wrong.
pub fn plan_of(conv: &Conv, decisions: &Decisions, layer: &Layer, config: &HwConfig) -> Result<ConvPlan, String> {
    let views = [layer.input_view(), conv.results(layer)];
    let form = decisions.word("form", &FORMS)?;
    if form == 2 {
        let packed = conv.packed_search(layer, config);
        let (flat, search, views) = packed.ok_or("loads cannot turn whole windows into channels")?;
        return tile_of(&flat, search, views, decisions, config).map(ConvPlan::Packed);
    }
    if form == 0 {
        let need = Need::of(conv, layer, config)?;
        let search = Search { apart: false, need, pixel_load: None, wanted: Wanted::All };
        return tile_of(conv, search, views, decisions, config).map(ConvPlan::Tiles);
    }
    if !depthwise::is_shared(conv, views, layer.on_chip, config) {
        return Err("the array and the vector unit cannot share the layer".into());
    }
    let taps = |name: &str| decisions.size(name, conv.taps().saturating_sub(1));
    let tile = DepthwiseTile {
        blocks: decisions.size("blocks", views[1].c.div_ceil(config.block() as usize))?,
        rows: decisions.size("rows", views[1].h)?,
        columns: decisions.size("columns", views[1].w)?,
        array_taps: ArrayTaps {
            first: taps("first_taps")?,
            even: taps("even_taps")?,
            odd: taps("odd_taps")?,
            last: taps("last_taps")?,
        },
        cycles: 0,
    };
    depthwise::tile(conv, views, layer.on_chip, tile, config).map(ConvPlan::Depthwise)
}

/// Returns the decisions on a product's tiles with their possible values; `None` if no tile can compute it.
pub fn tile_knobs(conv: &Conv, search: Search, views: [View; 2], config: &HwConfig) -> Option<Vec<Knob>> {
    let space = TileSpace::new(conv, &search, views, config).ok()?;
    let TileSpace { sizes, output, .. } = &space;
    let all = Knob { name: "in_blocks".into(), values: vec![sizes.in_blocks.into()] };
    Some(vec![
        Knob::size("rows", output.h),
        Knob::size("columns", output.w),
        Knob::size("out_blocks", sizes.out_blocks),
        if space.cuts_input(conv) { Knob::size("in_blocks", sizes.in_blocks) } else { all },
        Knob::words("inner", &INNER),
        Knob::words("operands", &search.need.operand_memories.iter().map(|mem| mem.name()).collect::<Vec<_>>()),
    ])
}

/// Returns the decisions of a product's tile.
pub fn tile_decisions(t: &ConvTile) -> Decisions {
    Decisions::new([
        ("rows", t.rows.into()),
        ("columns", t.columns.into()),
        ("out_blocks", t.out_blocks.into()),
        ("in_blocks", t.in_blocks.into()),
        ("inner", INNER[usize::from(t.pixels_inside)].into()),
        ("operands", t.operands.name().into()),
    ])
}

/// Returns the tile of some decisions.
///
/// # Errors
/// The reason why it does not fit, or which decision is missing or wrong.
pub fn tile_of(
    conv: &Conv,
    search: Search,
    views: [View; 2],
    decisions: &Decisions,
    config: &HwConfig,
) -> Result<ConvTile, String> {
    let space = TileSpace::new(conv, &search, views, config)?;
    let tile = ConvTile {
        rows: decisions.size("rows", space.output.h)?,
        columns: decisions.size("columns", space.output.w)?,
        out_blocks: decisions.size("out_blocks", space.sizes.out_blocks)?,
        in_blocks: decisions.size("in_blocks", space.sizes.in_blocks)?,
        pixels_inside: decisions.word("inner", &INNER)? == 1,
        operands: operands(&search, decisions)?,
        cycles: 0,
    };
    if !space.cuts_input(conv) && tile.in_blocks != space.sizes.in_blocks {
        let all = space.sizes.in_blocks;
        return Err(format!("in_blocks must be {all}: the product has groups of channels, or loads whole windows"));
    }
    space.tile(conv, &search.need, tile, config)
}

/// The decision on the memory of second operands of fused operators.
fn operands(search: &Search, decisions: &Decisions) -> Result<Mem, String> {
    let memories = search.need.operand_memories;
    let names: Vec<&str> = memories.iter().map(|mem| mem.name()).collect();
    decisions.word("operands", &names).map(|at| memories[at])
}
