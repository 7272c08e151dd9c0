// Settings that depend on the FPGA part. These are for simulation; a flow writes those of its part.
package tw_part_pkg;

  // Number of gemm lanes, the last ones, that are built from lookup tables because the part has too few multipliers
  localparam int unsigned GemmTableLanes = 0;

endpackage
