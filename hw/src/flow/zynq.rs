//! What a vendor's tool and an operating system need of a board whose part has a processor: scripts that package the core as a
//! peripheral and build a block design around the processor, and a fragment of a device tree.
//!
//! The scripts are written after Vivado's documentation (UG1118 packages, UG994 block designs, UG585 and UG1085 the processors) and
//! have not been run: no vendor tool is used here.

use super::Request;
use super::board::Host;
use super::design::Sources;
use crate::rtl::PERIPHERAL;
use std::fmt::Write as _;

/// Bytes of the registers' window.
const WINDOW: u64 = 0x1000;

/// The files' names and texts; none where the board's host is no processor.
pub(super) fn files(request: &Request, sources: &Sources) -> Vec<(String, String)> {
    let Host::Processor { registers, interrupt, port, block } = &request.board.host else { return Vec::new() };
    let registers = *registers;
    vec![
        ("package.tcl".into(), package(request, sources)),
        ("build.tcl".into(), build(request, registers, port, block)),
        ("tilewright.dtsi".into(), device_tree(request, registers, *interrupt)),
    ]
}

/// Packages the core as a block of the tool's catalogue.
fn package(request: &Request, sources: &Sources) -> String {
    let mut text = format!(
        "# Packages {PERIPHERAL} of configuration {} as a block, in the folder ip.\n# vivado -mode batch -source package.tcl\n\
         create_project -in_memory -part {}\n",
        request.config.name, request.board.device
    );
    for file in sources.verilog() {
        let _ = writeln!(text, "read_verilog -sv {file}");
    }
    let _ = write!(
        text,
        "set_property include_dirs . [current_fileset]\nset_property top {PERIPHERAL} [current_fileset]\n\
         ipx::package_project -root_dir ip -vendor tilewright -library accelerator -taxonomy /UserIP -import_files -force\n\
         set core [ipx::current_core]\nset_property name {PERIPHERAL} $core\nset_property version 1.0 $core\n\
         set_property display_name \"Tilewright {}\" $core\n\
         ipx::infer_bus_interfaces xilinx.com:interface:aximm_rtl:1.0 $core\n\
         ipx::infer_bus_interface aclk xilinx.com:signal:clock_rtl:1.0 $core\n\
         ipx::infer_bus_interface aresetn xilinx.com:signal:reset_rtl:1.0 $core\n\
         ipx::infer_bus_interface irq xilinx.com:signal:interrupt_rtl:1.0 $core\n\
         ipx::associate_bus_interfaces -busif s_axi -clock aclk $core\nipx::associate_bus_interfaces -busif m_axi -clock aclk $core\n\
         ipx::create_xgui_files $core\nipx::update_checksums $core\nipx::save_core $core\n",
        request.config.name
    );
    text
}

