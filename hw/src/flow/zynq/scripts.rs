//! Scripts for Vivado: one packages the core as a block, the other builds a design around the processor.

use crate::flow::FlowRequest;
use crate::flow::design::{Sources, TOP};
use crate::flow::family::Processor;
use crate::peripheral::WINDOW_BYTES;
use crate::regs::{Access, REGS};
use std::fmt::Write as _;

/// The name of the package in Vivado's catalog.
const VLNV: &str = "tilewright:accelerator:tilewright:1.0";

/// Writes the script that packages the core as a block of Vivado's catalog.
pub(super) fn package(request: &FlowRequest, sources: &Sources) -> String {
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

/// Writes the script that builds the block design and its bitstream.
pub(super) fn build(
    request: &FlowRequest,
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
