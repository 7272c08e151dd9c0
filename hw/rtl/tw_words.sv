`include "tw_assert.svh"

// A buffer of words whose two oldest are visible: memory with a registered read behind four registers.
module tw_words #(
  parameter int unsigned Width = 64,
  parameter int unsigned Depth = 256,
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
  // A place of the memory became free.
  output logic              freed_o,
  output logic              empty_o
);

  localparam int unsigned PtrW = Depth > 1 ? $clog2(Depth) : 1;

  logic [Width-1:0]  mem [Depth];
  logic [PtrW-1:0]   rd_q, wr_q;
  logic [CountW-1:0] count_q;
  logic              read, read_q;
  logic [Width-1:0]  read_data_q, s0_q, s1_q, s2_q, s3_q;
  logic [2:0]        avail_q, kept;

  assign read    = count_q != '0 && 3'(avail_q) + 3'(read_q) <= 3'd3;
  assign freed_o = read;
  assign avail_o = avail_q;
  assign word0_o = s0_q;
  assign word1_o = s1_q;
  assign kept    = avail_q - 3'(pop_i);
  assign empty_o = count_q == '0 && !read_q && avail_q == '0;

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
      avail_q <= '0;
    end else begin
      if (push_i) wr_q <= (wr_q == PtrW'(Depth - 1)) ? '0 : wr_q + 1'b1;
      if (read) rd_q <= (rd_q == PtrW'(Depth - 1)) ? '0 : rd_q + 1'b1;
      count_q <= count_q + CountW'(push_i) - CountW'(read);
      read_q  <= read;
      avail_q <= kept + 3'(read_q);
    end
  end

  always_ff @(posedge clk_i) begin
    if (pop_i != 2'd0 || read_q) begin
      case (pop_i)
        2'd0: begin
        end
        2'd1: begin
          s0_q <= s1_q;
          s1_q <= s2_q;
          s2_q <= s3_q;
        end
        default: begin
          s0_q <= s2_q;
          s1_q <= s3_q;
        end
      endcase
      if (read_q) begin
        case (kept[1:0])
          2'd0: s0_q <= read_data_q;
          2'd1: s1_q <= read_data_q;
          2'd2: s2_q <= read_data_q;
          default: s3_q <= read_data_q;
        endcase
      end
    end
  end

  `TW_ASSERT(NoOverflow_A, !(push_i && count_q == CountW'(Depth)))
  `TW_ASSERT(NoUnderflow_A, 3'(pop_i) <= avail_q)

endmodule
