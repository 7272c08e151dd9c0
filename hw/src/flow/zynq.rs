//! What a vendor's tool and an operating system need of a board whose part has a processor: a top module that names its interfaces,
//! scripts that package it as a block and build a design around the processor, the register map, and device-tree sources.
//!
//! The scripts are written after Vivado's documentation (UG1118 packages, UG994 block designs, UG585 and UG1085 the processors) and
//! have not been run: no vendor tool is used here. `docs/zynq.md` has how they are meant to be used.

use super::Request;
use super::board::Host;
use super::design::{SourceFile, Sources, TOP};
use super::family::Processor;
use crate::config::HwConfig;
use crate::isa::registers_table;
use crate::peripheral::{DEFAULT_NAME, WINDOW_BYTES};
use crate::regs::{Access, REGS};
use crate::rtl::PERIPHERAL;
use std::fmt::Write as _;

/// The package as Vivado's catalogue has it.
const VLNV: &str = "tilewright:accelerator:tilewright:1.0";
/// Bytes of the buffer that the device tree asks for, at the most: what a kernel's area of contiguous memory mostly has.
const BUFFER_BYTES: u64 = 64 << 20;

/// The names of the files that [`files`] gives.
pub(super) const FILES: [&str; 5] =
    ["package.tcl", "build.tcl", "registers.md", "tilewright.dtsi", "tilewright-overlay.dts"];

/// The files' names and texts beside those of every board; none where the board's host is no processor.
pub(super) fn files(request: &Request, sources: &Sources) -> Vec<SourceFile> {
    let Host::Processor { registers, interrupt, port, block, board_file } = &request.board.host else {
        return Vec::new();
    };
    let Some(processor) = request.board.family.definition().processor else { return Vec::new() };
    let texts = [
        package(request, sources),
        build(request, processor, *registers, port, block, board_file),
        format!("# Registers of {} at {registers:#x}\n\n{}", request.board.title, registers_table()),
        device_tree(request, processor, *registers, *interrupt),
        "/* The same as an overlay, for a system that runs: dtc -@ -O dtb -o tilewright.dtbo tilewright-overlay.dts */\n\
         /dts-v1/;\n/plugin/;\n/include/ \"tilewright.dtsi\"\n"
            .into(),
    ];
    FILES.into_iter().zip(texts).map(|(name, text)| SourceFile::new(name, text)).collect()
}

/// A port of the peripheral: whether it is an input, its name, and its bits.
type Port = (bool, &'static str, u32);

/// The peripheral's ports.
fn ports(config: &HwConfig) -> Vec<Port> {
    let (addr, bits, bytes) = (config.offset_bits, config.bus_bits, config.bus_bytes());
    vec![
        (true, "aclk", 1),
        (true, "aresetn", 1),
        (false, "irq", 1),
        (true, "s_axi_awaddr", WINDOW_BYTES.ilog2()),
        (true, "s_axi_awprot", 3),
        (true, "s_axi_awvalid", 1),
        (false, "s_axi_awready", 1),
        (true, "s_axi_wdata", 32),
        (true, "s_axi_wstrb", 4),
        (true, "s_axi_wvalid", 1),
        (false, "s_axi_wready", 1),
        (false, "s_axi_bresp", 2),
        (false, "s_axi_bvalid", 1),
        (true, "s_axi_bready", 1),
        (true, "s_axi_araddr", WINDOW_BYTES.ilog2()),
        (true, "s_axi_arprot", 3),
        (true, "s_axi_arvalid", 1),
        (false, "s_axi_arready", 1),
        (false, "s_axi_rdata", 32),
        (false, "s_axi_rresp", 2),
        (false, "s_axi_rvalid", 1),
        (true, "s_axi_rready", 1),
        (false, "m_axi_arid", 1),
        (false, "m_axi_araddr", addr),
        (false, "m_axi_arlen", 8),
        (false, "m_axi_arsize", 3),
        (false, "m_axi_arburst", 2),
        (false, "m_axi_arcache", 4),
        (false, "m_axi_arprot", 3),
        (false, "m_axi_arvalid", 1),
        (true, "m_axi_arready", 1),
        (true, "m_axi_rid", 1),
        (true, "m_axi_rdata", bits),
        (true, "m_axi_rresp", 2),
        (true, "m_axi_rlast", 1),
        (true, "m_axi_rvalid", 1),
        (false, "m_axi_rready", 1),
        (false, "m_axi_awid", 1),
        (false, "m_axi_awaddr", addr),
        (false, "m_axi_awlen", 8),
        (false, "m_axi_awsize", 3),
        (false, "m_axi_awburst", 2),
        (false, "m_axi_awcache", 4),
        (false, "m_axi_awprot", 3),
        (false, "m_axi_awvalid", 1),
        (true, "m_axi_awready", 1),
        (false, "m_axi_wdata", bits),
        (false, "m_axi_wstrb", bytes),
        (false, "m_axi_wlast", 1),
        (false, "m_axi_wvalid", 1),
        (true, "m_axi_wready", 1),
        (true, "m_axi_bid", 1),
        (true, "m_axi_bresp", 2),
        (true, "m_axi_bvalid", 1),
        (false, "m_axi_bready", 1),
    ]
}

/// The top module: the peripheral in plain Verilog, with numbers for widths and attributes that tell the interfaces, so that the
/// vendor's tool has nothing to infer.
pub(super) fn top(request: &Request) -> String {
    let config = request.config;
    let ports = ports(config);
    let mut text = format!(
        "// {} on {}: the peripheral, its interfaces named for the vendor's tool.\nmodule {TOP} (",
        config.name, request.board.title
    );
    for (at, (is_input, name, bits)) in ports.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let direction = if *is_input { "input  wire" } else { "output wire" };
        let range = if *bits == 1 { String::new() } else { format!(" [{}:0]", bits - 1) };
        let _ = write!(text, "{comma}{}\n  {direction}{range} {name}", attributes(name));
    }
    let _ = writeln!(text, "\n);\n\n  {PERIPHERAL} u_peripheral (");
    let joins: Vec<String> = ports.iter().map(|(_, name, _)| format!("    .{name}({name})")).collect();
    let _ = write!(text, "{}\n  );\n\nendmodule\n", joins.join(",\n"));
    text
}

