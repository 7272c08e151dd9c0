// What a part wants otherwise than simulators do. This one is for simulation; a flow writes the part's own.
package tw_part_pkg;

  // Of gemm's lanes the last ones that are built of lookup tables, for want of multipliers.
  localparam int unsigned GemmTableLanes = 0;

endpackage
