//! Prepares the router's netlist for simulation: connects the inputs that are tied inside the part to constants.
//!
//! nextpnr leaves such an input open. Its value is in the cell's parameter `<input>MUX` (`0`, `1`, or `INV` for the
//! inverse of an open wire), or follows from the family ([`OpenInputs`]).
//!
//! The input of a global buffer that a phase-locked loop drives without a wire is open too. It is connected to the
//! loop.

use super::FlowError;
use super::design::TOP;
use super::family::{FormInput, LoopBuffer, OpenInputs};
use serde_json::{Map, Value};

/// Returns the netlist without open inputs, and with its top module named [`TOP`]. `open` has the family's rules.
///
/// # Errors
/// [`FlowError::Output`] if it is not a netlist of one module.
pub(super) fn closed(open: &OpenInputs, file: &str, netlist: &[u8]) -> Result<Vec<u8>, FlowError> {
    let bad = |reason: String| FlowError::Output { file: file.into(), what: "nextpnr's netlist", reason };
    let mut netlist: Value = serde_json::from_slice(netlist).map_err(|error| bad(error.to_string()))?;
    let modules =
        netlist.get_mut("modules").and_then(Value::as_object_mut).ok_or_else(|| bad("it has no modules".into()))?;
    let mut named = std::mem::take(modules).into_iter();
    let (Some((_, mut top)), None) = (named.next(), named.next()) else {
        return Err(bad("it does not have exactly one module".into()));
    };
    let cells = top.get_mut("cells").and_then(Value::as_object_mut).ok_or_else(|| bad("it has no cells".into()))?;
    if let Some((name, _)) = cells.iter().find(|(_, cell)| !cell.is_object()) {
        return Err(bad(format!("cell {name} is not an object")));
    }
    if let Some(buffer) = &open.loop_buffer {
        join_clocks(buffer, cells).map_err(bad)?;
    }
    cells.values_mut().for_each(|cell| close(open, cell));
    modules.insert(TOP.into(), top);
    serde_json::to_vec(&netlist).map_err(|error| bad(error.to_string()))
}

/// Connects global buffers with an open input to the loop that drives them. The router names such a buffer after the
/// loop's output.
fn join_clocks(names: &LoopBuffer, cells: &mut Map<String, Value>) -> Result<(), String> {
    let LoopBuffer { loop_kind, outputs, second_ends, buffer_kind, buffer_input } = names;
    let is_open = |cell: &Value, port: &str| cell["connections"][port].as_array().is_some_and(Vec::is_empty);
    let nets = cells.values().filter_map(|cell| cell["connections"].as_object()).flat_map(Map::values);
    let mut next = nets.filter_map(Value::as_array).flatten().filter_map(Value::as_u64).max().unwrap_or(0);
    let buffers = cells.iter().filter(|(_, cell)| cell["type"] == *buffer_kind && is_open(cell, buffer_input));
    let buffers: Vec<String> = buffers.map(|(name, _)| name.clone()).collect();
    for buffer in buffers {
        let output = outputs[usize::from(buffer.ends_with(second_ends))];
        let loops = cells.iter().filter(|(_, cell)| cell["type"] == *loop_kind && is_open(cell, output));
        let [name] = &loops.map(|(name, _)| name.clone()).collect::<Vec<_>>()[..] else {
            return Err(format!("nothing drives its global buffer {buffer}"));
        };
        next += 1;
        cells[name]["connections"][output] = Value::Array(vec![next.into()]);
        cells[&buffer]["connections"][*buffer_input] = Value::Array(vec![next.into()]);
    }
    Ok(())
}

