// tw_walk beside the loops that the contract writes down: for l0, l1, l2 and each micro-op u, the micro-op's place is
// uop + u, an operand's offset base + l0 step0 + l1 step1 + l2 step2.
//
// The offset is exact, not modulo something, up to and with the first that lies past every memory; that one traps in
// the unit, and nothing behind it counts. So the exact offset is computed here, wide enough, and what is behind is left
// out.
module tw_walk_formal #(
  parameter int unsigned UopW = 2,
  parameter int unsigned UopDepth = 3,
  parameter int unsigned LoopW = 2,
  parameter int unsigned IndexW = 3,
  localparam int unsigned CountW = $clog2(UopDepth + 1)
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic                start_i,
  input logic [UopW-1:0]     uop_i,
  input logic [CountW-1:0]   uops_i,
  input logic [3*LoopW-1:0]  counts_i,
  input logic [3*IndexW-1:0] bases_i,
  input logic [9*IndexW-1:0] steps_i,
  input logic                step_i,
  input logic [1:0]          operand_i
);

  localparam int unsigned OffW = IndexW + 1;
  localparam int unsigned ExactW = IndexW + LoopW + 2;

  logic              valid, last, uop_range, take;
  logic [UopW-1:0]   uop;
  logic [3*OffW-1:0] offsets;

  tw_walk #(.UopW(UopW), .UopDepth(UopDepth), .LoopW(LoopW), .IndexW(IndexW)) u_dut (
    .clk_i, .rst_ni, .start_i, .uop_i, .uops_i, .counts_i, .bases_i, .steps_i, .step_i, .valid_o(valid), .last_o(last),
    .uop_range_o(uop_range), .uop_o(uop), .offsets_o(offsets)
  );
  assign take = valid && step_i;

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  // The operand whose offset is looked at, chosen once.
  logic [1:0] operand_q, operand;
  assign operand = started_q ? operand_q : operand_i;
  always_ff @(posedge clk_i) operand_q <= operand;

  // The instruction, and the place in its loops that the next step has to show.
  logic                busy_q, past_q;
  logic [UopW-1:0]     uop_q;
  logic [CountW-1:0]   uops_q, u_q;
  logic [LoopW-1:0]    count0_q, count1_q, count2_q, l0_q, l1_q, l2_q;
  logic [IndexW-1:0]   base_q, step0_q, step1_q, step2_q;
  logic                u_end, l2_end, l1_end, l0_end;
  assign u_end  = u_q == uops_q - 1'b1;
  assign l2_end = l2_q == count2_q - 1'b1;
  assign l1_end = l1_q == count1_q - 1'b1;
  assign l0_end = l0_q == count0_q - 1'b1;

  logic [ExactW-1:0] at0, at1, at2;
  logic [UopW:0]     uop_at;
  assign at0 = ExactW'(base_q) + ExactW'(l0_q) * ExactW'(step0_q);
  assign at1 = at0 + ExactW'(l1_q) * ExactW'(step1_q);
  assign at2 = at1 + ExactW'(l2_q) * ExactW'(step2_q);
  assign uop_at = (UopW+1)'(uop_q) + (UopW+1)'(u_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
    end else if (start_i) begin
      busy_q <= 1'b1;
    end else if (take && u_end && l2_end && l1_end && l0_end) begin
      busy_q <= 1'b0;
    end
    if (start_i) begin
      past_q   <= 1'b0;
      uop_q    <= uop_i;
      uops_q   <= uops_i;
      count0_q <= counts_i[0 +: LoopW];
      count1_q <= counts_i[LoopW +: LoopW];
      count2_q <= counts_i[2*LoopW +: LoopW];
      base_q   <= bases_i[32'(operand)*IndexW +: IndexW];
      step0_q  <= steps_i[32'(operand)*IndexW +: IndexW];
      step1_q  <= steps_i[(32'd3 + 32'(operand))*IndexW +: IndexW];
      step2_q  <= steps_i[(32'd6 + 32'(operand))*IndexW +: IndexW];
      u_q      <= '0;
      l0_q     <= '0;
      l1_q     <= '0;
      l2_q     <= '0;
    end else if (take) begin
      if (at2[ExactW-1:IndexW] != '0) past_q <= 1'b1;
      u_q <= u_end ? '0 : u_q + 1'b1;
      if (u_end) l2_q <= l2_end ? '0 : l2_q + 1'b1;
      if (u_end && l2_end) l1_q <= l1_end ? '0 : l1_q + 1'b1;
      if (u_end && l2_end && l1_end) l0_q <= l0_q + 1'b1;
    end
  end

  // The shown offset of the chosen operand, and those at the starts of its loops, for the induction.
  logic [OffW-1:0] offset, start0, start1;
  assign offset = offsets[32'(operand)*OffW +: OffW];
  assign start0 = u_dut.o0_q[32'(operand)*OffW +: OffW];
  assign start1 = u_dut.o1_q[32'(operand)*OffW +: OffW];

  always @(posedge clk_i) begin
    if (!started_q) assume (!rst_ni);
    assume (operand != 2'd3);
    // The decoder refuses counts of zero; a unit starts the next instruction with the last step of the one before.
    if (start_i) assume (uops_i != '0 && 32'(uops_i) <= UopDepth && counts_i[0 +: LoopW] != '0 &&
                         counts_i[LoopW +: LoopW] != '0 && counts_i[2*LoopW +: LoopW] != '0);
    assume (!start_i || !valid || (step_i && last));
    assume (!step_i || valid);
    if (rst_ni) begin
      Stands_A: assert (valid == busy_q);
      if (busy_q) begin
        Last_A: assert (last == (u_end && l2_end && l1_end && l0_end));
        Uop_A: assert (uop_range == (32'(uop_at) >= UopDepth) && (uop_range || uop == uop_at[UopW-1:0]));
        if (!past_q) Offset_A: assert (ExactW'(offset) == at2);
        // For the proofs by induction.
        Inside_I: assert (u_q < uops_q && l2_q < count2_q && l1_q < count1_q && l0_q < count0_q);
        Fields_I: assert (u_dut.uop_q == uop_q && u_dut.uops_q == uops_q && u_dut.counts_q == {count2_q, count1_q, count0_q}
                          && u_dut.u_q == u_q && u_dut.l0_q == l0_q && u_dut.l1_q == l1_q && u_dut.l2_q == l2_q);
        Lasts_I: assert (u_dut.last_u_q == (u_q == uops_q - 1'b1) && u_dut.last_2_q == (l2_q == count2_q - 1'b1)
                         && u_dut.last_1_q == (l1_q == count1_q - 1'b1) && u_dut.last_0_q == (l0_q == count0_q - 1'b1));
        Steps_I: assert (u_dut.steps_q[32'(operand)*IndexW +: IndexW] == step0_q
                         && u_dut.steps_q[(32'd3 + 32'(operand))*IndexW +: IndexW] == step1_q
                         && u_dut.steps_q[(32'd6 + 32'(operand))*IndexW +: IndexW] == step2_q);
        if (!past_q) Starts_I: assert (ExactW'(start0) == at0 && ExactW'(start1) == at1);
      end
      All_C: cover (take && last && 32'(uops_q) == 32'd2 && count0_q == LoopW'(2) && count1_q == LoopW'(2) &&
                    count2_q == LoopW'(2) && !past_q && step0_q != '0 && step1_q != '0 && step2_q != '0);
      Next_C: cover (start_i && take && last);
      Past_C: cover (busy_q && !past_q && at2[ExactW-1:IndexW] != '0);
      Range_C: cover (take && uop_range);
    end
  end

endmodule