/// The attributes before a port, each on a line.
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

/// Packages the core as a block of the tool's catalogue.
fn package(request: &Request, sources: &Sources) -> String {
    let mut text = format!(
        "# Packages configuration {} as a block, in the folder ip.\n# vivado -mode batch -source package.tcl\n\
         create_project -in_memory -part {}\n",
        request.config.name, request.board.device
    );
    for file in sources.verilog() {
        let kind = if file.ends_with(".sv") { " -sv" } else { "" };
        let _ = writeln!(text, "read_verilog{kind} {file}");
    }
    let headers: Vec<&str> =
        sources.files.iter().map(|file| file.name.as_str()).filter(|name| name.ends_with(".svh")).collect();
    let _ = write!(
        text,
        "add_files -norecurse {{{}}}\nset_property file_type {{Verilog Header}} [get_files {{{}}}]\n\
         set_property include_dirs . [current_fileset]\nset_property top {TOP} [current_fileset]\n\
         ipx::package_project -root_dir ip -vendor tilewright -library accelerator -taxonomy /UserIP -import_files -force\n\
         set core [ipx::current_core]\nset_property name tilewright $core\nset_property version 1.0 $core\n\
         set_property display_name \"Tilewright {}\" $core\n\
         # The top module's attributes name the interfaces; its registers follow.\n\
         set map [ipx::add_memory_map -quiet s_axi $core]\nset block [ipx::add_address_block -quiet reg0 $map]\n\
         set_property range {WINDOW_BYTES} $block\nset_property width 32 $block\nset_property usage register $block\n",
        headers.join(" "),
        headers.join(" "),
        request.config.name
    );
    for reg in REGS {
        let access = match reg.access {
            Access::Read => "read-only",
            Access::ReadWrite => "read-write",
            Access::Write => "write-only",
        };
        let _ = writeln!(
            text,
            "set reg [ipx::add_register {} $block]\nset_property address_offset {:#05x} $reg\nset_property size 32 $reg\n\
             set_property access {access} $reg\nset_property description {{{}}} $reg",
            reg.name, reg.addr, reg.doc
        );
    }
    text.push_str(
        "set_property slave_memory_map_ref s_axi [ipx::get_bus_interfaces s_axi -of_objects $core]\n\
         ipx::create_xgui_files $core\nipx::update_checksums $core\nipx::check_integrity $core\nipx::save_core $core\n",
    );
    text
}

