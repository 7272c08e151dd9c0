//! Which of a part's multiplier blocks the core's units take, and what is built of tables in their place.

use super::board::Board;
use crate::config::HwConfig;

/// Of gemm's lanes those that are built of tables, because the part's multipliers do not reach for them.
pub(super) fn gemm_table_lanes(board: &Board, config: &HwConfig) -> u32 {
    let Some(part) = board.family.part(&board.device) else { return 0 };
    let left = part.dsps.saturating_sub(beside_gemm(config));
    let lanes = left / u64::from(config.block_in);
    config.row_elements().saturating_sub(u32::try_from(lanes).unwrap_or(u32::MAX))
}

/// Multiplier blocks that the core has beside gemm's lanes, as ECP5's netlists have them: blocks of one product of 18 by 18 bits.
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

    /// The page's table says how many blocks netlists have, synthesized and routed: as many as are counted.
    #[test]
    fn blocks_are_those_of_the_netlists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let page = std::fs::read_to_string(root.join("docs/synth.md")).expect("the page is there");
        let mut compared = 0;
        for line in page.lines() {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, name, hw, _, _, blocks, _, _, _, _] = cells[..] else { continue };
            let (Ok(board), Ok(blocks)) = (Board::load(name), blocks.parse::<u64>()) else { continue };
            assert_eq!(board.family, Family::Ecp5, "{line}");
            let hw = hw.trim_end_matches(", SDRAM");
            let hw = if hw.ends_with(".toml") { root.join(hw).display().to_string() } else { hw.to_string() };
            let config = HwConfig::load(&hw).expect("a configuration");
            let lanes = config.row_elements() - gemm_table_lanes(&board, &config);
            let counted = u64::from(lanes * config.block_in) + beside_gemm(&config);
            assert_eq!(counted, blocks, "{line}");
            compared += 1;
        }
        assert!(compared >= 6, "{compared} rows");
    }
}
