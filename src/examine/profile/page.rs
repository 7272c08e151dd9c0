//! The HTML page: one file that contains its data, style, program and the chart library.

use serde_json::Value;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
const COMMON: &str = include_str!("page/common.js");
const PROFILE: &str = include_str!("page/profile.js");
const TIMELINE: &str = include_str!("page/timeline.js");
const COMPARE: &str = include_str!("page/compare.js");
const CHARTS: &str = include_str!("page/echarts/echarts.min.js");

/// The page of a profile, from its JSON data.
pub fn profile(data: &Value) -> String {
    let title = format!(
        "{} on {} ({})",
        file_name(&data["model"]["file"]),
        data["device"].as_str().unwrap_or(""),
        data["hw"]["name"].as_str().unwrap_or("")
    );
    page(&title, data, &[PROFILE, TIMELINE])
}

/// The page of a comparison, from its JSON data.
pub fn comparison(data: &Value) -> String {
    page(&format!("{}: two profiles", file_name(&data["model"])), data, &[COMPARE])
}

/// The file name of a path; the folders would mean nothing on another machine.
fn file_name(path: &Value) -> &str {
    let path = path.as_str().unwrap_or("");
    path.rsplit('/').next().unwrap_or(path)
}

fn page(title: &str, data: &Value, programs: &[&str]) -> String {
    // The data must not contain a tag that ends its element.
    let data = data.to_string().replace('<', "\\u003c");
    let escaped = title.replace('&', "&amp;").replace('<', "&lt;");
    let program = [COMMON].iter().chain(programs).copied().collect::<Vec<_>>().join("\n");
    let mut text = String::with_capacity(PAGE.len() + STYLE.len() + CHARTS.len() + program.len() + data.len());
    let mut rest = PAGE;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, after)) = after.split_once("}}") else { break };
        text.push_str(before);
        text.push_str(match name {
            "title" => &escaped,
            "style" => STYLE,
            "charts" => CHARTS,
            "program" => &program,
            "data" => &data,
            _ => "",
        });
        rest = after;
    }
    text + rest
}
