//! Which of a part's multiplier blocks the core's units take, and what is built of tables in their place.

use super::board::Board;
use crate::config::HwConfig;

/// Of gemm's lanes those that are built of tables, because the part's multipliers do not reach for them.
pub(super) fn gemm_table_lanes(board: &Board, config: &HwConfig) -> u32 {
    let Some(part) = board.family.part(&board.device) else { return 0 };
    let left = part.dsps.saturating_sub(board.family.definition().multipliers.wide * beside_gemm(config));
    let lanes = left / u64::from(config.block_in);
    config.row_elements().saturating_sub(u32::try_from(lanes).unwrap_or(u32::MAX))
}

/// The blocks that the core is planned to take: gemm's, but for its lanes of tables, and those beside. None for
/// families whose blocks take larger products, so that netlists have fewer, and where a part has none.
pub(super) fn planned(board: &Board, config: &HwConfig) -> Option<u64> {
    let lanes = config.row_elements() - gemm_table_lanes(board, config);
    board
        .family
        .definition()
        .multipliers
        .one_for_each_product
        .then(|| u64::from(lanes * config.block_in) + beside_gemm(config))
}

/// Products of 18 by 18 bits that the core has beside gemm's lanes, counted as ECP5's netlists have them, a block for
/// each; blocks for larger products take fewer, so that no lane is built of multipliers that are not there.
fn beside_gemm(config: &HwConfig) -> u64 {
    let of = |there: bool, blocks: u32| if there { blocks } else { 0 };
    let requantize = of(!config.requant_serial, 4 * config.requant_lanes);
    let vector = of(config.vector_mul || config.vector_qadd, 1) + of(config.vector_mac, config.vector_lanes);
    // The serial unit finds a byte of a param entry by its row, of which nine are an entry.
    let vector = vector + of(config.vector_serial(), 1);
    u64::from(requantize + vector + of(config.wgt_zp, config.batch) + of(config.dma_pad, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::family::Family;
    use std::path::Path;

    #[test]
    fn no_board_wants_more_multipliers_than_it_has() {
        for name in Board::names() {
            let board = Board::load(&name).expect("the board is there");
            let config = board.default_config().expect("it has a configuration");
            let part = board.family.part(&board.device).expect("the part is known");
            let lanes = u64::from(config.row_elements() - gemm_table_lanes(&board, &config));
            let taken =
                lanes * u64::from(config.block_in) + board.family.definition().multipliers.wide * beside_gemm(&config);
            assert!(lanes == 0 || taken <= part.dsps, "{name}: {taken} of {}", part.dsps);
        }
    }

    #[test]
    fn wide_products_take_the_blocks_that_their_cells_count_as() {
        for family in Family::ALL.map(Family::definition) {
            let cell = family.cells.dsps.iter().find(|kind| kind.name == "MULT18X18");
            assert_eq!(family.multipliers.wide, cell.map_or(1, |cell| cell.units), "{}", family.name);
        }
    }

    /// The page's table says how many blocks netlists have, synthesized and routed: as many as are counted. The
    /// netlists themselves are compared with the count where they are made (`scripts/bitstreams.py`,
    /// `tests/command_line/synth.rs`).
    #[test]
    fn blocks_are_those_of_the_netlists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let page = std::fs::read_to_string(root.join("docs/synthesize.md")).expect("the page is there");
        let mut compared = 0;
        for line in page.lines() {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, name, hw, _, _, blocks, _, _, _, _] = cells[..] else { continue };
            let (Ok(board), Ok(blocks)) = (Board::load(name), blocks.parse::<u64>()) else { continue };
            let hw = hw.trim_end_matches(", SDRAM");
            let hw = if hw.ends_with(".toml") { root.join(hw).display().to_string() } else { hw.to_string() };
            let config = HwConfig::load(&hw).expect("a configuration");
            assert_eq!(planned(&board, &config), Some(blocks), "{line}");
            compared += 1;
        }
        assert!(compared >= 6, "{compared} rows");
    }
}
