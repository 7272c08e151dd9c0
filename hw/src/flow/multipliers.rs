//! Plans the multiplier blocks of the core's units, and which gemm lanes are built of look-up tables instead.

use super::board::Board;
use crate::config::HwConfig;

/// Returns the number of gemm lanes that are built of look-up tables because the part has too few multiplier blocks.
pub(super) fn gemm_table_lanes(board: &Board, config: &HwConfig) -> u32 {
    let Some(part) = board.family.part(&board.device) else { return 0 };
    let left = part.dsps.saturating_sub(board.family.definition().multipliers.wide * beside_gemm(config));
    let lanes = left / u64::from(config.block_in);
    config.row_elements().saturating_sub(u32::try_from(lanes).unwrap_or(u32::MAX))
}

/// Returns the number of multiplier blocks planned for the core: those of gemm lanes that are not built of look-up
/// tables, and those of the other units. `None` for families whose blocks can hold larger or several products, so that
/// netlists have fewer, or that have no blocks.
pub(super) fn planned(board: &Board, config: &HwConfig) -> Option<u64> {
    let lanes = config.row_elements() - gemm_table_lanes(board, config);
    board
        .family
        .definition()
        .multipliers
        .one_for_each_product
        .then(|| u64::from(lanes * config.block_in) + beside_gemm(config))
}

/// Returns the number of products of 18 by 18 bits in the core's other units, one block each as in ECP5 netlists.
///
/// Families with larger blocks need fewer, so the plan never uses more blocks than the part has.
fn beside_gemm(config: &HwConfig) -> u64 {
    let of = |there: bool, blocks: u32| if there { blocks } else { 0 };
    let requantize = of(!config.requant_serial, 4 * config.requant_lanes);
    let vector = of(config.vector_mul || config.vector_qadd, 1) + of(config.vector_mac, config.vector_lanes);
    // The serial unit multiplies a row by nine, the rows of a param entry, to find a byte.
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

    /// The plan equals the table of `docs/synthesize.md`, which has the blocks of synthesized and routed netlists.
    /// Where netlists are made, their blocks are compared with the plan (`scripts/bitstreams.py`,
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
