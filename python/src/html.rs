//! Tables in notebooks.

/// Text in HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A table with a caption, a line of names and the rows.
pub fn table(caption: Option<&str>, names: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
        let cells: String = cells.map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
        format!("<tr>{cells}</tr>")
    };
    let head = line("th", &mut names.iter().copied());
    let body: String = rows.into_iter().map(|row| line("td", &mut row.iter().map(String::as_str))).collect();
    let caption = caption.map(|text| format!("<caption>{}</caption>", escape(text))).unwrap_or_default();
    format!("<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>")
}
