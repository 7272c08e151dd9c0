//! `zoo`: lists the built-in networks and writes networks of well-known shapes.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::Value;
use tilewright::model::shapes;
use tilewright::model::zoo::{self, ENTRIES, Entry, PREFIX};

use super::{Verdict, write_or_print};

/// Arguments of `zoo`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Zoo {
    #[command(subcommand)]
    make: Option<Make>,
    /// Describe this network in detail
    name: Option<String>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// Actions other than listing.
#[derive(clap::Subcommand)]
enum Make {
    /// Write a network of a well-known shape with random weights, in int8, as an ONNX file: resnet18, resnet34,
    /// resnet50, mobilenet-v1, mobilenet-v2, vgg16, deit-tiny, bert-tiny, or a layer of ResNet-18, resnet18-c2 to
    /// resnet18-c11. With -batchN after the name, a network of pictures computes N at once, for example vgg16-batch4
    Make {
        /// Name of the network
        name: String,
        /// File to write
        #[arg(short, long, value_name = "FILE.onnx")]
        output: PathBuf,
        /// Write float weights instead of int8
        #[arg(long)]
        float: bool,
    },
}

impl Zoo {
    pub fn run(self) -> Result<Verdict> {
        if let Some(Make::Make { name, output, float }) = &self.make {
            write_or_print(Some(output), &shapes::onnx(name, *float)?)?;
            return Ok(Verdict::Fine);
        }
        let entries: Vec<&Entry> = match &self.name {
            Some(name) => vec![zoo::find(name.strip_prefix(PREFIX).unwrap_or(name))?],
            None => ENTRIES.iter().collect(),
        };
        let described = entries.into_iter().map(tilewright::model::describe).collect::<Result<Vec<_>, _>>()?;
        let text = match (&self.name, self.json) {
            (_, true) => format!("{}\n", Value::from(described)),
            (Some(_), false) => described.iter().map(page).collect(),
            (None, false) => table(&described),
        };
        write_or_print(None, text.as_bytes())?;
        Ok(Verdict::Fine)
    }
}

fn kilobytes(network: &Value) -> String {
    format!("{} kB", network["bytes"].as_u64().unwrap_or(0).div_ceil(1000))
}

fn text<'v>(network: &'v Value, key: &str) -> &'v str {
    network[key].as_str().unwrap_or("")
}

fn table(networks: &[Value]) -> String {
    let rows: Vec<[String; 5]> = networks
        .iter()
        .map(|network| {
            let input = network["inputs"][0].as_str().unwrap_or("").to_string();
            let [name, licence, title] = ["name", "licence", "title"].map(|key| text(network, key).to_string());
            [name, kilobytes(network), licence, input, title]
        })
        .collect();
    let heads = ["name", "size", "license", "input", "what it does"].map(String::from);
    let width = |column: usize| {
        rows.iter().chain(std::iter::once(&heads)).map(|row| row[column].chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut lines = String::new();
    for row in std::iter::once(&heads).chain(&rows) {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        lines += cells.join("  ").trim_end();
        lines.push('\n');
    }
    lines + "\nRun one on its sample with: tilewright run zoo:NAME; see its details with: tilewright zoo NAME\n"
}

fn page(network: &Value) -> String {
    let list = |key: &str| network[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
    let mut lines = String::new();
    let mut line = |what: &str, value: &str| {
        if !value.is_empty() {
            lines += &format!("{what:<12} {value}\n");
        }
    };
    line("name", text(network, "name"));
    line("does", text(network, "title"));
    line("from", text(network, "source"));
    line("license", text(network, "licence"));
    line("size", &kilobytes(network));
    line("file", text(network, "file"));
    list("inputs").into_iter().for_each(|input| line("input", input));
    list("outputs").into_iter().for_each(|output| line("output", output));
    if network["classes"].as_u64().is_some_and(|classes| classes > 0) {
        line("classes", &network["classes"].to_string());
    }
    line("preprocess", text(network, "preprocess"));
    line("sample", text(network, "sample"));
    line("expected", text(network, "expected"));
    lines
}
