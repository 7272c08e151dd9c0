//! The top module of a processor's peripheral.

use crate::config::HwConfig;
use crate::flow::FlowRequest;
use crate::flow::design::TOP;
use crate::peripheral::WINDOW_BYTES;
use crate::rtl::PERIPHERAL;
use std::fmt::Write as _;

/// A port of the peripheral.
struct Port {
    is_input: bool,
    name: &'static str,
    bits: u32,
}

fn input(name: &'static str, bits: u32) -> Port {
    Port { is_input: true, name, bits }
}

fn output(name: &'static str, bits: u32) -> Port {
    Port { is_input: false, name, bits }
}

/// Returns the peripheral's ports.
fn ports(config: &HwConfig) -> Vec<Port> {
    let (addr, bits, bytes) = (config.offset_bits, config.bus_bits, config.bus_bytes());
    vec![
        input("aclk", 1),
        input("aresetn", 1),
        output("irq", 1),
        input("s_axi_awaddr", WINDOW_BYTES.ilog2()),
        input("s_axi_awprot", 3),
        input("s_axi_awvalid", 1),
        output("s_axi_awready", 1),
        input("s_axi_wdata", 32),
        input("s_axi_wstrb", 4),
        input("s_axi_wvalid", 1),
        output("s_axi_wready", 1),
        output("s_axi_bresp", 2),
        output("s_axi_bvalid", 1),
        input("s_axi_bready", 1),
        input("s_axi_araddr", WINDOW_BYTES.ilog2()),
        input("s_axi_arprot", 3),
        input("s_axi_arvalid", 1),
        output("s_axi_arready", 1),
        output("s_axi_rdata", 32),
        output("s_axi_rresp", 2),
        output("s_axi_rvalid", 1),
        input("s_axi_rready", 1),
        output("m_axi_arid", 1),
        output("m_axi_araddr", addr),
        output("m_axi_arlen", 8),
        output("m_axi_arsize", 3),
        output("m_axi_arburst", 2),
        output("m_axi_arcache", 4),
        output("m_axi_arprot", 3),
        output("m_axi_arvalid", 1),
        input("m_axi_arready", 1),
        input("m_axi_rid", 1),
        input("m_axi_rdata", bits),
        input("m_axi_rresp", 2),
        input("m_axi_rlast", 1),
        input("m_axi_rvalid", 1),
        output("m_axi_rready", 1),
        output("m_axi_awid", 1),
        output("m_axi_awaddr", addr),
        output("m_axi_awlen", 8),
        output("m_axi_awsize", 3),
        output("m_axi_awburst", 2),
        output("m_axi_awcache", 4),
        output("m_axi_awprot", 3),
        output("m_axi_awvalid", 1),
        input("m_axi_awready", 1),
        output("m_axi_wdata", bits),
        output("m_axi_wstrb", bytes),
        output("m_axi_wlast", 1),
        output("m_axi_wvalid", 1),
        input("m_axi_wready", 1),
        input("m_axi_bid", 1),
        input("m_axi_bresp", 2),
        input("m_axi_bvalid", 1),
        output("m_axi_bready", 1),
    ]
}

/// Writes the top module: the peripheral in plain Verilog, with numbers for widths and attributes that name the
/// interfaces, so that Vivado need not infer them.
pub(in crate::flow) fn top(request: &FlowRequest) -> String {
    let config = request.config;
    let ports = ports(config);
    let mut text = format!(
        "// {} on {}: the peripheral, its interfaces named for the vendor's tool.\nmodule {TOP} (",
        config.name, request.board.title
    );
    for (at, Port { is_input, name, bits }) in ports.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let direction = if *is_input { "input  wire" } else { "output wire" };
        let range = if *bits == 1 { String::new() } else { format!(" [{}:0]", bits - 1) };
        let _ = write!(text, "{comma}{}\n  {direction}{range} {name}", attributes(name));
    }
    let _ = writeln!(text, "\n);\n\n  {PERIPHERAL} u_peripheral (");
    let joins: Vec<String> = ports.iter().map(|Port { name, .. }| format!("    .{name}({name})")).collect();
    let _ = write!(text, "{}\n  );\n\nendmodule\n", joins.join(",\n"));
    text
}

/// Returns the attributes of a port, each on a line of its own.
fn attributes(port: &str) -> String {
    let info =
        |interface: &str, signal: &str| format!("\n  (* X_INTERFACE_INFO = \"xilinx.com:{interface} {signal}\" *)");
    let parameter = |text: &str| format!("\n  (* X_INTERFACE_PARAMETER = \"{text}\" *)");
    match port {
        "aclk" => {
            info("signal:clock:1.0 aclk", "CLK")
                + &parameter("XIL_INTERFACENAME aclk, ASSOCIATED_BUSIF s_axi:m_axi, ASSOCIATED_RESET aresetn")
        }
        "aresetn" => {
            info("signal:reset:1.0 aresetn", "RST") + &parameter("XIL_INTERFACENAME aresetn, POLARITY ACTIVE_LOW")
        }
        "irq" => {
            info("signal:interrupt:1.0 irq", "INTERRUPT") + &parameter("XIL_INTERFACENAME irq, SENSITIVITY LEVEL_HIGH")
        }
        _ => {
            let (interface, signal) = port.split_at("s_axi".len());
            info(&format!("interface:aximm:1.0 {interface}"), &signal[1..].to_uppercase())
        }
    }
}