/// Connects a cell's open inputs to constants, and removes the parameters that gave the constants.
fn close(open: &OpenInputs, cell: &mut Value) {
    let high = cell.get("type").and_then(Value::as_str).is_some_and(|kind| open.high_cells.contains(&kind));
    let part = |cell: &mut Value, key: &str| match cell.get_mut(key).map(Value::take) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let (mut parameters, mut connections) = (part(cell, "parameters"), part(cell, "connections"));
    for FormInput { input, parameter } in open.form_inputs {
        if connections.get(*input).and_then(Value::as_array).is_some_and(|bits| !bits.is_empty()) {
            parameters.insert((*parameter).into(), "1".into());
        }
    }
    let is_input = |port: &str| cell["port_directions"].get(port).is_some_and(|direction| direction == "input");
    for (port, bits) in &mut connections {
        if !bits.as_array().is_some_and(Vec::is_empty) || !is_input(port) {
            continue;
        }
        let key = format!("{port}MUX");
        // nextpnr appends a space to a text of digits, to distinguish it from a number.
        let tied = parameters.get(&key).and_then(Value::as_str).map(|text| text.trim_end().to_string());
        let bit = match tied.as_deref() {
            Some(bit @ ("0" | "1")) => {
                parameters.remove(&key);
                bit
            }
            Some("INV") => "1",
            _ if high || open.high_inputs.contains(&port.as_str()) => "1",
            _ => "0",
        };
        *bits = Value::Array(vec![bit.into()]);
    }
    cell["parameters"] = Value::Object(parameters);
    cell["connections"] = Value::Object(connections);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::family::Family;

    fn of(family: Family, netlist: &str) -> Result<Value, FlowError> {
        let closed = closed(&family.definition().open_inputs, "n.json", netlist.as_bytes())?;
        Ok(serde_json::from_slice(&closed).expect("JSON"))
    }

    const NETLIST: &str = r#"{"creator": "x", "modules": {"top": {"ports": {}, "cells": {
        "ram": {"type": "DP16KD", "parameters": {"WEBMUX": "INV", "ADA2MUX": "0 ", "WEAMUX": "WEA"},
            "port_directions": {"WEA": "input", "WEB": "input", "ADA2": "input", "CEA": "input", "DOA0": "output"},
            "connections": {"WEA": [], "WEB": [], "ADA2": [], "CEA": [7], "DOA0": []}},
        "ff": {"type": "TRELLIS_FF", "parameters": {"CEMUX": "1 "},
            "port_directions": {"LSR": "input", "CE": "input"}, "connections": {"LSR": [], "CE": []}},
        "mux": {"type": "TRELLIS_COMB", "parameters": {}, "port_directions": {"FXA": "input", "A": "input"},
            "connections": {"FXA": [5], "A": []}}
    }}}}"#;

    #[test]
    fn open_inputs_are_tied_as_the_part_ties_them() {
        let closed = of(Family::Ecp5, NETLIST).unwrap();
        let connections = |cell: &str| closed["modules"][TOP]["cells"][cell]["connections"].clone();
        let ram = serde_json::json!({"WEA": ["1"], "WEB": ["1"], "ADA2": ["0"], "CEA": [7], "DOA0": []});
        assert_eq!(connections("ram"), ram);
        assert_eq!(connections("ff"), serde_json::json!({"LSR": ["0"], "CE": ["1"]}));
        assert_eq!(connections("mux"), serde_json::json!({"FXA": [5], "A": ["1"]}));
        let parameters = |cell: &str| closed["modules"][TOP]["cells"][cell]["parameters"].clone();
        assert_eq!(parameters("ram"), serde_json::json!({"WEBMUX": "INV", "WEAMUX": "WEA"}));
        assert_eq!(parameters("mux"), serde_json::json!({"IS_Z1": "1"}));
    }

    /// A logic cell, and a loop that drives a global buffer without a wire.
    const ICE40: &str = r#"{"creator": "x", "modules": {"top": {"ports": {}, "cells": {
        "lc": {"type": "ICESTORM_LC", "parameters": {}, "port_directions": {"I0": "input", "CEN": "input", "SR": "input", "O": "output"},
            "connections": {"I0": [], "CEN": [], "SR": [9], "O": []}},
        "$gbuf_pll_pllout_a": {"type": "SB_GB", "parameters": {},
            "port_directions": {"USER_SIGNAL_TO_GLOBAL_BUFFER": "input", "GLOBAL_BUFFER_OUTPUT": "output"},
            "connections": {"USER_SIGNAL_TO_GLOBAL_BUFFER": [], "GLOBAL_BUFFER_OUTPUT": [12]}},
        "pll": {"type": "ICESTORM_PLL", "parameters": {}, "port_directions": {"PLLOUT_A_GLOBAL": "output", "SDI": "input"},
            "connections": {"PLLOUT_A_GLOBAL": [], "SDI": []}}
    }}}}"#;

    #[test]
    fn enables_are_high_and_the_loop_drives_its_buffer() {
        let netlist = of(Family::Ice40, ICE40).unwrap();
        let connections = |cell: &str| netlist["modules"][TOP]["cells"][cell]["connections"].clone();
        assert_eq!(connections("lc"), serde_json::json!({"I0": ["0"], "CEN": ["1"], "SR": [9], "O": []}));
        assert_eq!(connections("pll"), serde_json::json!({"PLLOUT_A_GLOBAL": [13], "SDI": ["0"]}));
        let buffer = serde_json::json!({"USER_SIGNAL_TO_GLOBAL_BUFFER": [13], "GLOBAL_BUFFER_OUTPUT": [12]});
        assert_eq!(connections("$gbuf_pll_pllout_a"), buffer);
        let error = of(Family::Ice40, &ICE40.replace("ICESTORM_PLL", "OTHER")).unwrap_err().to_string();
        assert!(error.ends_with("nothing drives its global buffer $gbuf_pll_pllout_a"), "{error}");
    }

    #[test]
    fn what_is_no_netlist_is_refused_by_its_file() {
        let two = r#"{"modules": {"a": {"cells": {}}, "b": {"cells": {}}}}"#;
        let cell = |text: &str| format!(r#"{{"modules": {{"a": {{"cells": {{"c": {text}}}}}}}}}"#);
        let cells = ["3", "[]", "null", "\"SB_GB\""].map(cell);
        for text in ["", "{}", r#"{"modules": {}}"#, two].into_iter().chain(cells.iter().map(String::as_str)) {
            let error = of(Family::Ice40, text).unwrap_err().to_string();
            assert!(error.starts_with("n.json cannot be read as nextpnr's netlist"), "{error}");
        }
        // Inside a cell, values of a wrong type are ignored.
        let cells = [r#"{"connections": 1, "parameters": [], "port_directions": 2}"#, r#"{"connections": {"A": []}}"#];
        for text in cells.map(cell) {
            of(Family::Ice40, &text).expect("it is a netlist of one module");
        }
    }
}
