// The memory cell: one read and one write port, an entry written in granules. A flow may take another module of this name,
// made of a part's own memories.
//
// What a read in the cycle of a write of the same entry gives is open, so that block RAM of any kind serves without logic
// around it. Nothing reads it: between units tokens lead from the retirement of one to the start of the other, and what
// gemm and the simple vector operations wrote in the cycle in which they read it again they forward. With TW_STRICT it is
// noise, so that a result which depends on it is wrong.
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

  // One write of the whole entry: tools find what it keeps, and make write enables of that.
  always_ff @(posedge clk_i) begin
    if (we_i) begin
      automatic logic [Width-1:0] entry = wdata_i;
      if (!(&wmask_i)) begin
        entry = mem[waddr_i];
        // Two loops, because tools unroll only so many rounds of one.
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
