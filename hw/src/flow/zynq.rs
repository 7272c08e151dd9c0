//! Files for Vivado and for the operating system of a board whose part has a processor: a top module with named
//! interfaces, scripts that package it as a block and build a design around the processor, the register map, and
//! device-tree sources.
//!
//! The scripts follow Vivado's documentation (UG1118 for packages, UG994 for block designs, UG585 and UG1085 for the
//! processors). They have not been run, because this project uses no vendor tool. `docs/zynq.md` describes their use.

mod device_tree;
mod scripts;
mod top;

use super::FlowRequest;
use super::board::HostLink;
use super::design::{SourceFile, Sources};
use crate::isa::registers_table;
pub(super) use device_tree::BUFFER_BYTES;
use device_tree::device_tree;
use scripts::{build, package};

pub(super) use top::top;

/// The names of the files that [`files`] returns.
pub(super) const FILES: [&str; 5] =
    ["package.tcl", "build.tcl", "registers.md", "tilewright.dtsi", "tilewright-overlay.dts"];

/// Returns the additional files of a board whose host is a processor; none for other boards.
pub(super) fn files(request: &FlowRequest, sources: &Sources) -> Vec<SourceFile> {
    let HostLink::Processor { registers, interrupt, port, block, board_file } = &request.board.host else {
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

#[cfg(test)]
mod tests {
    use crate::flow::board::Board;
    use crate::flow::{FlowRequest, design};
    use crate::regs::REGS;

    /// Returns the files of a board with its default configuration.
    fn sources(name: &str) -> (Board, design::Sources) {
        let board = Board::load(name).unwrap();
        let config = board.default_config().unwrap();
        let (board_of, mhz) = (board.clone(), board.core_mhz);
        let request = FlowRequest {
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

    /// Runs a program in a folder if it is installed, and demands that it succeeds.
    fn runs(program: &str, dir: &std::path::Path, arguments: &[&str]) {
        if tilewright_testing::has_program(program) {
            let mut command = std::process::Command::new(program);
            let done = command.args(arguments).current_dir(dir).output().unwrap();
            let text = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{program} {arguments:?}: {text}");
        }
    }

    /// Tcl runs the scripts to their end, with commands that do nothing in place of Vivado's.
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

    /// The device-tree compiler accepts the sources after a tree with the labels that they use.
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

    /// The top module has exactly the peripheral's ports.
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
