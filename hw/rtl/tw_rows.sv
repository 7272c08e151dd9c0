// Walks the rows of a load or store: checks each and hands it on, one a cycle. The limit is checked before the memory's
// range, and nothing follows a row that fails.
module tw_rows (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        stop_i,
  input  logic        start_i,
  input  logic [2:0]  mem_i,
  input  logic [tw_cfg_pkg::OffsetBits-1:0] base_addr_i,
  input  logic [tw_cfg_pkg::OffsetBits-1:0] base_limit_i,
  input  logic [tw_cfg_pkg::OffsetBits-1:0] offset_i,
  input  logic [tw_cfg_pkg::EntryW-1:0] entry_i,
  input  logic [15:0] row_bytes_i,
  input  logic [10:0] rows_i,
  input  logic [10:0] planes_i,
  input  logic [tw_cfg_pkg::StrideBits-1:0] row_stride_i,
  input  logic [tw_cfg_pkg::StrideBits-1:0] plane_stride_i,
  input  logic [7:0]  x_before_i,
  input  logic [7:0]  x_after_i,
  input  logic [5:0]  y_before_i,
  input  logic [5:0]  y_after_i,
  input  logic [5:0]  z_before_i,
  input  logic [5:0]  z_after_i,
  input  logic        pack_i,
  input  logic [tw_cfg_pkg::PackByteW-1:0] pack_byte_i,
  input  logic [tw_cfg_pkg::PackStrideW-1:0] pack_row_stride_i,
  input  logic [tw_cfg_pkg::PackStrideW-1:0] pack_plane_stride_i,
  // The present row: taken when ready_i.
  input  logic        ready_i,
  output logic        valid_o,
  output logic        pad_o,
  output logic        last_o,
  output logic [31:0] pos_o,
  output logic [tw_cfg_pkg::OffsetBits-1:0] addr_o,
  output logic [15:0] row_bytes_o,
  output logic        active_o,
  output logic        done_o,
  output logic        trap_limit_o,
  output logic        trap_range_o
);

  localparam int unsigned OffsetBits = tw_cfg_pkg::OffsetBits;

  // The bytes of a whole memory.
  function automatic logic [32:0] mem_bytes(input logic [2:0] mem);
    case (mem)
      tw_isa_pkg::MemInp:   mem_bytes = 33'(tw_cfg_pkg::InpEntries * tw_cfg_pkg::InpEntryBytes);
      tw_isa_pkg::MemWgt:   mem_bytes = 33'(tw_cfg_pkg::WgtEntries * tw_cfg_pkg::WgtEntryBytes);
      tw_isa_pkg::MemAcc:   mem_bytes = 33'(tw_cfg_pkg::AccEntries * tw_cfg_pkg::AccEntryBytes);
      tw_isa_pkg::MemOut:   mem_bytes = 33'(tw_cfg_pkg::OutEntries * tw_cfg_pkg::OutEntryBytes);
      tw_isa_pkg::MemParam: mem_bytes = 33'(tw_cfg_pkg::ParamEntries * tw_cfg_pkg::ParamEntryBytes);
      tw_isa_pkg::MemGuop:  mem_bytes = 33'(tw_cfg_pkg::GuopEntries * tw_cfg_pkg::GuopEntryBytes);
      default:              mem_bytes = 33'(tw_cfg_pkg::VuopEntries * tw_cfg_pkg::VuopEntryBytes);
    endcase
  endfunction

  logic        active_q;
  logic [2:0]  mem_q;
  logic [OffsetBits-1:0] base_q, limit_q, row_off_q, plane_off_q;
  logic [31:0] pos_q, plane_pos_q;
  logic [15:0] row_bytes_q;
  logic [11:0] y_q, y_end_q, z_q, z_end_q;
  logic [11:0] y_first_q, y_past_q, z_first_q, z_past_q;
  logic [tw_cfg_pkg::StrideBits-1:0] row_stride_q, plane_stride_q;
  logic [8:0]  pads_q;
  logic        pack_q;
  logic [31:0] pack_row_q, pack_plane_q;

  logic [4:0]  log;
  logic [16:0] round;
  logic [31:0] span;
  logic        y_data, z_data, last_y, last_z, limit_bad, range_bad, take;
  logic [OffsetBits-1:0] last_byte;

  // Scratchpad bytes of a row: whole entries, or exactly its bytes when packed.
  // Nothing is computed while nothing is walked.
  always_comb begin
    log = '0;
    round = '0;
    span = '0;
    y_data = 1'b0;
    z_data = 1'b0;
    last_y = 1'b0;
    last_z = 1'b0;
    last_byte = '0;
    limit_bad = 1'b0;
    range_bad = 1'b0;
    if (active_q) begin
      log = tw_cfg_pkg::EntryLogs[32'(mem_q)*5 +: 5];
      round = (17'(row_bytes_q) + 17'((32'd1 << log) - 32'd1)) >> log;
      if (pack_q) span = 32'(row_bytes_q) + 32'(pads_q);
      else span = (32'(round) + 32'(pads_q)) << log;
      y_data = y_q >= y_first_q && y_q < y_past_q;
      z_data = z_q >= z_first_q && z_q < z_past_q;
      last_y = y_q == y_end_q;
      last_z = z_q == z_end_q;
      last_byte = row_off_q + OffsetBits'(row_bytes_q) - 1'b1;
      limit_bad = y_data && z_data && (row_off_q >= limit_q || last_byte < row_off_q || last_byte >= limit_q);
      range_bad = 33'(pos_q) + 33'(span) > mem_bytes(mem_q);
    end
  end

  assign pad_o     = !(y_data && z_data);
  assign last_o    = last_y && last_z;
  assign trap_limit_o = active_q && !stop_i && limit_bad;
  assign trap_range_o = active_q && !stop_i && !limit_bad && range_bad;
  assign valid_o   = active_q && !stop_i && !limit_bad && !range_bad;
  assign pos_o     = pos_q;
  assign addr_o    = base_q + row_off_q;
  assign row_bytes_o = row_bytes_q;
  assign active_o  = active_q;
  assign take      = valid_o && ready_i;
  assign done_o    = take && last_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) active_q <= 1'b0;
    else if (start_i) active_q <= 1'b1;
    else if (done_o) active_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      mem_q          <= mem_i;
      base_q         <= base_addr_i;
      limit_q        <= base_limit_i;
      row_off_q      <= offset_i;
      plane_off_q    <= offset_i;
      pos_q          <= (32'(entry_i) << tw_cfg_pkg::EntryLogs[32'(mem_i)*5 +: 5]) + 32'(pack_byte_i);
      plane_pos_q    <= (32'(entry_i) << tw_cfg_pkg::EntryLogs[32'(mem_i)*5 +: 5]) + 32'(pack_byte_i);
      row_bytes_q    <= row_bytes_i;
      y_q            <= '0;
      z_q            <= '0;
      y_first_q      <= 12'(y_before_i);
      y_past_q       <= 12'(y_before_i) + 12'(rows_i);
      y_end_q        <= 12'(y_before_i) + 12'(rows_i) + 12'(y_after_i) - 1'b1;
      z_first_q      <= 12'(z_before_i);
      z_past_q       <= 12'(z_before_i) + 12'(planes_i);
      z_end_q        <= 12'(z_before_i) + 12'(planes_i) + 12'(z_after_i) - 1'b1;
      row_stride_q   <= row_stride_i;
      plane_stride_q <= plane_stride_i;
      pads_q         <= 9'(x_before_i) + 9'(x_after_i);
      pack_q         <= pack_i;
      pack_row_q     <= 32'(pack_row_stride_i);
      pack_plane_q   <= 32'(pack_plane_stride_i);
    end else if (take) begin
      if (!last_y) begin
        y_q   <= y_q + 1'b1;
        pos_q <= pos_q + (pack_q ? pack_row_q : span);
        if (y_data && z_data) row_off_q <= row_off_q + OffsetBits'(row_stride_q);
      end else begin
        y_q <= '0;
        z_q <= z_q + 1'b1;
        pos_q       <= pack_q ? plane_pos_q + pack_plane_q : pos_q + span;
        plane_pos_q <= plane_pos_q + pack_plane_q;
        if (z_data) begin
          row_off_q   <= plane_off_q + OffsetBits'(plane_stride_q);
          plane_off_q <= plane_off_q + OffsetBits'(plane_stride_q);
        end
      end
    end
  end

endmodule