/// Builds the block design and its bitstream.
fn build(
    request: &Request,
    processor: &Processor,
    registers: u64,
    port: &str,
    block: &str,
    board_file: &str,
) -> String {
    let Processor {
        master,
        master_clock,
        clock,
        reset,
        port_clock,
        interrupts,
        clock_settings,
        port_settings,
        rule,
        rule_settings,
        ..
    } = processor;
    format!(
        "# Builds {config} on {board}: the processor, the block that package.tcl made, and what joins them.\n\
         # vivado -mode batch -source build.tcl\n\
         # The settings of the processor's memory and pins are those of the board's file, which Vivado must have.\n\
         set board_files [lsort -dictionary [get_board_parts -quiet *:{board_file}:*]]\n\
         if {{[llength $board_files] == 0}} {{\n  \
         error \"Vivado has no board file of {board_file}; install it (Tools, Vivado Store, Boards) and run again\"\n}}\n\
         proc newest {{name}} {{ return [lindex [lsort -dictionary [get_ipdefs *:ip:$name:*]] end] }}\n\
         create_project board vivado -part {device} -force\n\
         set_property board_part [lindex $board_files end] [current_project]\n\
         set_property ip_repo_paths ip [current_project]\nupdate_ip_catalog\n\
         create_bd_design system\n\
         set ps [create_bd_cell -type ip -vlnv [newest {block}] ps]\n\
         apply_bd_automation -rule xilinx.com:bd_rule:{rule} -config {{{rule_settings}}} $ps\n\
         set_property -dict [list {clock_settings} {mhz} {port_settings}] $ps\n\
         set core [create_bd_cell -type ip -vlnv {VLNV} core]\n\
         set reset [create_bd_cell -type ip -vlnv [newest proc_sys_reset] reset]\n\
         foreach name {{registers memory}} {{\n  \
         set_property CONFIG.NUM_SI 1 [create_bd_cell -type ip -vlnv [newest smartconnect] $name]\n}}\n\
         connect_bd_net [get_bd_pins ps/{clock}] [get_bd_pins core/aclk] [get_bd_pins reset/slowest_sync_clk] \\\n  \
         [get_bd_pins registers/aclk] [get_bd_pins memory/aclk] [get_bd_pins ps/{master_clock}] [get_bd_pins ps/{port_clock}]\n\
         connect_bd_net [get_bd_pins ps/{reset}] [get_bd_pins reset/ext_reset_in]\n\
         connect_bd_net [get_bd_pins reset/peripheral_aresetn] [get_bd_pins core/aresetn] [get_bd_pins registers/aresetn] \\\n  \
         [get_bd_pins memory/aresetn]\n\
         connect_bd_intf_net [get_bd_intf_pins ps/{master}] [get_bd_intf_pins registers/S00_AXI]\n\
         connect_bd_intf_net [get_bd_intf_pins registers/M00_AXI] [get_bd_intf_pins core/s_axi]\n\
         connect_bd_intf_net [get_bd_intf_pins core/m_axi] [get_bd_intf_pins memory/S00_AXI]\n\
         connect_bd_intf_net [get_bd_intf_pins memory/M00_AXI] [get_bd_intf_pins ps/{port}]\n\
         connect_bd_net [get_bd_pins core/irq] [get_bd_pins ps/{interrupts}]\n\
         assign_bd_address\n\
         set_property range {window}K [get_bd_addr_segs ps/Data/SEG_core_*]\n\
         set_property offset 0x{registers:x} [get_bd_addr_segs ps/Data/SEG_core_*]\n\
         validate_bd_design\nsave_bd_design\n\
         make_wrapper -files [get_files system.bd] -top -import\n\
         set_property top system_wrapper [current_fileset]\nupdate_compile_order -fileset sources_1\n\
         launch_runs impl_1 -to_step write_bitstream -jobs 4\nwait_on_run impl_1\n\
         if {{[get_property PROGRESS [get_runs impl_1]] != \"100%\"}} {{ error \"the run failed; its log is vivado/board.runs/impl_1/runme.log\" }}\n\
         open_run impl_1\nreport_utilization -hierarchical -file utilization.txt\nreport_timing_summary -file timing.txt\nreport_power -file power.txt\n\
         set slack [get_property STATS.WNS [get_runs impl_1]]\n\
         if {{$slack < 0}} {{ error \"{mhz} MHz are missed by $slack ns; timing.txt has the paths, and synth --mhz asks for less\" }}\n\
         write_hw_platform -fixed -include_bit -force board.xsa\n",
        config = request.config.name,
        board = request.board.title,
        device = request.board.device,
        mhz = request.mhz,
        window = WINDOW_BYTES / 1024,
    )
}

