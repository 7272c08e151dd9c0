// A scratchpad: banks by high address bits, the load port, any number of readers and one or two whole-entry writers.
//
// The load port writes one chunk, whose bytes are data where ld_valid_i says so and padding elsewhere; with ld_tail_i
// the later chunks of the chunk's group are padded too, with ld_all_i the whole group. Two readers, or two writers, of
// one bank in a cycle are reported to both.
module tw_spad #(
  parameter int unsigned Depth = 16,
  parameter int unsigned Banks = 1,
  parameter int unsigned EntryBytes = 16,
  parameter int unsigned ChunkBytes = 8,
  parameter int unsigned GroupBytes = 16,
  parameter int unsigned ElementBytes = 1,
  parameter bit          ByteEnable = 1'b0,
  parameter int unsigned Readers = 1,
  parameter int unsigned Writers = 1,
  localparam int unsigned AddrW = $clog2(Depth),
  localparam int unsigned Width = EntryBytes * 8,
  localparam int unsigned Chunks = EntryBytes / ChunkBytes,
  localparam int unsigned ChunkW = Chunks > 1 ? $clog2(Chunks) : 1
) (
  input  logic                     clk_i,
  input  logic                     ld_we_i,
  input  logic [AddrW-1:0]         ld_addr_i,
  input  logic [ChunkW-1:0]        ld_chunk_i,
  input  logic [ChunkBytes*8-1:0]  ld_data_i,
  input  logic [ChunkBytes-1:0]    ld_valid_i,
  input  logic [ChunkBytes-1:0]    ld_enable_i,
  input  logic                     ld_tail_i,
  input  logic                     ld_all_i,
  input  logic [7:0]               ld_pad_i,
  output logic                     ld_collision_o,
  input  logic [Readers-1:0]       re_i,
  input  logic [Readers*AddrW-1:0] raddr_i,
  output logic [Readers*Width-1:0] rdata_o,
  output logic [Readers-1:0]       rcollision_o,
  input  logic [Writers-1:0]       we_i,
  input  logic [Writers*AddrW-1:0] waddr_i,
  input  logic [Writers*Width-1:0] wdata_i,
  output logic [Writers-1:0]       wcollision_o
);

  localparam int unsigned BankDepth = Depth / Banks;
  localparam int unsigned BankAddrW = BankDepth > 1 ? $clog2(BankDepth) : 1;

  logic [Banks*Width-1:0]   bank_rdata;
  logic [Banks*Readers-1:0] bank_rhit;
  logic [Banks*Writers-1:0] bank_whit;
  logic [Banks-1:0]         bank_lhit;

  for (genvar k = 0; k < Banks; k++) begin : gen_bank
    logic                 re, we, full, ld_hit;
    logic [BankAddrW-1:0] raddr, waddr;

    if (Banks > 1) begin : gen_hit
      for (genvar r = 0; r < Readers; r++) begin : gen_r
        assign bank_rhit[k*Readers + r] =
            re_i[r] && raddr_i[r*AddrW + BankAddrW +: AddrW - BankAddrW] == (AddrW-BankAddrW)'(k);
      end
      for (genvar w = 0; w < Writers; w++) begin : gen_w
        assign bank_whit[k*Writers + w] =
            we_i[w] && waddr_i[w*AddrW + BankAddrW +: AddrW - BankAddrW] == (AddrW-BankAddrW)'(k);
      end
      assign ld_hit = ld_we_i && ld_addr_i[AddrW-1:BankAddrW] == (AddrW-BankAddrW)'(k);
    end else begin : gen_all
      assign bank_rhit = re_i;
      assign bank_whit = we_i;
      assign ld_hit = ld_we_i;
    end
    assign bank_lhit[k] = ld_hit;

    always_comb begin
      re = 1'b0;
      raddr = '0;
      for (int unsigned r = 0; r < Readers; r++) begin
        if (bank_rhit[k*Readers + r]) begin
          re = 1'b1;
          raddr = raddr_i[r*AddrW +: BankAddrW];
        end
      end
    end

    always_comb begin
      we = ld_hit;
      full = 1'b0;
      waddr = ld_addr_i[BankAddrW-1:0];
      for (int unsigned w = 0; w < Writers; w++) begin
        if (bank_whit[k*Writers + w]) begin
          we = 1'b1;
          full = 1'b1;
          waddr = waddr_i[w*AddrW +: BankAddrW];
        end
      end
    end
    tw_bank #(
      .Depth(BankDepth), .EntryBytes(EntryBytes), .ChunkBytes(ChunkBytes), .GroupBytes(GroupBytes),
      .ElementBytes(ElementBytes), .ByteEnable(ByteEnable), .Writers(Writers)
    ) u_bank (
      .clk_i, .re_i(re), .raddr_i(raddr), .rdata_o(bank_rdata[k*Width +: Width]), .we_i(we), .waddr_i(waddr),
      .full_i(full), .writer_i(bank_whit[k*Writers +: Writers]), .wdata_i, .chunk_i(ld_chunk_i), .data_i(ld_data_i), .valid_i(ld_valid_i),
      .enable_i(ld_enable_i), .tail_i(ld_tail_i), .all_i(ld_all_i), .pad_i(ld_pad_i)
    );
  end

  // Each reader gets the bank that it asked in the cycle before.
  for (genvar r = 0; r < Readers; r++) begin : gen_reader
    if (Banks > 1) begin : gen_mux
      logic [AddrW-BankAddrW-1:0] bank_q;
      always_ff @(posedge clk_i) begin
        if (re_i[r]) bank_q <= raddr_i[r*AddrW + BankAddrW +: AddrW - BankAddrW];
      end
      always_comb begin
        rdata_o[r*Width +: Width] = bank_rdata[Width-1:0];
        for (int unsigned k = 1; k < Banks; k++) begin
          if (bank_q == (AddrW-BankAddrW)'(k)) rdata_o[r*Width +: Width] = bank_rdata[k*Width +: Width];
        end
      end
    end else begin : gen_direct
      assign rdata_o[r*Width +: Width] = bank_rdata;
    end
  end

  always_comb begin
    rcollision_o = '0;
    wcollision_o = '0;
    ld_collision_o = 1'b0;
    for (int unsigned k = 0; k < Banks; k++) begin
      for (int unsigned r = 0; r < Readers; r++) begin
        for (int unsigned s = 0; s < Readers; s++) begin
          if (r != s && bank_rhit[k*Readers + r] && bank_rhit[k*Readers + s]) rcollision_o[r] = 1'b1;
        end
      end
      for (int unsigned w = 0; w < Writers; w++) begin
        if (bank_whit[k*Writers + w] && bank_lhit[k]) begin
          wcollision_o[w] = 1'b1;
          ld_collision_o = 1'b1;
        end
        for (int unsigned x = 0; x < Writers; x++) begin
          if (w != x && bank_whit[k*Writers + w] && bank_whit[k*Writers + x]) wcollision_o[w] = 1'b1;
        end
      end
    end
  end

endmodule
