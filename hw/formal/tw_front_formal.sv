// tw_front under any use that pushes only where a register is left over and takes no more than is there.
module tw_front_formal #(
  parameter int unsigned Width = 1
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             push_i,
  input logic [1:0]       pop_i,
  input logic             mark_i,
  input logic [Width-1:0] data_i
);

  logic [Width-1:0] word0, word1;
  logic [2:0]       avail;
  logic [3:0]       held;

  tw_front #(.Width(Width)) u_dut (
    .clk_i, .rst_ni, .push_i, .data_i, .pop_i, .avail_o(avail), .word0_o(word0), .word1_o(word1)
  );
  tw_check_queue #(.Width(Width), .Capacity(4)) u_queue (
    .clk_i, .rst_ni, .push_i, .data_i, .pop_i, .pop_data_i({word1, word0}), .mark_i, .held_o(held)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  always @(posedge clk_i) begin
    if (!started_q) assume (!rst_ni);
    assume (pop_i != 2'd3 && 3'(pop_i) <= avail);
    assume (!(push_i && avail - 3'(pop_i) == 3'd4));
    if (rst_ni) begin
      Avail_A: assert ({1'b0, avail} == held);
      TwoOut_C: cover (pop_i == 2'd2 && push_i && avail == 3'd4);
    end
  end

endmodule
