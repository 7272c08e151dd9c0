// tw_fifo under any use that never overfills or overdraws it.
module tw_fifo_formal #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 4,
  parameter bit          Head = 1'b0
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             push_i,
  input logic             pop_i,
  input logic             mark_i,
  input logic [Width-1:0] data_i
);

  logic [Width-1:0]             data;
  logic                         empty, full;
  logic [$clog2(Depth+1)-1:0]   count;
  logic [$clog2(Depth+1):0]     held;

  tw_fifo #(.Width(Width), .Depth(Depth), .Head(Head)) u_dut (
    .clk_i, .rst_ni, .push_i, .data_i, .pop_i, .data_o(data), .empty_o(empty), .full_o(full), .count_o(count)
  );
  tw_check_queue #(.Width(Width), .Capacity(Depth)) u_queue (
    .clk_i, .rst_ni, .push_i, .data_i, .pop_i({1'b0, pop_i}), .pop_data_i({Width'(0), data}), .mark_i, .held_o(held)
  );

  localparam int unsigned PtrW = Depth > 1 ? $clog2(Depth) : 1;
  logic [PtrW-1:0] at0, at1;
  assign at0 = PtrW'((32'(u_dut.rd_q) + 32'(u_queue.place0_q) - 32'd1) % Depth);
  assign at1 = PtrW'((32'(u_dut.rd_q) + 32'(u_queue.place1_q) - 32'd1) % Depth);

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  always @(posedge clk_i) begin
    if (!started_q) assume (!rst_ni);
    // The queue's users: a full queue takes an element only while one leaves, an empty one gives none.
    assume (!(push_i && full && !pop_i));
    assume (!(pop_i && empty));
    if (rst_ni) begin
      Count_A: assert (32'(count) == 32'(held));
      Empty_A: assert (empty == (held == '0));
      Full_A: assert (full == (32'(held) == Depth));
    end
    // Where the marked elements lie, for the proofs by induction: the pointers and the count agree, and each is in its
    // place.
    if (rst_ni && started_q) begin
      Pointers_I: assert (32'(u_dut.rd_q) < Depth && 32'(u_dut.wr_q) == (32'(u_dut.rd_q) + 32'(held)) % Depth);
      if (!empty) Head_I: assert (data == u_dut.mem[u_dut.rd_q]);
      if (u_queue.set_q[0] && !u_queue.gone_q[0]) First_I: assert (u_dut.mem[at0] == u_queue.data0_q);
      if (u_queue.set_q[1] && !u_queue.gone_q[1]) Second_I: assert (u_dut.mem[at1] == u_queue.data1_q);
    end
  end

endmodule
