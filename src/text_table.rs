//! Text tables whose columns are as wide as their widest cell.

/// Alignment of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Formats a table; the first row is its head. In a row with fewer cells than the head, the last cell can have any
/// length.
pub fn table(aligns: &[Align], rows: &[Vec<String>]) -> String {
    let whole = |row: &&Vec<String>| row.len() == aligns.len();
    let width = |column: usize| {
        let cells = rows.iter().filter(|row| whole(row) || column + 1 < row.len()).map(|row| &row[column]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..aligns.len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let last = row.len().saturating_sub(1);
        let cell = |(at, cell): (usize, &String)| match aligns.get(at) {
            Some(_) if at == last && !whole(&row) => cell.clone(),
            Some(Align::Right) => format!("{cell:>width$}", width = widths[at]),
            _ => format!("{cell:<width$}", width = widths.get(at).copied().unwrap_or(0)),
        };
        let line = row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells_and_short_rows_run_on() {
        let rows = [vec!["name", "ms", "x"], vec!["a", "10.25", "1"], vec!["long", "missing: no driver"]];
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|c| c.to_string()).collect()).collect();
        let text = table(&[Align::Left, Align::Right, Align::Right], &rows);
        assert_eq!(text, "name     ms  x\na     10.25  1\nlong  missing: no driver\n");
    }
}
