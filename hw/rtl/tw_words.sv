`include "tw_assert.svh"

// Buffer of words whose two oldest are visible: a memory with a registered read, followed by the registers of tw_front.
module tw_words #(
  parameter int unsigned Width = 64,
  parameter int unsigned Depth = 256,
  // Registers after the memory
  parameter int unsigned Places = 4,
  localparam int unsigned CountW = $clog2(Depth + 8)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              push_i,
  input  logic [Width-1:0]  data_i,
  input  logic [1:0]        pop_i,
  output logic [2:0]        avail_o,
  output logic [Width-1:0]  word0_o,
  output logic [Width-1:0]  word1_o,
  // A word left the memory
  output logic              freed_o,
  output logic              empty_o
);

  localparam int unsigned PtrW = Depth > 1 ? $clog2(Depth) : 1;

  // A word is never read in the cycle in which it is written.
  (* no_rw_check *) logic [Width-1:0] mem [Depth];
  logic [PtrW-1:0]   rd_q, wr_q;
  logic [CountW-1:0] count_q;
  logic              read, read_q;
  logic [Width-1:0]  read_data_q;

  assign read    = count_q != '0 && avail_o + 3'(read_q) < 3'(Places);
  assign freed_o = read;
  assign empty_o = count_q == '0 && !read_q && avail_o == '0;

  always_ff @(posedge clk_i) begin
    if (push_i) mem[wr_q] <= data_i;
    if (read) read_data_q <= mem[rd_q];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_q    <= '0;
      wr_q    <= '0;
      count_q <= '0;
      read_q  <= 1'b0;
    end else begin
      if (push_i) wr_q <= (wr_q == PtrW'(Depth - 1)) ? '0 : wr_q + 1'b1;
      if (read) rd_q <= (rd_q == PtrW'(Depth - 1)) ? '0 : rd_q + 1'b1;
      count_q <= count_q + CountW'(push_i) - CountW'(read);
      read_q  <= read;
    end
  end

  tw_front #(.Width(Width), .Places(Places)) u_front (
    .clk_i,
    .rst_ni,
    .push_i (read_q),
    .data_i (read_data_q),
    .pop_i,
    .avail_o,
    .word0_o,
    .word1_o
  );

  `TW_ASSERT(NoOverflow_A, !(push_i && count_q == CountW'(Depth)))

endmodule
