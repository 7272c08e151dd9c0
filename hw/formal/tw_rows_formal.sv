// tw_rows, the walk of a load's or store's rows, beside the contract: planes, rows and pads in the order z, y; a data
// row's address is base + offset + r row_stride + p plane_stride modulo 2^OffsetBits; a row's place in the memory
// follows the row before, or with pack is entry + pack_byte + y pack_row_stride + z pack_plane_stride.
//
// The harness keeps r and p, y and z, and the two sums as their recurrences say: a row's is the row's before and a
// stride, a plane's first the first of the plane before and a stride. Places are exact, not modulo something, up to the
// first row that fails, which traps and ends all.
module tw_rows_formal #(
  // The memory that rows go to or come from.
  parameter logic [2:0] Mem = tw_isa_pkg::MemInp,
  localparam int unsigned OffsetBits = tw_cfg_pkg::OffsetBits,
  localparam int unsigned StrideBits = tw_cfg_pkg::StrideBits,
  localparam int unsigned PackStrideW = tw_cfg_pkg::PackStrideW
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic        stop_i,
  input logic        start_i,
  input logic [2:0]  mem_i,
  input logic [OffsetBits-1:0] base_addr_i,
  input logic [OffsetBits-1:0] base_limit_i,
  input logic [OffsetBits-1:0] offset_i,
  input logic [tw_cfg_pkg::EntryW-1:0] entry_i,
  input logic [15:0] row_bytes_i,
  input logic [10:0] rows_i,
  input logic [10:0] planes_i,
  input logic [StrideBits-1:0] row_stride_i,
  input logic [StrideBits-1:0] plane_stride_i,
  input logic [7:0]  x_before_i,
  input logic [7:0]  x_after_i,
  input logic [5:0]  y_before_i,
  input logic [5:0]  y_after_i,
  input logic [5:0]  z_before_i,
  input logic [5:0]  z_after_i,
  input logic        pack_i,
  input logic [tw_cfg_pkg::PackByteW-1:0] pack_byte_i,
  input logic [PackStrideW-1:0] pack_row_stride_i,
  input logic [PackStrideW-1:0] pack_plane_stride_i,
  input logic        ready_i
);

  localparam int unsigned PosW = 33;

  logic        valid, pad, last, active, done, trap_limit, trap_range;
  logic [tw_cfg_pkg::PosW-1:0] pos;
  logic [OffsetBits-1:0] addr;
  logic [tw_cfg_pkg::RowBytesW-1:0] row_bytes;

  tw_rows u_dut (
    .clk_i, .rst_ni, .stop_i, .start_i, .mem_i, .base_addr_i, .base_limit_i, .offset_i, .entry_i, .row_bytes_i, .rows_i,
    .planes_i, .row_stride_i, .plane_stride_i, .x_before_i, .x_after_i, .y_before_i, .y_after_i, .z_before_i, .z_after_i,
    .pack_i, .pack_byte_i, .pack_row_stride_i, .pack_plane_stride_i, .ready_i, .valid_o(valid), .pad_o(pad), .last_o(last),
    .pos_o(pos), .addr_o(addr), .row_bytes_o(row_bytes), .active_o(active), .done_o(done), .trap_limit_o(trap_limit),
    .trap_range_o(trap_range)
  );

  // Bytes of so many entries, and entries of so many bytes, as loads address the memories: a row of a param entry is an
  // entry.
  function automatic logic [PosW-1:0] bytes_of(input logic [2:0] mem, input logic [PosW-1:0] n);
    case (mem)
      tw_isa_pkg::MemInp:   bytes_of = n << $clog2(tw_cfg_pkg::InpEntryBytes);
      tw_isa_pkg::MemWgt:   bytes_of = n << $clog2(tw_cfg_pkg::WgtEntryBytes);
      tw_isa_pkg::MemAcc:   bytes_of = n << $clog2(tw_cfg_pkg::AccEntryBytes);
      tw_isa_pkg::MemOut:   bytes_of = n << $clog2(tw_cfg_pkg::OutEntryBytes);
      tw_isa_pkg::MemParam: bytes_of = n << $clog2(tw_cfg_pkg::ParamEntryBytes);
      tw_isa_pkg::MemGuop:  bytes_of = n << $clog2(tw_cfg_pkg::GuopEntryBytes);
      default:              bytes_of = n << $clog2(tw_cfg_pkg::VuopEntryBytes);
    endcase
  endfunction
  function automatic logic [PosW-1:0] entries_of(input logic [2:0] mem, input logic [15:0] n);
    case (mem)
      tw_isa_pkg::MemInp:   entries_of = PosW'((17'(n) + 17'(tw_cfg_pkg::InpEntryBytes - 1)) >> $clog2(tw_cfg_pkg::InpEntryBytes));
      tw_isa_pkg::MemWgt:   entries_of = PosW'((17'(n) + 17'(tw_cfg_pkg::WgtEntryBytes - 1)) >> $clog2(tw_cfg_pkg::WgtEntryBytes));
      tw_isa_pkg::MemAcc:   entries_of = PosW'((17'(n) + 17'(tw_cfg_pkg::AccEntryBytes - 1)) >> $clog2(tw_cfg_pkg::AccEntryBytes));
      tw_isa_pkg::MemOut:   entries_of = PosW'((17'(n) + 17'(tw_cfg_pkg::OutEntryBytes - 1)) >> $clog2(tw_cfg_pkg::OutEntryBytes));
      tw_isa_pkg::MemParam: entries_of = PosW'((17'(n) + 17'(tw_cfg_pkg::ParamEntryBytes - 1)) >> $clog2(tw_cfg_pkg::ParamEntryBytes));
      tw_isa_pkg::MemGuop:  entries_of = PosW'((17'(n) + 17'(tw_cfg_pkg::GuopEntryBytes - 1)) >> $clog2(tw_cfg_pkg::GuopEntryBytes));
      default:              entries_of = PosW'((17'(n) + 17'(tw_cfg_pkg::VuopEntryBytes - 1)) >> $clog2(tw_cfg_pkg::VuopEntryBytes));
    endcase
  endfunction
  function automatic logic [PosW-1:0] memory_bytes(input logic [2:0] mem);
    case (mem)
      tw_isa_pkg::MemInp:   memory_bytes = PosW'(tw_cfg_pkg::InpDepth * tw_cfg_pkg::InpEntryBytes);
      tw_isa_pkg::MemWgt:   memory_bytes = PosW'(tw_cfg_pkg::WgtDepth * tw_cfg_pkg::WgtEntryBytes);
      tw_isa_pkg::MemAcc:   memory_bytes = PosW'(tw_cfg_pkg::AccDepth * tw_cfg_pkg::AccEntryBytes);
      tw_isa_pkg::MemOut:   memory_bytes = PosW'(tw_cfg_pkg::OutDepth * tw_cfg_pkg::OutEntryBytes);
      tw_isa_pkg::MemParam: memory_bytes = PosW'(tw_cfg_pkg::ParamDepth * tw_isa_pkg::ParamRows * tw_cfg_pkg::ParamEntryBytes);
      tw_isa_pkg::MemGuop:  memory_bytes = PosW'(tw_cfg_pkg::GemmUopDepth * tw_cfg_pkg::GuopEntryBytes);
      default:              memory_bytes = PosW'(tw_cfg_pkg::VectorUopDepth * tw_cfg_pkg::VuopEntryBytes);
    endcase
  endfunction

  // The instruction, and the row of it that has to stand: y and z with pads counted.
  logic        busy_q, ended_q;
  logic [OffsetBits-1:0] base_q, limit_q;
  logic [15:0] bytes_q;
  logic [11:0] rows_q, planes_q, y_before_q, z_before_q, y_all_q, z_all_q, y_q, z_q;
  logic [StrideBits-1:0] row_stride_q, plane_stride_q;
  logic [8:0] pads_q;
  logic [PosW-1:0] span, pack_row_q, pack_plane_q;
  logic        pack_q;
  // The offset of the row and of its plane's first data row; the place of the row and of its plane's first.
  logic [OffsetBits-1:0] row_at_q, plane_at_q;
  logic [PosW-1:0] row_pos_q, plane_pos_q;

  assign span = pack_q ? PosW'(bytes_q) + PosW'(pads_q) : bytes_of(Mem, entries_of(Mem, bytes_q) + PosW'(pads_q));

  logic is_data, in_planes, last_row, last_plane, take;
  assign in_planes  = z_q >= z_before_q && z_q < z_before_q + planes_q;
  assign is_data    = y_q >= y_before_q && y_q < y_before_q + rows_q && in_planes;
  assign last_row   = y_q == y_all_q - 12'd1;
  assign last_plane = z_q == z_all_q - 12'd1;
  assign take       = valid && ready_i;

  logic [OffsetBits-1:0] row_end;
  logic out_of_limit, out_of_memory;
  assign row_end = row_at_q + OffsetBits'(bytes_q) - 1'b1;
  assign out_of_limit  = is_data && (row_at_q >= limit_q || row_end < row_at_q || row_end >= limit_q);
  assign out_of_memory = row_pos_q + span > memory_bytes(Mem);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
      ended_q <= 1'b0;
    end else begin
      if (start_i) busy_q <= 1'b1;
      else if (take && last_row && last_plane) busy_q <= 1'b0;
      // A trap, or another unit's, ends all until the reset.
      if (stop_i || trap_limit || trap_range) ended_q <= 1'b1;
    end
    if (start_i) begin
      base_q <= base_addr_i;
      limit_q <= base_limit_i;
      bytes_q <= row_bytes_i;
      rows_q <= 12'(rows_i);
      planes_q <= 12'(planes_i);
      y_before_q <= 12'(y_before_i);
      z_before_q <= 12'(z_before_i);
      y_all_q <= 12'(y_before_i) + 12'(rows_i) + 12'(y_after_i);
      z_all_q <= 12'(z_before_i) + 12'(planes_i) + 12'(z_after_i);
      row_stride_q <= row_stride_i;
      plane_stride_q <= plane_stride_i;
      pads_q <= 9'(x_before_i) + 9'(x_after_i);
      pack_q <= pack_i;
      pack_row_q <= PosW'(pack_row_stride_i);
      pack_plane_q <= PosW'(pack_plane_stride_i);
      y_q <= '0;
      z_q <= '0;
      row_at_q <= offset_i;
      plane_at_q <= offset_i;
      row_pos_q <= bytes_of(Mem, PosW'(entry_i)) + PosW'(pack_byte_i);
      plane_pos_q <= bytes_of(Mem, PosW'(entry_i)) + PosW'(pack_byte_i);
    end else if (take) begin
      if (!last_row) begin
        y_q <= y_q + 12'd1;
        row_pos_q <= row_pos_q + (pack_q ? pack_row_q : span);
        if (is_data) row_at_q <= row_at_q + OffsetBits'(row_stride_q);
      end else begin
        y_q <= '0;
        z_q <= z_q + 12'd1;
        row_pos_q <= pack_q ? plane_pos_q + pack_plane_q : row_pos_q + span;
        plane_pos_q <= plane_pos_q + pack_plane_q;
        if (in_planes) begin
          row_at_q <= plane_at_q + OffsetBits'(plane_stride_q);
          plane_at_q <= plane_at_q + OffsetBits'(plane_stride_q);
        end
      end
    end
  end

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  always @(posedge clk_i) begin
    if (!started_q) assume (!rst_ni);
    // The decoder refuses empty rows, rows and planes, the eighth memory, and places outside an entry or without pack.
    if (start_i) assume (row_bytes_i != '0 && rows_i != '0 && planes_i != '0 && mem_i == Mem);
    if (start_i) assume (pack_i || (pack_byte_i == '0 && pack_row_stride_i == '0 && pack_plane_stride_i == '0));
    assume (!start_i || (!stop_i && (!active || done)));
    if (ended_q) assume (stop_i);
    if (rst_ni) begin
      Active_A: assert (active == busy_q);
      Quiet_A: assert (!(stop_i || !busy_q) || (!valid && !trap_limit && !trap_range));
      if (busy_q && !stop_i) begin
        // One of the three: the row stands, its limit traps, or its place does.
        Limit_A: assert (trap_limit == out_of_limit);
        Range_A: assert (trap_range == (!out_of_limit && out_of_memory));
        Valid_A: assert (valid == (!out_of_limit && !out_of_memory));
        Done_A: assert (done == (take && last_row && last_plane));
        if (valid) begin
          Pad_A: assert (pad == !is_data);
          Last_A: assert (last == (last_row && last_plane));
          Place_A: assert (PosW'(pos) == row_pos_q);
          Bytes_A: assert (16'(row_bytes) == bytes_q);
          if (is_data) Address_A: assert (addr == base_q + row_at_q);
        end
      end
      if (busy_q) begin
        // For the proofs by induction.
        Fields_I: assert (u_dut.base_q == base_q
                          && u_dut.row_bytes_q == tw_cfg_pkg::RowBytesW'(bytes_q) && bytes_q != '0 && u_dut.pack_q == pack_q
                          && u_dut.row_stride_q == row_stride_q && u_dut.plane_stride_q == plane_stride_q
                          && PosW'(u_dut.pack_row_q) == pack_row_q && PosW'(u_dut.pack_plane_q) == pack_plane_q);
        Ends_I: assert (12'(u_dut.y_before_q) == y_before_q && 12'(u_dut.rows_q) == rows_q && y_before_q + rows_q + 12'(u_dut.y_after_q) == y_all_q
                        && 12'(u_dut.z_before_q) == z_before_q && 12'(u_dut.planes_q) == planes_q && z_before_q + planes_q + 12'(u_dut.z_after_q) == z_all_q);
        case (u_dut.y_part_q)
          2'd0:    RowBefore_I: assert (y_q + 12'd1 == 12'(u_dut.y_q) && y_q < y_before_q);
          2'd1:    RowData_I: assert (y_q + 12'd1 == y_before_q + 12'(u_dut.y_q) && u_dut.y_q != '0 && 12'(u_dut.y_q) <= rows_q);
          2'd2:    RowAfter_I: assert (y_q + 12'd1 == y_before_q + rows_q + 12'(u_dut.y_q) && u_dut.y_q != '0 && u_dut.y_q <= 11'(u_dut.y_after_q));
          default: RowPart_I: assert (1'b0);
        endcase
        case (u_dut.z_part_q)
          2'd0:    PlaneBefore_I: assert (z_q + 12'd1 == 12'(u_dut.z_q) && z_q < z_before_q);
          2'd1:    PlaneData_I: assert (z_q + 12'd1 == z_before_q + 12'(u_dut.z_q) && u_dut.z_q != '0 && 12'(u_dut.z_q) <= planes_q);
          2'd2:    PlaneAfter_I: assert (z_q + 12'd1 == z_before_q + planes_q + 12'(u_dut.z_q) && u_dut.z_q != '0 && u_dut.z_q <= 11'(u_dut.z_after_q));
          default: PlanePart_I: assert (1'b0);
        endcase
        Flags_I: assert (u_dut.y_past_q == (u_dut.y_q == (u_dut.y_part_q == 2'd0 ? 11'(u_dut.y_before_q) : u_dut.y_part_q == 2'd1 ? u_dut.rows_q : 11'(u_dut.y_after_q)))
                         && u_dut.z_past_q == (u_dut.z_q == (u_dut.z_part_q == 2'd0 ? 11'(u_dut.z_before_q) : u_dut.z_part_q == 2'd1 ? u_dut.planes_q : 11'(u_dut.z_after_q)))
                         && u_dut.last_y_q == (u_dut.y_past_q && (u_dut.y_part_q == 2'd2 || (u_dut.y_part_q == 2'd1 && u_dut.y_after_q == '0)))
                         && u_dut.last_z_q == (u_dut.z_past_q && (u_dut.z_part_q == 2'd2 || (u_dut.z_part_q == 2'd1 && u_dut.z_after_q == '0))));
        Counts_I: assert (y_q < y_all_q && z_q < z_all_q && y_before_q <= 12'd63 && z_before_q <= 12'd63 && rows_q <= 12'd2047
                          && planes_q <= 12'd2047 && y_all_q <= 12'd2173 && z_all_q <= 12'd2173
                          && rows_q != '0 && planes_q != '0 && y_all_q >= y_before_q + rows_q && z_all_q >= z_before_q + planes_q);
        Limit_I: assert (u_dut.outside_q == (OffsetBits+1)'(limit_q) - (OffsetBits+1)'(bytes_q) + 1'b1);
        Long_I: assert (u_dut.long_q == ((17'(bytes_q) >> tw_cfg_pkg::RowBytesW) != '0));
        Most_I: assert (u_dut.long_q || PosW'(u_dut.most_q) == memory_bytes(Mem) - span);
        Past_I: assert (u_dut.limit_past == ($signed({1'b0, u_dut.row_off_q}) >= u_dut.outside_q)
                        && u_dut.range_past == (u_dut.long_q || $signed({2'b00, u_dut.pos_q}) > u_dut.most_q));
        Span_I: assert (u_dut.long_q || u_dut.most_q < 0 || PosW'(u_dut.span_q) == span);
        Offsets_I: assert (u_dut.row_off_q == row_at_q && u_dut.plane_off_q == plane_at_q);
        Places_I: assert (PosW'(u_dut.pos_q) == row_pos_q && (!pack_q || PosW'(u_dut.plane_pos_q) == plane_pos_q));
        Inside_I: assert (!pack_q || (y_q == '0 ? plane_pos_q == row_pos_q : plane_pos_q <= memory_bytes(Mem)));
        Strides_I: assert (pack_row_q >> PackStrideW == '0 && pack_plane_q >> PackStrideW == '0);
      end
      Whole_C: cover (done && y_all_q == 12'd3 && z_all_q == 12'd2 && rows_q == 12'd2 && y_before_q == 12'd1 && !pack_q && row_stride_q != '0 && plane_stride_q != '0);
      Packed_C: cover (done && pack_q && y_all_q == 12'd2 && z_all_q == 12'd2 && pack_row_q > span);
      Next_C: cover (done && start_i);
      LimitTrap_C: cover (trap_limit && y_q == 12'd1);
      RangeTrap_C: cover (trap_range && z_q == 12'd1);
    end
  end

endmodule