/// The nodes by which the operating system hands out the registers, the interrupt and a buffer of contiguous memory.
fn device_tree(request: &Request, processor: &Processor, registers: u64, interrupt: u32) -> String {
    let cells = |value: u64| match processor.wide {
        true => format!("{:#x} {:#x}", value >> 32, value & 0xffff_ffff),
        false => format!("{value:#x}"),
    };
    let bytes = request.config.memory_bytes().min(BUFFER_BYTES);
    let mut text = format!(
        "/* Tilewright {config} at {board}: registers and interrupt by uio_pdrv_genirq (of_id=generic-uio), memory by u-dma-buf.\n   \
         For the board's device tree: /include/ it behind the processor's, whose labels it uses. */\n\
         &{{/}} {{\n\t{DEFAULT_NAME}@{registers:x} {{\n\t\tcompatible = \"generic-uio\";\n\t\treg = <{reg} {window}>;\n\t\t\
         interrupt-parent = <&{controller}>;\n\t\tinterrupts = <0 {interrupt} 4>;\n\t}};\n\n\t{DEFAULT_NAME}_memory {{\n\t\t\
         compatible = \"ikwzm,u-dma-buf\";\n\t\tdevice-name = \"{DEFAULT_NAME}\";\n\t\tsize = <{bytes:#x}>;\n\t}};\n}};\n",
        config = request.config.name,
        board = request.board.title,
        reg = cells(registers),
        window = cells(WINDOW_BYTES),
        controller = processor.controller,
    );
    if !processor.wide {
        // Nobody else asks for the fabric's clock, so that the system would turn it off.
        text.push_str("\n&clkc {\n\tfclk-enable = <0x1>;\n};\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::flow::board::Board;
    use crate::flow::{Request, design};
    use crate::regs::REGS;

    /// The files of a board with its own configuration.
    fn sources(name: &str) -> (Board, design::Sources) {
        let board = Board::load(name).unwrap();
        let config = board.default_config().unwrap();
        let (board_of, mhz) = (board.clone(), board.core_mhz);
        let request = Request {
            board: &board_of,
            config: &config,
            hw: &board_of.hw,
            shell: "",
            mhz,
            seed: 1,
            allow_slow: false,
            estimate: false,
            time_limit: None,
            checker: "",
        };
        (board, design::sources(&request).unwrap())
    }

    fn text<'a>(sources: &'a design::Sources, name: &str) -> &'a str {
        &sources.files.iter().find(|file| file.name == name).unwrap().text
    }

    #[test]
    fn boards_with_a_processor_have_scripts_that_name_every_source() {
        for name in WITH_PROCESSOR {
            let (board, sources) = sources(name);
            let package = text(&sources, "package.tcl");
            for file in sources.files.iter().map(|file| file.name.as_str()) {
                let named = match file.rsplit('.').next() {
                    Some("sv") => package.contains(&format!("read_verilog -sv {file}\n")),
                    Some("v") => package.contains(&format!("read_verilog {file}\n")),
                    Some("svh") => package.contains(file),
                    _ => continue,
                };
                assert!(named, "{name}: {file}");
            }
            for reg in REGS {
                assert!(package.contains(&format!("ipx::add_register {} ", reg.name)), "{name}: {}", reg.name);
                assert!(text(&sources, "registers.md").contains(reg.name), "{name}: {}", reg.name);
            }
            let build = text(&sources, "build.tcl");
            let reports = ["-file utilization.txt", "-file timing.txt", "report_power -file power.txt"];
            assert!(reports.iter().all(|report| build.contains(report)), "{name}:\n{build}");
            assert!(build.contains(&board.device) && build.contains("S_AXI_HP0"), "{name}");
            for script in [package, build] {
                let count = |c| script.matches(c).count();
                assert_eq!((count('{'), count('[')), (count('}'), count(']')), "{name}:\n{script}");
                assert!(!script.contains("  \n") && script.lines().all(|line| line.len() < 400), "{name}");
            }
            assert!(!sources.files.iter().any(|file| file.name == "tw_shell.v"), "{name}");
        }
    }

    #[test]
    fn the_device_tree_has_what_the_driver_looks_for() {
        let (_, zynq) = sources("pynq-z1");
        expect_test::expect![[r#"
            /* Tilewright 1x8x16 at Digilent PYNQ-Z1: registers and interrupt by uio_pdrv_genirq (of_id=generic-uio), memory by u-dma-buf.
               For the board's device tree: /include/ it behind the processor's, whose labels it uses. */
            &{/} {
            	tilewright@43c00000 {
            		compatible = "generic-uio";
            		reg = <0x43c00000 0x1000>;
            		interrupt-parent = <&intc>;
            		interrupts = <0 29 4>;
            	};

            	tilewright_memory {
            		compatible = "ikwzm,u-dma-buf";
            		device-name = "tilewright";
            		size = <0x4000000>;
            	};
            };

            &clkc {
            	fclk-enable = <0x1>;
            };
        "#]]
        .assert_eq(text(&zynq, "tilewright.dtsi"));
        let (_, ultrascale) = sources("zcu104");
        let tree = text(&ultrascale, "tilewright.dtsi");
        assert!(tree.contains("reg = <0x0 0xa0000000 0x0 0x1000>;") && tree.contains("<&gic>"), "{tree}");
    }

    const WITH_PROCESSOR: [&str; 4] = ["pynq-z1", "pynq-z2", "ultra96", "zcu104"];

    /// Runs a program on a file of a folder, where it is installed.
    fn runs(program: &str, dir: &std::path::Path, arguments: &[&str]) {
        if tilewright_testing::has_program(program) {
            let mut command = std::process::Command::new(program);
            let done = command.args(arguments).current_dir(dir).output().unwrap();
            let text = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{program} {arguments:?}: {text}");
        }
    }

    /// The scripts are whole: Tcl runs them to their end, with commands that do nothing in the places of Vivado's.
    #[test]
    fn scripts_run_to_their_end() {
        for name in WITH_PROCESSOR {
            let dir = tempfile::tempdir().unwrap();
            let (_, sources) = sources(name);
            for script in ["package.tcl", "build.tcl"] {
                let nothing = "proc unknown args { return thing }\n\
                               proc get_property {key args} { expr {$key eq {PROGRESS} ? {100%} : 1} }\n";
                let end = "\nset end [open ended w]\nclose $end\n";
                std::fs::write(dir.path().join(script), [nothing, text(&sources, script), end].concat()).unwrap();
                runs("tclsh", dir.path(), &[script]);
                let ended = std::fs::remove_file(dir.path().join("ended"));
                assert!(ended.is_ok() || !tilewright_testing::has_program("tclsh"), "{name}: {script} ends early");
            }
        }
    }

    /// The device tree's compiler takes the sources behind a tree that has the labels which they use.
    #[test]
    fn the_device_tree_is_compiled() {
        for name in WITH_PROCESSOR {
            let dir = tempfile::tempdir().unwrap();
            let (_, sources) = sources(name);
            std::fs::write(dir.path().join("tilewright.dtsi"), text(&sources, "tilewright.dtsi")).unwrap();
            let labels = ["intc", "gic", "clkc"].map(|label| format!("\t{label}: {label} {{ }};\n")).concat();
            let tree = format!("/dts-v1/;\n/ {{\n{labels}}};\n/include/ \"tilewright.dtsi\"\n");
            std::fs::write(dir.path().join("board.dts"), tree).unwrap();
            runs("dtc", dir.path(), &["-q", "-I", "dts", "-O", "dtb", "-o", "board.dtb", "board.dts"]);
        }
    }

    /// The top module's ports are the peripheral's, one for one.
    #[test]
    fn the_top_module_has_every_port_of_the_peripheral() {
        let (_, sources) = sources("ultra96");
        let top = text(&sources, "tw_top.v");
        let peripheral = text(&sources, "tw_axi.sv");
        let header = peripheral[..peripheral.find(");").unwrap()].lines();
        let ports =
            header.filter(|line| line.trim_start().starts_with("input") || line.trim_start().starts_with("output"));
        let names: Vec<&str> = ports.map(|line| line.trim_end_matches(',').rsplit(' ').next().unwrap()).collect();
        assert_eq!(names.len(), top.matches("X_INTERFACE_INFO").count());
        for name in names {
            assert!(top.contains(&format!(".{name}({name})")), "{name}");
        }
        assert!(
            top.contains("\"xilinx.com:interface:aximm:1.0 m_axi RDATA\" *)\n  input  wire [63:0] m_axi_rdata"),
            "{top}"
        );
    }
}
