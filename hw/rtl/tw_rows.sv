// Walks the rows of a load or store: checks each one and hands it on, one a cycle.
//
// A row is checked against the limit of its base, then against the range of its scratchpad. A row that fails traps, and
// none follows. Places in the scratchpad are bytes if the configuration can pack rows, otherwise entries.
module tw_rows #(
  // Bits of the unit's instructions after their header
  parameter int unsigned BodyW = 256
) (
  input  logic                               clk_i,
  input  logic                               rst_ni,
  input  logic                               stop_i,
  input  logic                               start_i,
  input  logic [2:0]                         mem_i,
  input  logic [tw_cfg_pkg::OffsetBits-1:0]  base_addr_i,
  input  logic [tw_cfg_pkg::OffsetBits-1:0]  base_limit_i,
  input  logic [tw_cfg_pkg::OffsetBits-1:0]  offset_i,
  input  logic [tw_cfg_pkg::EntryW-1:0]      entry_i,
  input  logic [15:0]                        row_bytes_i,
  input  logic [10:0]                        rows_i,
  input  logic [10:0]                        planes_i,
  input  logic [tw_cfg_pkg::StrideBits-1:0]  row_stride_i,
  input  logic [tw_cfg_pkg::StrideBits-1:0]  plane_stride_i,
  input  logic [7:0]                         x_before_i,
  input  logic [7:0]                         x_after_i,
  input  logic [5:0]                         y_before_i,
  input  logic [5:0]                         y_after_i,
  input  logic [5:0]                         z_before_i,
  input  logic [5:0]                         z_after_i,
  input  logic                               pack_i,
  input  logic [tw_cfg_pkg::PackByteW-1:0]   pack_byte_i,
  input  logic [tw_cfg_pkg::PackStrideW-1:0] pack_row_stride_i,
  input  logic [tw_cfg_pkg::PackStrideW-1:0] pack_plane_stride_i,

  // The current row, taken when ready_i is set
  input  logic                              ready_i,
  output logic                              valid_o,
  output logic                              pad_o,
  output logic                              last_o,
  output logic [tw_cfg_pkg::PosW-1:0]       pos_o,
  output logic [tw_cfg_pkg::OffsetBits-1:0] addr_o,
  output logic [tw_cfg_pkg::RowBytesW-1:0]  row_bytes_o,
  output logic                              active_o,
  output logic                              done_o,
  output logic                              trap_limit_o,
  output logic                              trap_range_o
);

  localparam int unsigned OffsetBits = tw_cfg_pkg::OffsetBits;
  localparam int unsigned StrideBits = tw_cfg_pkg::StrideBits;
  localparam int unsigned PosW = tw_cfg_pkg::PosW;
  // Bits of the longest row that fits a scratchpad; longer ones are out of range
  localparam int unsigned RowBytesW = tw_cfg_pkg::RowBytesW;
  localparam int unsigned SpanW = RowBytesW > 9 ? RowBytesW : 9;
  localparam int unsigned EndW = (PosW > SpanW ? PosW : SpanW) + 2;
  localparam bit Pack = tw_cfg_pkg::DmaPack != 0;
  // Without pads all rows are data.
  localparam bit Pad = tw_cfg_pkg::DmaPad != 0;

  // Size of a scratchpad, in places
  localparam int unsigned InpSize = tw_cfg_pkg::InpEntries * (Pack ? tw_cfg_pkg::InpEntryBytes : 1);
  localparam int unsigned WgtSize = tw_cfg_pkg::WgtEntries * (Pack ? tw_cfg_pkg::WgtEntryBytes : 1);
  localparam int unsigned AccSize = tw_cfg_pkg::AccEntries * (Pack ? tw_cfg_pkg::AccEntryBytes : 1);
  localparam int unsigned OutSize = tw_cfg_pkg::OutEntries * (Pack ? tw_cfg_pkg::OutEntryBytes : 1);
  localparam int unsigned ParamSize = tw_cfg_pkg::ParamEntries * (Pack ? tw_cfg_pkg::ParamEntryBytes : 1);
  localparam int unsigned GuopSize = tw_cfg_pkg::GuopEntries * (Pack ? tw_cfg_pkg::GuopEntryBytes : 1);
  localparam int unsigned VuopSize = tw_cfg_pkg::VuopEntries * (Pack ? tw_cfg_pkg::VuopEntryBytes : 1);

  function automatic logic [EndW-1:0] mem_size(input logic [2:0] mem);
    unique case (mem)
      tw_isa_pkg::MemInp:   mem_size = EndW'(InpSize);
      tw_isa_pkg::MemWgt:   mem_size = EndW'(WgtSize);
      tw_isa_pkg::MemAcc:   mem_size = EndW'(AccSize);
      tw_isa_pkg::MemOut:   mem_size = EndW'(OutSize);
      tw_isa_pkg::MemParam: mem_size = EndW'(ParamSize);
      tw_isa_pkg::MemGuop:  mem_size = EndW'(GuopSize);
      default:              mem_size = EndW'(VuopSize);
    endcase
  endfunction

  /////////////////
  // Instruction //
  /////////////////

  // Fields of the instruction: copied, or in lean configurations kept by its queue
  logic [OffsetBits-1:0] base_q;
  logic [RowBytesW-1:0]  row_bytes_q;
  logic [10:0]           rows_q, planes_q;
  logic [5:0]            y_before_q, y_after_q, z_before_q, z_after_q;
  logic [StrideBits-1:0] row_stride_q, plane_stride_q;
  logic                  pack_q;
  logic [PosW-1:0]       pack_row_q, pack_plane_q;
  if (tw_cfg_pkg::Lean != 0) begin : gen_kept
    assign base_q         = base_addr_i;
    assign row_bytes_q    = RowBytesW'(row_bytes_i);
    assign rows_q         = rows_i;
    assign planes_q       = planes_i;
    assign y_before_q     = y_before_i;
    assign y_after_q      = y_after_i;
    assign z_before_q     = z_before_i;
    assign z_after_q      = z_after_i;
    assign row_stride_q   = row_stride_i;
    assign plane_stride_q = plane_stride_i;
    assign pack_q         = Pack && pack_i;
    assign pack_row_q     = PosW'(pack_row_stride_i);
    assign pack_plane_q   = PosW'(pack_plane_stride_i);
  end else begin : gen_copied
    always_ff @(posedge clk_i) begin
      if (start_i) begin
        base_q         <= base_addr_i;
        row_bytes_q    <= RowBytesW'(row_bytes_i);
        rows_q         <= rows_i;
        planes_q       <= planes_i;
        y_before_q     <= y_before_i;
        y_after_q      <= y_after_i;
        z_before_q     <= z_before_i;
        z_after_q      <= z_after_i;
        row_stride_q   <= row_stride_i;
        plane_stride_q <= plane_stride_i;
        pack_q         <= Pack && pack_i;
        pack_row_q     <= PosW'(pack_row_stride_i);
        pack_plane_q   <= PosW'(pack_plane_stride_i);
      end
    end
  end

  ////////////
  // Bounds //
  ////////////

  // Computed once, at the start:
  // - span_q: the places that a row takes, in whole entries or, packed, in bytes
  // - most_q: the last place where a row may begin
  // - outside_q: the first offset at which the row's last byte is beyond the limit, also if the address wraps
  // most_q and outside_q are negative if no row fits.
  logic [4:0]                 log;
  logic [PosW-1:0]            start_pos;
  logic [EndW-1:0]            mask, data, pads, span;
  logic [EndW:0]              most, room;
  logic                       long, first_past;
  logic [PosW-1:0]            span_q;
  logic signed [EndW:0]       most_q;
  logic signed [OffsetBits:0] outside_q;
  logic                       long_q;
  assign start_pos = Pack ? (PosW'(entry_i) << tw_cfg_pkg::EntryLogs[32'(mem_i)*5 +: 5]) + PosW'(pack_byte_i) : PosW'(entry_i);
  always_comb begin
    log = 'x;
    mask = 'x;
    data = 'x;
    pads = 'x;
    span = 'x;
    most = 'x;
    room = 'x;
    long = 'x;
    first_past = 'x;
    if (start_i) begin
      log = tw_cfg_pkg::EntryLogs[32'(mem_i)*5 +: 5];
      mask = Pack && pack_i ? '0 : (EndW'(1) << log) - 1'b1;
      data = (EndW'(RowBytesW'(row_bytes_i)) + mask) & ~mask;
      pads = EndW'(x_before_i) + EndW'(x_after_i);
      if (!Pack) data = data >> log;
      else if (!pack_i) pads = pads << log;
      span = data + pads;
      most = (EndW+1)'(mem_size(mem_i)) - (EndW+1)'(span);
      long = (17'(row_bytes_i) >> RowBytesW) != '0;
      // The same comparison as with most_q, arranged for the order in which its operands arrive
      room = (EndW+1)'(mem_size(mem_i)) - (EndW+1)'(start_pos) - (EndW+1)'(pads);
      first_past = long || $signed({1'b0, data}) > $signed(room);
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      span_q <= PosW'(span);
      most_q <= most;
      long_q <= long;
    end
  end
  logic [OffsetBits:0] outside;
  assign outside = (OffsetBits+1)'(base_limit_i) - (OffsetBits+1)'(row_bytes_i) + 1'b1;
  // In lean configurations the limit comes from a memory, a cycle after the number of its base is at the queue's head.
  if (tw_cfg_pkg::Lean != 0 && BodyW + 16 <= tw_cfg_pkg::InsnWordBits) begin : gen_late
    assign outside_q = outside;
  end else begin : gen_in_time
    always_ff @(posedge clk_i) begin
      if (start_i) outside_q <= outside;
    end
  end

  //////////
  // Walk //
  //////////

  // Rows of a plane, and planes, are pads, data, pads. Each part counts from one.
  typedef enum logic [1:0] {PartBefore, PartData, PartAfter} part_e;
  // Whether the row is the last of its part, of its plane, and its plane the last one: registered with the row, because
  // the end of the walk has long paths.
  logic                  active_q, y_past_q, z_past_q, last_y_q, last_z_q;
  part_e                 y_part_q, z_part_q, y_part, z_part;
  logic [10:0]           y_q, z_q, y, z, rows, planes;
  logic [5:0]            y_before, y_after, z_before, z_after;
  logic                  y_past, z_past, last_y, last_z, y_data, z_data, take, fresh;
  logic                  limit_bad, range_bad, limit_past, range_past;
  logic [OffsetBits-1:0] row_off_q, plane_off_q, row_off, row_off_step;
  logic [PosW-1:0]       pos_q, plane_pos_q, past, pos, pos_step;

  // Rows or planes of a part
  function automatic logic [10:0] part_size(
    input part_e part, input logic [5:0] ahead, input logic [10:0] between, input logic [5:0] behind
  );
    unique case (part)
      PartBefore: part_size = 11'(ahead);
      PartData:   part_size = between;
      default:    part_size = 11'(behind);
    endcase
  endfunction

  // Simulators skip this while nothing is walked.
  always_comb begin
    past = 'x;
    y_data = 1'b0;
    z_data = 1'b0;
    limit_bad = 1'b0;
    range_bad = 1'b0;
    if (active_q) begin
      y_data = !Pad || y_part_q == PartData;
      z_data = !Pad || z_part_q == PartData;
      limit_bad = y_data && z_data && limit_past;
      past = pos_q + span_q;
      range_bad = range_past;
    end
  end

  assign pad_o        = Pad && !(y_data && z_data);
  assign last_o       = active_q && last_y_q && last_z_q;
  assign trap_limit_o = active_q && !stop_i && limit_bad;
  assign trap_range_o = active_q && !stop_i && !limit_bad && range_bad;
  assign valid_o      = active_q && !stop_i && !limit_bad && !range_bad;
  assign pos_o        = pos_q;
  assign addr_o       = base_q + row_off_q;
  assign row_bytes_o  = row_bytes_q;
  assign active_o     = active_q;
  assign take         = valid_o && ready_i;
  assign done_o       = take && last_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) active_q <= 1'b0;
    else if (start_i) active_q <= 1'b1;
    else if (done_o) active_q <= 1'b0;
  end

  // The next row: of this walk, or after its end the first row of the next walk
  assign fresh = !active_q || last_o;
  always_comb begin
    {y_before, y_after, z_before, z_after, rows, planes} = 'x;
    {y, z, y_past, z_past, last_y, last_z} = 'x;
    row_off = 'x;
    pos = 'x;
    row_off_step = 'x;
    pos_step = 'x;
    y_part = y_before_i != '0 ? PartBefore : PartData;
    z_part = z_before_i != '0 ? PartBefore : PartData;
    if (fresh) begin
      if (start_i) begin
        {y_before, y_after, z_before, z_after} = {y_before_i, y_after_i, z_before_i, z_after_i};
        {rows, planes} = {rows_i, planes_i};
        y = 11'd1;
        z = 11'd1;
        row_off = offset_i;
        pos = start_pos;
      end
    end else begin
      {y_before, y_after, z_before, z_after} = {y_before_q, y_after_q, z_before_q, z_after_q};
      {rows, planes} = {rows_q, planes_q};
      y = y_past_q ? 11'd1 : y_q + 1'b1;
      z = z_q;
      y_part = y_part_q;
      z_part = z_part_q;
      row_off_step = row_off_q;
      pos_step = past;
      if (last_y_q) y_part = y_before_q != '0 ? PartBefore : PartData;
      else if (y_past_q) y_part = y_data ? PartAfter : PartData;
      if (!last_y_q) begin
        if (pack_q) pos_step = pos_q + pack_row_q;
        if (y_data && z_data) row_off_step = row_off_q + OffsetBits'(row_stride_q);
      end else begin
        z = z_past_q ? 11'd1 : z_q + 1'b1;
        if (z_past_q) z_part = z_data ? PartAfter : PartData;
        if (pack_q) pos_step = plane_pos_q + pack_plane_q;
        if (z_data) row_off_step = plane_off_q + OffsetBits'(plane_stride_q);
      end
      row_off = row_off_step;
      pos = pos_step;
    end
    if (!fresh || start_i) begin
      y_past = y == (Pad ? part_size(y_part, y_before, rows, y_after) : rows);
      z_past = z == (Pad ? part_size(z_part, z_before, planes, z_after) : planes);
      last_y = y_past && (!Pad || y_part == PartAfter || (y_part == PartData && y_after == '0));
      last_z = z_past && (!Pad || z_part == PartAfter || (z_part == PartData && z_after == '0));
    end
  end

  always_ff @(posedge clk_i) begin
    if (start_i || take) begin
      row_off_q <= row_off;
      pos_q     <= pos;
      y_q       <= y;
      z_q       <= z;
      y_part_q  <= y_part;
      z_part_q  <= z_part;
      y_past_q  <= y_past;
      z_past_q  <= z_past;
      last_y_q  <= last_y;
      last_z_q  <= last_z;
    end
    if (start_i) begin
      plane_off_q <= offset_i;
      plane_pos_q <= start_pos;
    end else if (take && last_y_q) begin
      plane_pos_q <= plane_pos_q + pack_plane_q;
      if (z_data) plane_off_q <= row_off_step;
    end
  end

  ////////////
  // Checks //
  ////////////

  // Whether the row is out of bounds: compared here in lean configurations, otherwise registered with the row.
  if (tw_cfg_pkg::Lean != 0) begin : gen_looked_at
    assign limit_past = $signed({1'b0, row_off_q}) >= outside_q;
    assign range_past = long_q || $signed((EndW+1)'(pos_q)) > most_q;
    logic unused_first;
    assign unused_first = first_past;
  end else begin : gen_ahead
    logic limit_past_q, range_past_q, next_limit_past, next_range_past;
    always_comb begin
      next_limit_past = 'x;
      next_range_past = 'x;
      if (!fresh) begin
        next_limit_past = $signed({1'b0, row_off_step}) >= outside_q;
        next_range_past = long_q || $signed((EndW+1)'(pos_step)) > most_q;
      end
    end
    always_ff @(posedge clk_i) begin
      if (start_i || take) begin
        limit_past_q <= fresh ? $signed({1'b0, offset_i}) >= $signed(outside) : next_limit_past;
        range_past_q <= fresh ? first_past : next_range_past;
      end
    end
    assign limit_past = limit_past_q;
    assign range_past = range_past_q;
  end

  // Unused where rows cannot be packed
  logic unused;
  assign unused = ^{pack_byte_i, pack_row_stride_i, pack_plane_stride_i};

endmodule
