// What must hold at every clock edge out of reset: a clocked property in simulation, an immediate assertion for
// synthesis tools and provers, nothing where assertions are switched off.
`ifdef VERILATOR
`define TW_ASSERT(name, cond) name: assert property (@(posedge clk_i) disable iff (!rst_ni) (cond));
`elsif FORMAL
`define TW_ASSERT(name, cond) always @(posedge clk_i) if (rst_ni) name: assert (cond);
`else
`define TW_ASSERT(name, cond)
`endif
