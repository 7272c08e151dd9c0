`include "tw_assert.svh"

// First-in first-out queue. The head is always visible; what is pushed into an empty queue shows in the next cycle.
module tw_fifo #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 8,
  // The head has a register of its own, for users with long paths from it
  parameter bit          Head = 1'b0,
  localparam int unsigned CountW = $clog2(Depth + 1)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              push_i,
  input  logic [Width-1:0]  data_i,
  input  logic              pop_i,
  output logic [Width-1:0]  data_o,
  output logic              empty_o,
  output logic              full_o,
  output logic [CountW-1:0] count_o
);

  localparam int unsigned PtrW = Depth > 1 ? $clog2(Depth) : 1;

  logic [Width-1:0]  mem [Depth];
  logic [PtrW-1:0]   rd_q, wr_q, rd_next;
  logic [CountW-1:0] count_q;

  assign rd_next = (rd_q == PtrW'(Depth - 1)) ? '0 : rd_q + 1'b1;
  if (Head) begin : gen_head
    logic [Width-1:0] head_q;
    assign data_o = head_q;
    // While the queue is empty the register takes whatever may be pushed.
    always_ff @(posedge clk_i) begin
      if (pop_i || count_q == '0) head_q <= count_q > CountW'(1) ? mem[rd_next] : data_i;
    end
  end else begin : gen_place
    assign data_o = mem[rd_q];
  end

  assign empty_o = count_q == '0;
  assign full_o  = count_q == CountW'(Depth);
  assign count_o = count_q;

  always_ff @(posedge clk_i) begin
    if (push_i) mem[wr_q] <= data_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_q    <= '0;
      wr_q    <= '0;
      count_q <= '0;
    end else begin
      if (push_i) wr_q <= (wr_q == PtrW'(Depth - 1)) ? '0 : wr_q + 1'b1;
      if (pop_i) rd_q <= rd_next;
      count_q <= count_q + CountW'(push_i) - CountW'(pop_i);
    end
  end

  `TW_ASSERT(NoOverflow_A, !(push_i && full_o && !pop_i))
  `TW_ASSERT(NoUnderflow_A, !(pop_i && empty_o))

endmodule
