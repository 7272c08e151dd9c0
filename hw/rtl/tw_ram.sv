// Memory cell: one read port and one write port; an entry is written in granules. A flow can replace this module by one
// of the same name that uses a part's own memories.
//
// A read in the cycle in which the same entry is written returns an undefined value, so that any kind of block RAM fits
// without extra logic. Nothing uses that value: between units, tokens order a retirement before the start that depends
// on it; gemm and the simple vector operations forward what they have just written. With TW_STRICT the value is wrong
// on purpose, so that a result that depends on it is wrong too.
module tw_ram #(
  parameter int unsigned Depth = 16,
  parameter int unsigned Width = 128,
  parameter int unsigned Granules = 1,
  localparam int unsigned AddrW = Depth > 1 ? $clog2(Depth) : 1
) (
  input  logic                clk_i,
  input  logic                re_i,
  input  logic [AddrW-1:0]    raddr_i,
  output logic [Width-1:0]    rdata_o,
  input  logic                we_i,
  input  logic [AddrW-1:0]    waddr_i,
  input  logic [Granules-1:0] wmask_i,
  input  logic [Width-1:0]    wdata_i
);

  localparam int unsigned GranuleW = Width / Granules;

  (* no_rw_check *)
  logic [Width-1:0] mem [Depth] /*verilator public_flat_rd*/;

  // One write of the whole entry: synthesis tools infer write enables from the granules that stay.
  always_ff @(posedge clk_i) begin
    if (we_i) begin
      automatic logic [Width-1:0] entry = wdata_i;
      if (!(&wmask_i)) begin
        entry = mem[waddr_i];
        // Two nested loops, because tools limit the iterations of one loop that they unroll.
        for (int unsigned h = 0; h < Granules; h += 32) begin
          for (int unsigned g = h; g < Granules && g < h + 32; g++) begin
            if (wmask_i[g]) entry[g*GranuleW +: GranuleW] = wdata_i[g*GranuleW +: GranuleW];
          end
        end
      end
      mem[waddr_i] <= entry;
    end
  end

  always_ff @(posedge clk_i) begin
`ifdef TW_STRICT
    if (re_i) rdata_o <= we_i && waddr_i == raddr_i ? ~mem[raddr_i] : mem[raddr_i];
`else
    if (re_i) rdata_o <= mem[raddr_i];
`endif
  end

endmodule
