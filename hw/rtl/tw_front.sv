`include "tw_assert.svh"

// The oldest words of a stream: two to four registers, the first two of them visible.
//
// The user pushes only when a register is free. A word that is on its way from a memory counts as pushed.
module tw_front #(
  parameter int unsigned Width = 64,
  parameter int unsigned Places = 4
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              push_i,
  input  logic [Width-1:0]  data_i,
  input  logic [1:0]        pop_i,
  output logic [2:0]        avail_o,
  output logic [Width-1:0]  word0_o,
  output logic [Width-1:0]  word1_o
);

  logic [Width-1:0]  s0_q, s1_q, s2_q, s3_q;
  logic [2:0]        avail_q, kept;

  assign avail_o = avail_q;
  assign word0_o = s0_q;
  assign word1_o = s1_q;
  assign kept    = avail_q - 3'(pop_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) avail_q <= '0;
    else avail_q <= kept + 3'(push_i);
  end

  always_ff @(posedge clk_i) begin
    if (pop_i != 2'd0 || push_i) begin
      unique case (pop_i)
        2'd0: ;
        2'd1: begin
          s0_q <= s1_q;
          if (Places > 2) s1_q <= s2_q;
          if (Places > 3) s2_q <= s3_q;
        end
        default: begin
          if (Places > 2) s0_q <= s2_q;
          if (Places > 3) s1_q <= s3_q;
        end
      endcase
      if (push_i) begin
        unique case (kept[1:0])
          2'd0: s0_q <= data_i;
          2'd1: s1_q <= data_i;
          2'd2: if (Places > 2) s2_q <= data_i;
          default: if (Places > 3) s3_q <= data_i;
        endcase
      end
    end
  end

  `TW_ASSERT(NoOverflow_A, !(push_i && kept == 3'(Places)))
  `TW_ASSERT(NoUnderflow_A, 3'(pop_i) <= avail_q)

endmodule
