// Scratchpad: banks selected by the high address bits, with a load port, any number of readers, and one or two writers.
//
// A writer writes a whole entry. The load port writes a chunk: ld_valid_i marks the bytes that are data, the others are
// padding. With ld_tail_i it also pads the later chunks of the chunk's group, with ld_all_i the whole group. Two
// readers, or two writers, of one bank in the same cycle are reported to both.
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
  input  logic clk_i,

  // Load port
  input  logic                    ld_we_i,
  input  logic [AddrW-1:0]        ld_addr_i,
  input  logic [ChunkW-1:0]       ld_chunk_i,
  input  logic [ChunkBytes*8-1:0] ld_data_i,
  input  logic [ChunkBytes-1:0]   ld_valid_i,
  input  logic [ChunkBytes-1:0]   ld_enable_i,
  input  logic                    ld_tail_i,
  input  logic                    ld_all_i,
  input  logic [7:0]              ld_pad_i,
  output logic                    ld_collision_o,

  // Readers
  input  logic [Readers-1:0]       re_i,
  input  logic [Readers*AddrW-1:0] raddr_i,
  output logic [Readers*Width-1:0] rdata_o,
  output logic [Readers-1:0]       rcollision_o,

  // Writers of whole entries
  input  logic [Writers-1:0]       we_i,
  input  logic [Writers*AddrW-1:0] waddr_i,
  input  logic [Writers*Width-1:0] wdata_i,
  output logic [Writers-1:0]       wcollision_o
);

  localparam int unsigned BankDepth = Depth / Banks;
  localparam int unsigned BankAddrW = BankDepth > 1 ? $clog2(BankDepth) : 1;

  localparam int unsigned BankW = Banks > 1 ? $clog2(Banks) : 1;

  logic [Banks*Width-1:0]   bank_rdata;
  // The bank of each port's address
  logic [Readers*BankW-1:0] rbank;
  logic [Writers*BankW-1:0] wbank;
  logic [BankW-1:0]         lbank;
  if (Banks > 1) begin : gen_banks
    for (genvar r = 0; r < Readers; r++) begin : gen_r
      assign rbank[r*BankW +: BankW] = raddr_i[r*AddrW + BankAddrW +: BankW];
    end
    for (genvar w = 0; w < Writers; w++) begin : gen_w
      assign wbank[w*BankW +: BankW] = waddr_i[w*AddrW + BankAddrW +: BankW];
    end
    assign lbank = ld_addr_i[BankAddrW +: BankW];
  end else begin : gen_bank_0
    assign rbank = '0;
    assign wbank = '0;
    assign lbank = '0;
  end

  ///////////
  // Banks //
  ///////////

  for (genvar k = 0; k < Banks; k++) begin : gen_bank
    logic                 re, we, full;
    logic [BankAddrW-1:0] raddr, waddr;
    logic [Writers-1:0]   writer;

    // Simulators skip unused ports.
    always_comb begin
      re = 1'b0;
      raddr = '0;
      if (|re_i) begin
        for (int unsigned r = 0; r < Readers; r++) begin
          if (re_i[r] && rbank[r*BankW +: BankW] == BankW'(k)) begin
            re = 1'b1;
            raddr = raddr_i[r*AddrW +: BankAddrW];
          end
        end
      end
    end

    always_comb begin
      we = ld_we_i && lbank == BankW'(k);
      full = 1'b0;
      writer = '0;
      waddr = ld_addr_i[BankAddrW-1:0];
      if (|we_i) begin
        for (int unsigned w = 0; w < Writers; w++) begin
          if (we_i[w] && wbank[w*BankW +: BankW] == BankW'(k)) begin
            we = 1'b1;
            full = 1'b1;
            writer[w] = 1'b1;
            waddr = waddr_i[w*AddrW +: BankAddrW];
          end
        end
      end
    end
    tw_bank #(
      .Depth       (BankDepth),
      .EntryBytes  (EntryBytes),
      .ChunkBytes  (ChunkBytes),
      .GroupBytes  (GroupBytes),
      .ElementBytes(ElementBytes),
      .ByteEnable  (ByteEnable),
      .Writers     (Writers)
    ) u_bank (
      .clk_i,
      .re_i    (re),
      .raddr_i (raddr),
      .rdata_o (bank_rdata[k*Width +: Width]),
      .we_i    (we),
      .waddr_i (waddr),
      .full_i  (full),
      .writer_i(writer),
      .wdata_i,
      .chunk_i (ld_chunk_i),
      .data_i  (ld_data_i),
      .valid_i (ld_valid_i),
      .enable_i(ld_enable_i),
      .tail_i  (ld_tail_i),
      .all_i   (ld_all_i),
      .pad_i   (ld_pad_i)
    );
  end

  ///////////////
  // Read data //
  ///////////////

  // A reader gets the data of the bank that it read in the cycle before.
  for (genvar r = 0; r < Readers; r++) begin : gen_reader
    if (Banks > 1) begin : gen_mux
      logic [BankW-1:0] bank_q;
      always_ff @(posedge clk_i) begin
        if (re_i[r]) bank_q <= rbank[r*BankW +: BankW];
      end
      always_comb begin
        rdata_o[r*Width +: Width] = bank_rdata[Width-1:0];
        for (int unsigned k = 1; k < Banks; k++) begin
          if (bank_q == BankW'(k)) rdata_o[r*Width +: Width] = bank_rdata[k*Width +: Width];
        end
      end
    end else begin : gen_direct
      assign rdata_o[r*Width +: Width] = bank_rdata;
    end
  end

  ////////////////
  // Collisions //
  ////////////////

  always_comb begin
    rcollision_o = '0;
    wcollision_o = '0;
    ld_collision_o = 1'b0;
    for (int unsigned r = 0; r < Readers; r++) begin
      if (re_i[r]) begin
        for (int unsigned s = 0; s < Readers; s++) begin
          if (r != s && re_i[s] && rbank[r*BankW +: BankW] == rbank[s*BankW +: BankW]) rcollision_o[r] = 1'b1;
        end
      end
    end
    for (int unsigned w = 0; w < Writers; w++) begin
      if (we_i[w]) begin
        if (ld_we_i && wbank[w*BankW +: BankW] == lbank) begin
          wcollision_o[w] = 1'b1;
          ld_collision_o = 1'b1;
        end
        for (int unsigned x = 0; x < Writers; x++) begin
          if (w != x && we_i[x] && wbank[w*BankW +: BankW] == wbank[x*BankW +: BankW]) wcollision_o[w] = 1'b1;
        end
      end
    end
  end

endmodule