/// Builds the block design and its bitstream.
fn build(request: &Request, registers: u64, port: &str, block: &str) -> String {
    let mhz = request.mhz;
    let ultrascale = block == "zynq_ultra_ps_e";
    // The general-purpose port of the processor, its clock and reset, the memory port's clock, and what turns them on.
    let (master, clock, reset, port_clock, interrupt, settings) = if ultrascale {
        (
            "M_AXI_HPM0_FPD",
            "pl_clk0",
            "pl_resetn0",
            "saxihp0_fpd_aclk",
            "pl_ps_irq0",
            format!(
                "CONFIG.PSU__FPGA_PL0_ENABLE 1 CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ {mhz} CONFIG.PSU__USE__M_AXI_GP0 1 \
                 CONFIG.PSU__USE__S_AXI_GP2 1 CONFIG.PSU__USE__IRQ0 1"
            ),
        )
    } else {
        (
            "M_AXI_GP0",
            "FCLK_CLK0",
            "FCLK_RESET0_N",
            "S_AXI_HP0_ACLK",
            "IRQ_F2P",
            format!(
                "CONFIG.PCW_EN_CLK0_PORT 1 CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ {mhz} CONFIG.PCW_USE_M_AXI_GP0 1 \
                 CONFIG.PCW_USE_S_AXI_HP0 1 CONFIG.PCW_USE_FABRIC_INTERRUPT 1 CONFIG.PCW_IRQ_F2P_INTR 1"
            ),
        )
    };
    let master_clock = if ultrascale { "maxihpm0_fpd_aclk" } else { "M_AXI_GP0_ACLK" };
    format!(
        "# Builds {config} on {board}: the processor, the peripheral that package.tcl made, and what joins them.\n\
         # vivado -mode batch -source build.tcl -tclargs BOARD_PART, where BOARD_PART names the vendor's file of the board, whose settings\n\
         # of the memory and the pins the processor takes; without it they are the tool's defaults.\n\
         create_project board vivado -part {device} -force\n\
         if {{$argc > 0}} {{ set_property board_part [lindex $argv 0] [current_project] }}\n\
         set_property ip_repo_paths ip [current_project]\nupdate_ip_catalog\n\
         create_bd_design system\n\
         set ps [create_bd_cell -type ip -vlnv xilinx.com:ip:{block} ps]\n\
         if {{$argc > 0}} {{ apply_bd_automation -rule xilinx.com:bd_rule:{rule} -config {{apply_board_preset 1}} $ps }}\n\
         set_property -dict [list {settings}] $ps\n\
         set core [create_bd_cell -type ip -vlnv tilewright:accelerator:{PERIPHERAL} core]\n\
         set reset [create_bd_cell -type ip -vlnv xilinx.com:ip:proc_sys_reset reset]\n\
         set registers [create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect registers]\n\
         set_property CONFIG.NUM_SI 1 $registers\n\
         set memory [create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect memory]\n\
         set_property CONFIG.NUM_SI 1 $memory\n\
         connect_bd_net [get_bd_pins ps/{clock}] [get_bd_pins core/aclk] [get_bd_pins reset/slowest_sync_clk] \\\n  \
         [get_bd_pins registers/aclk] [get_bd_pins memory/aclk] [get_bd_pins ps/{master_clock}] [get_bd_pins ps/{port_clock}]\n\
         connect_bd_net [get_bd_pins ps/{reset}] [get_bd_pins reset/ext_reset_in]\n\
         connect_bd_net [get_bd_pins reset/peripheral_aresetn] [get_bd_pins core/aresetn] [get_bd_pins registers/aresetn] \\\n  \
         [get_bd_pins memory/aresetn]\n\
         connect_bd_intf_net [get_bd_intf_pins ps/{master}] [get_bd_intf_pins registers/S00_AXI]\n\
         connect_bd_intf_net [get_bd_intf_pins registers/M00_AXI] [get_bd_intf_pins core/s_axi]\n\
         connect_bd_intf_net [get_bd_intf_pins core/m_axi] [get_bd_intf_pins memory/S00_AXI]\n\
         connect_bd_intf_net [get_bd_intf_pins memory/M00_AXI] [get_bd_intf_pins ps/{port}]\n\
         connect_bd_net [get_bd_pins core/irq] [get_bd_pins ps/{interrupt}]\n\
         assign_bd_address\n\
         set_property offset 0x{registers:x} [get_bd_addr_segs ps/Data/SEG_core_*]\n\
         set_property range {window}K [get_bd_addr_segs ps/Data/SEG_core_*]\n\
         validate_bd_design\nsave_bd_design\n\
         make_wrapper -files [get_files system.bd] -top -import\n\
         launch_runs impl_1 -to_step write_bitstream -jobs 4\nwait_on_run impl_1\n\
         write_hw_platform -fixed -include_bit -force board.xsa\n",
        config = request.config.name,
        board = request.board.title,
        device = request.board.device,
        rule = if ultrascale { "zynq_ultra_ps_e" } else { "processing_system7" },
        window = WINDOW / 1024,
    )
}

/// The nodes by which the operating system hands out the registers, the interrupt and a buffer of contiguous memory.
fn device_tree(request: &Request, registers: u64, interrupt: u32) -> String {
    let cells = |value: u64| format!("0x{:x} 0x{:x}", value >> 32, value & 0xffff_ffff);
    let bytes = request.config.memory_bytes();
    // Trees of the 32-bit processor have addresses and sizes of one cell, those of the 64-bit one of two.
    let wide = registers > 0x8000_0000;
    let reg =
        if wide { format!("{} {}", cells(registers), cells(WINDOW)) } else { format!("0x{registers:x} 0x{WINDOW:x}") };
    format!(
        "/* Tilewright {} at {}: registers and interrupt by uio_pdrv_genirq (of_id=generic-uio), memory by u-dma-buf. */\n\
         / {{\n\ttilewright@{registers:x} {{\n\t\tcompatible = \"generic-uio\";\n\t\treg = <{reg}>;\n\t\t\
         interrupts = <0 {interrupt} 4>;\n\t}};\n\n\ttilewright_memory {{\n\t\tcompatible = \"ikwzm,u-dma-buf\";\n\t\t\
         device-name = \"tilewright\";\n\t\tsize = <0x{:x}>;\n\t}};\n}};\n",
        request.config.name,
        request.board.title,
        bytes.min(64 << 20),
    )
}

#[cfg(test)]
mod tests {
    use crate::flow::board::Board;
    use crate::flow::{Request, design};

    #[test]
    fn boards_with_a_processor_have_scripts_that_name_every_source() {
        for name in ["pynq-z2", "zcu104"] {
            let board = Board::load(name).unwrap();
            let config = board.default_config().unwrap();
            let request = Request {
                board: &board,
                config: &config,
                shell: "",
                mhz: board.core_mhz,
                seed: 1,
                allow_slow: false,
                estimate: false,
            };
            let sources = design::sources(&request).unwrap();
            let text = |name: &str| {
                sources.files.iter().find(|(file, _)| file == name).map(|(_, text)| text.as_str()).unwrap()
            };
            for file in sources.verilog() {
                assert!(text("package.tcl").contains(&format!("read_verilog -sv {file}\n")), "{name}: {file}");
            }
            assert!(text("build.tcl").contains(&board.device) && text("build.tcl").contains("S_AXI_HP0"), "{name}");
            assert!(text("tilewright.dtsi").contains("generic-uio"), "{name}");
            assert!(!sources.files.iter().any(|(file, _)| file == "tw_shell.v"), "{name}");
        }
    }
}
