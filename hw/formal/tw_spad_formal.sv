// tw_spad, banks and all, beside one byte of its contents, which the prover chooses once; and beside the rule of its
// ports.
//
// Contents are claimed as long as no two accesses met at a port: that is reported, and traps.
module tw_spad_formal #(
  parameter int unsigned Depth = 8,
  parameter int unsigned Banks = 2,
  parameter int unsigned EntryBytes = 8,
  parameter int unsigned ChunkBytes = 2,
  parameter int unsigned GroupBytes = 8,
  parameter int unsigned ElementBytes = 1,
  parameter bit          ByteEnable = 1'b0,
  parameter int unsigned Readers = 3,
  parameter int unsigned Writers = 2,
  localparam int unsigned AddrW = $clog2(Depth),
  localparam int unsigned Width = EntryBytes * 8,
  localparam int unsigned Chunks = EntryBytes / ChunkBytes,
  localparam int unsigned ChunkW = Chunks > 1 ? $clog2(Chunks) : 1,
  localparam int unsigned ByteW = $clog2(EntryBytes)
) (
  input logic                     clk_i,
  input logic                     ld_we_i,
  input logic [AddrW-1:0]         ld_addr_i,
  input logic [ChunkW-1:0]        ld_chunk_i,
  input logic [ChunkBytes*8-1:0]  ld_data_i,
  input logic [ChunkBytes-1:0]    ld_valid_i,
  input logic [ChunkBytes-1:0]    ld_enable_i,
  input logic                     ld_tail_i,
  input logic                     ld_all_i,
  input logic [7:0]               ld_pad_i,
  input logic [Readers-1:0]       re_i,
  input logic [Readers*AddrW-1:0] raddr_i,
  input logic [Writers-1:0]       we_i,
  input logic [Writers*AddrW-1:0] waddr_i,
  input logic [Writers*Width-1:0] wdata_i,
  input logic [AddrW-1:0]         entry_i,
  input logic [ByteW-1:0]         byte_i
);

  localparam int unsigned BankDepth = Depth / Banks;

  logic [Readers*Width-1:0] rdata;
  logic [Readers-1:0]       rcollision;
  logic [Writers-1:0]       wcollision;
  logic                     ld_collision;

  tw_spad #(
    .Depth(Depth), .Banks(Banks), .EntryBytes(EntryBytes), .ChunkBytes(ChunkBytes), .GroupBytes(GroupBytes),
    .ElementBytes(ElementBytes), .ByteEnable(ByteEnable), .Readers(Readers), .Writers(Writers)
  ) u_dut (
    .clk_i, .ld_we_i, .ld_addr_i, .ld_chunk_i, .ld_data_i, .ld_valid_i, .ld_enable_i, .ld_tail_i, .ld_all_i, .ld_pad_i,
    .ld_collision_o(ld_collision), .re_i, .raddr_i, .rdata_o(rdata), .rcollision_o(rcollision), .we_i, .waddr_i, .wdata_i,
    .wcollision_o(wcollision)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  // The byte: its entry and its place there.
  logic [AddrW-1:0] entry_q, entry;
  logic [ByteW-1:0] at_q, at;
  assign entry = started_q ? entry_q : entry_i;
  assign at = started_q ? at_q : byte_i;
  always_ff @(posedge clk_i) begin
    entry_q <= entry;
    at_q <= at;
  end

  // The rule of the ports: who shares a bank with whom. A load is a writer too.
  logic [Readers-1:0] rmeets;
  logic [Writers-1:0] wmeets;
  logic               lmeets;
  always_comb begin
    rmeets = '0;
    wmeets = '0;
    lmeets = 1'b0;
    for (int unsigned r = 0; r < Readers; r++) begin
      for (int unsigned s = 0; s < Readers; s++) begin
        if (r != s && re_i[r] && re_i[s] && 32'(raddr_i[r*AddrW +: AddrW]) / BankDepth == 32'(raddr_i[s*AddrW +: AddrW]) / BankDepth)
          rmeets[r] = 1'b1;
      end
    end
    for (int unsigned w = 0; w < Writers; w++) begin
      if (we_i[w] && ld_we_i && 32'(waddr_i[w*AddrW +: AddrW]) / BankDepth == 32'(ld_addr_i) / BankDepth) begin
        wmeets[w] = 1'b1;
        lmeets = 1'b1;
      end
      for (int unsigned x = 0; x < Writers; x++) begin
        if (w != x && we_i[w] && we_i[x] && 32'(waddr_i[w*AddrW +: AddrW]) / BankDepth == 32'(waddr_i[x*AddrW +: AddrW]) / BankDepth)
          wmeets[w] = 1'b1;
      end
    end
  end

  // The byte's value by the words of the interface.
  logic       known_q, met_q, write;
  logic [7:0] value_q, value, pad;
  logic [31:0] chunk, group, own_chunk, own_group, in_chunk;
  assign chunk     = 32'(ld_chunk_i);
  assign group     = chunk * ChunkBytes / GroupBytes;
  assign own_chunk = 32'(at) / ChunkBytes;
  assign own_group = 32'(at) / GroupBytes;
  assign in_chunk  = 32'(at) % ChunkBytes;
  // The pad value is a signed number of an element's width.
  assign pad = 32'(at) % ElementBytes == 32'd0 ? ld_pad_i : {8{ld_pad_i[7]}};
  always_comb begin
    write = 1'b0;
    value = value_q;
    if (ld_we_i && ld_addr_i == entry && own_group == group) begin
      if (ld_all_i || (ld_tail_i && own_chunk > chunk)) begin
        write = 1'b1;
        value = pad;
      end else if (own_chunk == chunk && (!ByteEnable || ld_enable_i[in_chunk])) begin
        write = 1'b1;
        value = ld_valid_i[in_chunk] ? ld_data_i[in_chunk*8 +: 8] : pad;
      end
    end
    for (int unsigned w = 0; w < Writers; w++) begin
      if (we_i[w] && waddr_i[w*AddrW +: AddrW] == entry) begin
        write = 1'b1;
        value = wdata_i[w*Width + 32'(at)*8 +: 8];
      end
    end
  end
  initial known_q = 1'b0;
  initial met_q = 1'b0;
  always_ff @(posedge clk_i) begin
    if (write) known_q <= 1'b1;
    if (rmeets != '0 || wmeets != '0 || lmeets) met_q <= 1'b1;
    value_q <= value;
  end

  // What each reader asked for in the cycle before, and what the byte was then. What is written in the cycle of the
  // read is left open.
  logic [Readers-1:0] asked_q;
  logic [7:0]         then_q;
  initial asked_q = '0;
  always_ff @(posedge clk_i) begin
    for (int unsigned r = 0; r < Readers; r++) asked_q[r] <= re_i[r] && raddr_i[r*AddrW +: AddrW] == entry && known_q && !write;
    then_q <= value_q;
  end

  always @(posedge clk_i) begin
    assume (32'(at) < EntryBytes && chunk < Chunks);
    Readers_A: assert (rcollision == rmeets);
    Writers_A: assert (wcollision == wmeets);
    Load_A: assert (ld_collision == lmeets);
    Collision_C: cover (rcollision != '0 && wcollision != '0 && ld_collision);
    Tail_C: cover (ld_we_i && ld_tail_i && own_chunk > chunk && write && !met_q);
  end
  for (genvar r = 0; r < Readers; r++) begin : gen_read
    always @(posedge clk_i) begin
      if (asked_q[r] && !met_q) Read_A: assert (rdata[r*Width + 32'(at)*8 +: 8] == then_q);
      Read_C: cover (asked_q[r] && !met_q && write && value != then_q);
    end
  end
  for (genvar k = 0; k < Banks; k++) begin : gen_inside
    always @(posedge clk_i) begin
      // For the proofs by induction.
      if (known_q && !met_q && 32'(entry) / BankDepth == k)
        Contents_I: assert (u_dut.gen_bank[k].u_bank.u_ram.mem[32'(entry) % BankDepth][32'(at)*8 +: 8] == value_q);
    end
  end

endmodule
