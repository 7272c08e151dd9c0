// Walks a range of micro-ops inside three nested loops, one micro-op a step: gives the micro-op's address and the
// offset of each of three operands.
//
// A new instruction can begin in the cycle after the last step. With two loops, the innermost one is left out.
module tw_walk #(
  parameter int unsigned UopW = 10,
  parameter int unsigned UopDepth = 1024,
  parameter int unsigned LoopW = 11,
  parameter int unsigned IndexW = 11,
  parameter int unsigned Loops = 3,
  // The instruction's fields stay stable while it is walked
  parameter bit          Kept = 1'b0,
  localparam int unsigned CountW = $clog2(UopDepth + 1),
  localparam int unsigned OffW = IndexW + 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                start_i,
  input  logic [UopW-1:0]     uop_i,
  input  logic [CountW-1:0]   uops_i,
  input  logic [3*LoopW-1:0]  counts_i,
  input  logic [3*IndexW-1:0] bases_i,
  input  logic [9*IndexW-1:0] steps_i,
  input  logic                step_i,
  output logic                valid_o,
  output logic                last_o,
  output logic                uop_range_o,
  output logic [UopW-1:0]     uop_o,
  output logic [3*OffW-1:0]   offsets_o
);

  logic                valid_q;
  logic [UopW-1:0]     uop_q;
  logic [CountW-1:0]   uops_q, u_q;
  logic [3*LoopW-1:0]  counts_q;
  logic [9*IndexW-1:0] steps_q;
  logic [LoopW-1:0]    l0_q, l1_q, l2_q;
  // Offsets at the start of the outer, middle and inner loop's current pass, operand by operand.
  logic [3*OffW-1:0]   o0_q, o1_q, o2_q;
  logic [UopW:0]       uop_sum;
  // Each counter is at its last value; registered with it, because the end of the walk has long paths.
  logic                last_u_q, last_2_q, last_1_q, last_0_q;

  if (Kept) begin : gen_kept
    assign uop_q    = uop_i;
    assign uops_q   = uops_i;
    assign counts_q = counts_i;
    assign steps_q  = steps_i;
  end else begin : gen_copied
    always_ff @(posedge clk_i) begin
      if (start_i) begin
        uop_q    <= uop_i;
        uops_q   <= uops_i;
        counts_q <= counts_i;
        steps_q  <= steps_i;
      end
    end
  end

  assign valid_o = valid_q;
  assign last_o = last_u_q && last_2_q && last_1_q && last_0_q;
  assign uop_sum = (UopW+1)'(uop_q) + (UopW+1)'(u_q);
  assign uop_range_o = uop_sum >= (UopW+1)'(UopDepth);
  assign uop_o = uop_sum[UopW-1:0];
  assign offsets_o = o2_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
    end else if (start_i) begin
      valid_q <= 1'b1;
    end else if (step_i && last_o) begin
      valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      u_q      <= '0;
      l0_q     <= '0;
      l1_q     <= '0;
      l2_q     <= '0;
      last_u_q <= uops_i == CountW'(1);
      last_2_q <= Loops < 3 || counts_i[2*LoopW +: LoopW] == LoopW'(1);
      last_1_q <= counts_i[1*LoopW +: LoopW] == LoopW'(1);
      last_0_q <= counts_i[0*LoopW +: LoopW] == LoopW'(1);
      for (int unsigned k = 0; k < 3; k++) begin
        o0_q[k*OffW +: OffW] <= OffW'(bases_i[k*IndexW +: IndexW]);
        o1_q[k*OffW +: OffW] <= OffW'(bases_i[k*IndexW +: IndexW]);
        o2_q[k*OffW +: OffW] <= OffW'(bases_i[k*IndexW +: IndexW]);
      end
    end else if (step_i) begin
      if (!last_u_q) begin
        u_q      <= u_q + 1'b1;
        last_u_q <= u_q + 1'b1 == uops_q - 1'b1;
      end else begin
        u_q      <= '0;
        last_u_q <= uops_q == CountW'(1);
        if (!last_2_q) begin
          l2_q     <= l2_q + 1'b1;
          last_2_q <= l2_q + 1'b1 == counts_q[2*LoopW +: LoopW] - 1'b1;
          for (int unsigned k = 0; k < 3; k++) begin
            o2_q[k*OffW +: OffW] <= o2_q[k*OffW +: OffW] + OffW'(steps_q[(6+k)*IndexW +: IndexW]);
          end
        end else begin
          l2_q     <= '0;
          last_2_q <= Loops < 3 || counts_q[2*LoopW +: LoopW] == LoopW'(1);
          if (!last_1_q) begin
            l1_q     <= l1_q + 1'b1;
            last_1_q <= l1_q + 1'b1 == counts_q[1*LoopW +: LoopW] - 1'b1;
            for (int unsigned k = 0; k < 3; k++) begin
              o1_q[k*OffW +: OffW] <= o1_q[k*OffW +: OffW] + OffW'(steps_q[(3+k)*IndexW +: IndexW]);
              o2_q[k*OffW +: OffW] <= o1_q[k*OffW +: OffW] + OffW'(steps_q[(3+k)*IndexW +: IndexW]);
            end
          end else begin
            l1_q     <= '0;
            last_1_q <= counts_q[1*LoopW +: LoopW] == LoopW'(1);
            l0_q     <= l0_q + 1'b1;
            last_0_q <= l0_q + 1'b1 == counts_q[0*LoopW +: LoopW] - 1'b1;
            for (int unsigned k = 0; k < 3; k++) begin
              o0_q[k*OffW +: OffW] <= o0_q[k*OffW +: OffW] + OffW'(steps_q[k*IndexW +: IndexW]);
              o1_q[k*OffW +: OffW] <= o0_q[k*OffW +: OffW] + OffW'(steps_q[k*IndexW +: IndexW]);
              o2_q[k*OffW +: OffW] <= o0_q[k*OffW +: OffW] + OffW'(steps_q[k*IndexW +: IndexW]);
            end
          end
        end
      end
    end
  end

endmodule
