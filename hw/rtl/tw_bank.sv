// One bank of a memory: one read and one write port, written in granules; a read in the cycle of a write of the same
// entry gives the old contents.
module tw_bank #(
  parameter int unsigned Depth = 16,
  parameter int unsigned Granules = 4,
  parameter int unsigned GranuleBits = 8,
  localparam int unsigned AddrW = Depth > 1 ? $clog2(Depth) : 1,
  localparam int unsigned Width = Granules * GranuleBits
) (
  input  logic                clk_i,
  input  logic                re_i,
  input  logic [AddrW-1:0]    raddr_i,
  output logic [Width-1:0]    rdata_o,
  input  logic                we_i,
  input  logic [Granules-1:0] wmask_i,
  input  logic [AddrW-1:0]    waddr_i,
  input  logic [Width-1:0]    wdata_i
);

  logic [Width-1:0] mem [Depth] /*verilator public_flat_rd*/;

  always_ff @(posedge clk_i) begin
    if (we_i) begin
      // Two loops, because tools unroll only so many rounds of one.
      for (int unsigned h = 0; h < Granules; h += 32) begin
        for (int unsigned g = h; g < Granules && g < h + 32; g++) begin
          if (wmask_i[g]) mem[waddr_i][g*GranuleBits +: GranuleBits] <= wdata_i[g*GranuleBits +: GranuleBits];
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (re_i) rdata_o <= mem[raddr_i];
  end

endmodule
