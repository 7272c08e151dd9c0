// Bank of a scratchpad: one read port and one write port.
//
// A write is a whole entry (full_i) or a chunk from the load port: valid_i marks the bytes that are data, the others
// are padding. With tail_i it also pads the later chunks of the chunk's group, with all_i the whole group.
module tw_bank #(
  parameter int unsigned Depth = 16,
  parameter int unsigned EntryBytes = 16,
  parameter int unsigned ChunkBytes = 8,
  parameter int unsigned GroupBytes = 16,
  parameter int unsigned ElementBytes = 1,
  parameter bit          ByteEnable = 1'b0,
  parameter int unsigned Writers = 1,
  localparam int unsigned AddrW = Depth > 1 ? $clog2(Depth) : 1,
  localparam int unsigned Width = EntryBytes * 8,
  localparam int unsigned Chunks = EntryBytes / ChunkBytes,
  localparam int unsigned ChunkW = Chunks > 1 ? $clog2(Chunks) : 1
) (
  input  logic clk_i,

  // Read
  input  logic             re_i,
  input  logic [AddrW-1:0] raddr_i,
  output logic [Width-1:0] rdata_o,

  // Write of a whole entry or of a chunk
  input  logic                     we_i,
  input  logic [AddrW-1:0]         waddr_i,
  input  logic                     full_i,
  // The writer whose entry a full write takes
  input  logic [Writers-1:0]       writer_i,
  input  logic [Writers*Width-1:0] wdata_i,

  // The chunk from the load port
  input  logic [ChunkW-1:0]       chunk_i,
  input  logic [ChunkBytes*8-1:0] data_i,
  input  logic [ChunkBytes-1:0]   valid_i,
  input  logic [ChunkBytes-1:0]   enable_i,
  input  logic                    tail_i,
  input  logic                    all_i,
  input  logic [7:0]              pad_i
);

  localparam int unsigned GroupChunks = GroupBytes / ChunkBytes;
  localparam int unsigned GranuleBytes = ByteEnable ? 1 : ChunkBytes;
  localparam int unsigned Granules = EntryBytes / GranuleBytes;
  localparam int unsigned ChunkGranules = ChunkBytes / GranuleBytes;

  // Padding as a line of whole elements, and the chunk merged with its padding
  localparam int unsigned LineBytes = ChunkBytes > ElementBytes ? ChunkBytes : ElementBytes;
  logic [LineBytes*8-1:0]  padding;
  logic [ChunkBytes*8-1:0] chunk_padding, mask, merged;
  if (ElementBytes == 4) begin : gen_wide
    assign padding = {LineBytes/4{{24{pad_i[7]}}, pad_i}};
  end else begin : gen_narrow
    assign padding = {LineBytes{pad_i}};
  end
  if (LineBytes > ChunkBytes) begin : gen_phase
    assign chunk_padding = padding[(32'(chunk_i) * ChunkBytes) % LineBytes * 8 +: ChunkBytes*8];
  end else begin : gen_aligned
    assign chunk_padding = padding;
  end
  always_comb begin
    mask = 'x;
    merged = 'x;
    if (we_i && !full_i) begin
      for (int unsigned b = 0; b < ChunkBytes; b++) mask[b*8 +: 8] = {8{valid_i[b]}};
      merged = (data_i & mask) | (chunk_padding & ~mask);
    end
  end

  // Write mask and data: a whole entry, or a chunk and the padding around it
  logic [Granules-1:0] wmask;
  logic [Width-1:0]    wdata;
  always_comb begin
    wmask = 'x;
    wdata = 'x;
    if (we_i) begin
      if (full_i) begin
        wmask = '1;
        wdata = Writers > 1 && writer_i[Writers-1] ? wdata_i[(Writers-1)*Width +: Width] : wdata_i[Width-1:0];
      end else begin
        // Two nested loops, because tools limit the iterations of one loop that they unroll.
        for (int unsigned h = 0; h < Granules; h += 32) begin
          for (int unsigned g = h; g < Granules && g < h + 32; g++) begin
            if (all_i || (tail_i && g / ChunkGranules > 32'(chunk_i))) begin
              wmask[g] = g / ChunkGranules / GroupChunks == 32'(chunk_i) / GroupChunks;
              wdata[g*GranuleBytes*8 +: GranuleBytes*8] = padding[(g*GranuleBytes) % LineBytes * 8 +: GranuleBytes*8];
            end else begin
              wmask[g] = g / ChunkGranules == 32'(chunk_i) && (!ByteEnable || enable_i[g % ChunkGranules * GranuleBytes]);
              wdata[g*GranuleBytes*8 +: GranuleBytes*8] = merged[(g % ChunkGranules)*GranuleBytes*8 +: GranuleBytes*8];
            end
          end
        end
      end
    end
  end

  tw_ram #(
    .Depth   (Depth),
    .Width   (Width),
    .Granules(Granules)
  ) u_ram (
    .clk_i,
    .re_i,
    .raddr_i,
    .rdata_o,
    .we_i,
    .waddr_i,
    .wmask_i(wmask),
    .wdata_i(wdata)
  );

endmodule
