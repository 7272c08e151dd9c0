`include "tw_assert.svh"
`include "tw_fields.svh"

// Load unit: copies rows from memory to the scratchpads, with padding.
//
//   tw_rows       walks the rows of an instruction, checks and hands on each
//   tw_bursts     splits the rows into read bursts, far ahead of their data
//   tw_words      buffers the beats that arrive
//   tw_realign    moves a row's bytes into chunks of its scratchpad
//   write port    writes pads, data, pads of a row
//
// Several instructions are under way: rows of later ones are requested while rows of the first are written.
module tw_load (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic stop_i,

  // Head of the instruction queue, with all its tokens
  input  logic                             insn_valid_i,
  input  logic [tw_cfg_pkg::LoadBodyW-1:0] insn_i,
  input  logic [3:0]                       insn_push_i,
  output logic                             insn_free_o,
  // The queue must keep the instruction's fields: it has started and still reads them
  output logic                             insn_hold_o,

  // Base register of the head
  input  logic [tw_cfg_pkg::OffsetBits-1:0] base_addr_i,
  input  logic [tw_cfg_pkg::OffsetBits-1:0] base_limit_i,

  // Read requests and data
  output logic                              ar_valid_o,
  input  logic                              ar_grant_i,
  output logic [tw_cfg_pkg::OffsetBits-1:0] ar_addr_o,
  output logic [7:0]                        ar_len_o,
  input  logic                              r_valid_i,
  input  logic [tw_cfg_pkg::BusBits-1:0]    r_data_i,
  input  logic                              r_error_i,
  input  logic                              r_last_i,

  // Load port of the scratchpads
  output logic [6:0]                      ld_we_o,
  output logic [tw_cfg_pkg::EntryW-1:0]   ld_entry_o,
  output logic [15:0]                     ld_chunk_o,
  output logic [tw_cfg_pkg::BusBits-1:0]  ld_data_o,
  output logic [tw_cfg_pkg::BusBytes-1:0] ld_valid_o,
  output logic [tw_cfg_pkg::BusBytes-1:0] ld_enable_o,
  output logic                            ld_tail_o,
  output logic                            ld_all_o,
  output logic [7:0]                      ld_pad_o,

  // Retirement and state
  output logic       retire_o,
  output logic [3:0] retire_push_o,
  output logic       busy_o,
  output logic       quiet_o,
  output logic [3:0] state_o,

  // Traps
  output logic       trap_o,
  output logic [3:0] trap_cause_o,
  // The trapping instruction is the oldest whose last row is not written yet; else it is the one that started last
  output logic       trap_oldest_o
);

  localparam int unsigned BusBytes = tw_cfg_pkg::BusBytes;
  localparam int unsigned BusLog = $clog2(BusBytes);
  localparam int unsigned LogW = $clog2(BusLog + 1);
  localparam int unsigned OffsetBits = tw_cfg_pkg::OffsetBits;
  localparam int unsigned OutW = $clog2(tw_cfg_pkg::Outstanding + 1);
  localparam int unsigned FreeW = $clog2(tw_cfg_pkg::LoadBufferBeats + 1);
  localparam int unsigned PosW = tw_cfg_pkg::PosW;
  localparam int unsigned BytesW = tw_cfg_pkg::RowBytesW;
  localparam bit Pack = tw_cfg_pkg::DmaPack != 0;
  localparam bit Pad = tw_cfg_pkg::DmaPad != 0;
  // A param entry that is read at once has nine rows, and each row is an entry to loads. Places count sixteen rows for
  // these nine, so that an entry begins at a power of two.
  localparam bit          NineRows = tw_cfg_pkg::VectorSerial == 0;
  // A place is a byte (Pack) or an entry. RowLog is the size of a row of param in places, as a logarithm.
  localparam int unsigned PlaceW = PosW + 1;
  localparam int unsigned ParamLog = $clog2(tw_cfg_pkg::ParamEntryBytes);
  localparam int unsigned RowLog = Pack ? ParamLog : 0;
  // Pads of a row, in entries or packed bytes
  localparam int unsigned PadsW = Pack ? 17 : PosW;

  ///////////
  // Types //
  ///////////

  // What the writing side needs of an instruction
  typedef struct packed {
    logic [2:0]        mem;
    logic [7:0]        pad;
    logic [7:0]        x_before;
    logic [7:0]        x_after;
    logic [BytesW-1:0] row_bytes;
    logic              pack;
    logic              fill;
    logic [3:0]        push;
    // Bytes of a chunk, as a logarithm, and pads of a row that is all padding
    logic [LogW-1:0]   chunk_log;
    logic [PadsW-1:0]  pads;
  } context_t;

  // A row, from the walk to the writing side
  typedef struct packed {
    logic              first;
    logic              last;
    logic              pad;
    logic [PlaceW-1:0] place;
    // Where the data begin in their first source word and in their first chunk
    logic [BusLog-1:0] src;
    logic [BusLog-1:0] dst;
  } row_t;

  localparam bit Lean = tw_cfg_pkg::Lean != 0;

  ////////////////////////////////
  // Instruction start and walk //
  ////////////////////////////////

  // Simulators skip the fields while there is no instruction.
  logic [tw_cfg_pkg::LoadBodyW-1:0] head;
  assign head = Lean || insn_valid_i ? insn_i : '0;

  function automatic logic [4:0] min_log(input logic [4:0] entry);
    min_log = tw_cfg_pkg::NarrowEntries == 0 || entry >= 5'(BusLog) ? 5'(BusLog) : entry;
  endfunction
  logic [4:0]       head_log;
  logic [PadsW-1:0] head_pads;

  // The next instruction's walk starts as soon as the last row of the one before is handed on.
  logic                  start, rows_active, rows_valid, rows_ready, rows_pad, rows_last, rows_done;
  logic                  trap_limit, trap_range;
  logic [PosW-1:0]       rows_pos;
  logic [PlaceW-1:0]     rows_place;
  logic [OffsetBits-1:0] rows_addr;
  logic [BytesW-1:0]     rows_bytes;
  logic                  ctx_empty, ctx_full, row_empty, row_full, req_empty, req_full, req_ready;
  context_t              ctx_in, ctx_head, ctx_q, ctx;
  row_t                  row_in, row_head;
  logic                  row_take, first_q;

  // In lean configurations the queue shows no head while the one before is walked.
  assign insn_free_o = !ctx_full && (!rows_active || (!Lean && rows_done));
  assign start       = insn_valid_i && !stop_i && insn_free_o;
  assign insn_hold_o = rows_active || !ctx_empty;

  assign ctx_in.mem       = `TW_FIELD(load, mem, head);
  assign ctx_in.pad       = `TW_FIELD(load, pad_value, head);
  assign ctx_in.x_before  = `TW_FIELD(load, x_before, head);
  assign ctx_in.x_after   = `TW_FIELD(load, x_after, head);
  assign ctx_in.row_bytes = BytesW'(`TW_FIELD(load, row_bytes, head));
  assign ctx_in.pack      = `TW_FIELD(load, pack, head);
  assign ctx_in.fill      = `TW_FIELD(load, fill, head);
  assign ctx_in.push      = insn_push_i;
  assign ctx_in.chunk_log = LogW'(min_log(head_log));
  assign ctx_in.pads      = head_pads;
  assign head_log         = tw_cfg_pkg::EntryLogs[32'(`TW_FIELD(load, mem, head))*5 +: 5];
  always_comb begin
    head_pads = 'x;
    if (Lean || insn_valid_i) begin
      head_pads = PadsW'((17'(BytesW'(`TW_FIELD(load, row_bytes, head))) + 17'((32'd1 << head_log) - 32'd1)) >> head_log);
      if (Pack && `TW_FIELD(load, pack, head)) head_pads = PadsW'(BytesW'(`TW_FIELD(load, row_bytes, head)));
      head_pads = head_pads + PadsW'(`TW_FIELD(load, x_before, head)) + PadsW'(`TW_FIELD(load, x_after, head));
    end
  end

  tw_rows #(.BodyW(tw_cfg_pkg::LoadBodyW)) u_rows (
    .clk_i,
    .rst_ni,
    .stop_i,
    .start_i            (start),
    .mem_i              (ctx_in.mem),
    .base_addr_i,
    .base_limit_i,
    .offset_i           (`TW_FIELD(load, offset, head)),
    .entry_i            (`TW_FIELD(load, entry, head)),
    .row_bytes_i        (`TW_FIELD(load, row_bytes, head)),
    .rows_i             (`TW_FIELD(load, rows, head)),
    .planes_i           (`TW_FIELD(load, planes, head)),
    .row_stride_i       (`TW_FIELD(load, row_stride, head)),
    .plane_stride_i     (`TW_FIELD(load, plane_stride, head)),
    .x_before_i         (ctx_in.x_before),
    .x_after_i          (ctx_in.x_after),
    .y_before_i         (`TW_FIELD(load, y_before, head)),
    .y_after_i          (`TW_FIELD(load, y_after, head)),
    .z_before_i         (`TW_FIELD(load, z_before, head)),
    .z_after_i          (`TW_FIELD(load, z_after, head)),
    .pack_i             (ctx_in.pack),
    .pack_byte_i        (`TW_FIELD(load, pack_byte, head)),
    .pack_row_stride_i  (`TW_FIELD(load, pack_row_stride, head)),
    .pack_plane_stride_i(`TW_FIELD(load, pack_plane_stride, head)),
    .ready_i            (rows_ready),
    .valid_o            (rows_valid),
    .pad_o              (rows_pad),
    .last_o             (rows_last),
    .pos_o              (rows_pos),
    .addr_o             (rows_addr),
    .row_bytes_o        (rows_bytes),
    .active_o           (rows_active),
    .done_o             (rows_done),
    .trap_limit_o       (trap_limit),
    .trap_range_o       (trap_range)
  );

  assign rows_ready   = !row_full && !(req_full && !rows_pad);
  assign row_in.first = first_q;
  assign row_in.last  = rows_last;
  assign row_in.pad   = rows_pad;
  assign row_in.place = rows_place;
  assign row_in.src   = rows_addr[BusLog-1:0];
  // Packed data can begin inside a chunk.
  logic [BusLog-1:0] x_before_q, in_chunk_q;
  assign row_in.dst = (BusLog'(rows_pos) + x_before_q) & in_chunk_q;
  always_ff @(posedge clk_i) begin
    if (start) begin
      x_before_q <= BusLog'(ctx_in.x_before);
      in_chunk_q <= Pack && ctx_in.pack ? BusLog'((32'd1 << ctx_in.chunk_log) - 32'd1) : '0;
    end
  end

  // Row number / 9 = entry number of param, as a product with a rounded-up reciprocal. Its width makes the result exact
  // for every row of the memory.
  localparam int unsigned RowsShift = 4 + $clog2(tw_cfg_pkg::ParamEntries);
  localparam int unsigned RowsReciprocal = ((1 << RowsShift) + tw_isa_pkg::ParamRows - 1) / tw_isa_pkg::ParamRows;
  localparam int unsigned FirstW = PlaceW - RowLog;
  logic [FirstW-1:0] param_row, param_entry, param_place;
  logic              rows_nine_q;
  always_comb begin
    rows_place = PlaceW'(rows_pos);
    param_row = '0;
    param_entry = '0;
    param_place = '0;
    if (rows_active && rows_nine_q) begin
      param_row = FirstW'(PlaceW'(rows_pos) >> RowLog);
      param_entry = FirstW'((52'(param_row) * 52'(RowsReciprocal)) >> RowsShift);
      // entry * 16 + (row - entry * 9) = row + entry * 7; two sums are faster than a multiplier.
      param_place = param_row + FirstW'(param_entry << 3) - param_entry;
      rows_place = PlaceW'(param_place) << RowLog;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start) rows_nine_q <= NineRows && ctx_in.mem == tw_isa_pkg::MemParam;
  end

  always_ff @(posedge clk_i) begin
    if (start) first_q <= 1'b1;
    else if (rows_valid && rows_ready) first_q <= 1'b0;
  end

  logic [$clog2(tw_cfg_pkg::LoadRows+1)-1:0] unused_row_count;
  logic [$clog2(tw_cfg_pkg::LoadRequests+1)-1:0] unused_req_count;
  if (Lean) begin : gen_context
    // One load waits for its first row to be taken; its fields stay in the instruction queue.
    logic waits_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) waits_q <= 1'b0;
      else if (start) waits_q <= 1'b1;
      else if (row_take && row_head.first) waits_q <= 1'b0;
    end
    // The head is stable for longer than a cycle before its first row is taken, so what is derived from it can be late.
    logic [LogW-1:0]  chunk_log_q;
    logic [PadsW-1:0] head_pads_q;
    always_ff @(posedge clk_i) begin
      chunk_log_q <= ctx_in.chunk_log;
      head_pads_q <= ctx_in.pads;
    end
    always_comb begin
      ctx_head = ctx_in;
      ctx_head.chunk_log = chunk_log_q;
      ctx_head.pads = head_pads_q;
    end
    assign ctx_empty = !waits_q;
    assign ctx_full  = waits_q;
  end else begin : gen_contexts
    logic [$clog2(tw_cfg_pkg::LoadsUnderWay+1)-1:0] unused_count;
    logic                                           unused;
    tw_fifo #(
      .Width($bits(context_t)),
      .Depth(tw_cfg_pkg::LoadsUnderWay),
      .Head (1'b1)
    ) u_contexts (
      .clk_i,
      .rst_ni,
      .push_i (start),
      .data_i (ctx_in),
      .pop_i  (row_take && row_head.first),
      .data_o (ctx_head),
      .empty_o(ctx_empty),
      .full_o (ctx_full),
      .count_o(unused_count)
    );
    assign unused = ^unused_count;
  end
  tw_fifo #(
    .Width($bits(row_t)),
    .Depth(tw_cfg_pkg::LoadRows),
    .Head (!Lean)
  ) u_row_queue (
    .clk_i,
    .rst_ni,
    .push_i (rows_valid && rows_ready),
    .data_i (row_in),
    .pop_i  (row_take),
    .data_o (row_head),
    .empty_o(row_empty),
    .full_o (row_full),
    .count_o(unused_row_count)
  );

  ///////////////////
  // Read requests //
  ///////////////////

  logic [OffsetBits-1:0] req_addr;
  logic [BytesW-1:0]     req_bytes;
  logic                  burst_valid, burst_last, burst_take, freed, room;
  logic [8:0]            burst_beats;
  logic [OutW-1:0]       outstanding_q;
  logic [FreeW-1:0]      free_q;

  tw_fifo #(.Width(OffsetBits + BytesW), .Depth(tw_cfg_pkg::LoadRequests)) u_requests (
    .clk_i,
    .rst_ni,
    .push_i (rows_valid && rows_ready && !rows_pad),
    .data_i ({rows_addr, rows_bytes}),
    .pop_i  (!req_empty && req_ready && !stop_i),
    .data_o ({req_addr, req_bytes}),
    .empty_o(req_empty),
    .full_o (req_full),
    .count_o(unused_req_count)
  );
  tw_bursts #(
    .AddrW   (OffsetBits),
    .BusBytes(BusBytes),
    .MaxBeats(tw_cfg_pkg::MaxBurstBeats),
    .BytesW  (BytesW)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .row_valid_i  (!req_empty && !stop_i),
    .row_addr_i   (req_addr),
    .row_bytes_i  (req_bytes),
    .row_last_i   (1'b0),
    .row_ready_o  (req_ready),
    .burst_valid_o(burst_valid),
    .burst_addr_o (ar_addr_o),
    .burst_beats_o(burst_beats),
    .burst_last_o (burst_last),
    .burst_take_i (burst_take)
  );
  assign room = outstanding_q != OutW'(tw_cfg_pkg::Outstanding) && 32'(free_q) >= 32'(burst_beats);
  assign ar_valid_o = burst_valid && room && !stop_i;
  assign ar_len_o = 8'(burst_beats - 1'b1);
  assign burst_take = ar_valid_o && ar_grant_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      outstanding_q <= '0;
      free_q        <= FreeW'(tw_cfg_pkg::LoadBufferBeats);
    end else begin
      outstanding_q <= outstanding_q + OutW'(burst_take) - OutW'(r_valid_i && r_last_i);
      free_q        <= free_q - (burst_take ? FreeW'(burst_beats) : '0) + FreeW'(freed);
    end
  end

  /////////////////
  // Beat buffer //
  /////////////////

  // Each buffered beat has one more bit: the bus answered it with an error.
  logic [tw_cfg_pkg::BusBits:0]   word0, word1;
  logic [2:0]                     avail;
  logic [1:0]                     pop;
  logic                           buffer_empty, move_ready, move_valid, move_full, move_end, move_both, move_active;
  logic [tw_cfg_pkg::BusBits-1:0] move_data;
  logic [BusBytes-1:0]            move_bytes;
  logic [BusLog:0]                move_count;

  tw_words #(
    .Width (tw_cfg_pkg::BusBits + 1),
    .Depth (tw_cfg_pkg::LoadBufferBeats),
    .Places(tw_cfg_pkg::FrontWords)
  ) u_buffer (
    .clk_i,
    .rst_ni,
    .push_i (r_valid_i),
    .data_i ({r_error_i, r_data_i}),
    .pop_i  (pop),
    .avail_o(avail),
    .word0_o(word0),
    .word1_o(word1),
    .freed_o(freed),
    .empty_o(buffer_empty)
  );

  ////////////////
  // Row writer //
  ////////////////

  // A row is written as pads, data, pads. A step of pads is an entry, or with pack a part of a chunk.
  typedef enum logic [1:0] {SegNone, SegBefore, SegData, SegAfter} segment_e;
  segment_e            segment_q, segment_d, segment_first;
  logic [PadsW-1:0]    pads_q, pads_first;
  row_t                row_q;
  logic                bus_error, pad_step, data_step, pads_end, row_end, row_done, pad_last, fill_end, pads_fit;
  logic [4:0]          entry_log;
  logic [LogW-1:0]     chunk_log;
  logic [BusLog:0]     chunk_size, in_chunk, chunk_rest, pad_count, pad_end_byte;
  logic [BusBytes-1:0] below_end;

  assign ctx = row_head.first ? ctx_head : ctx_q;
  assign entry_log = tw_cfg_pkg::EntryLogs[32'(ctx_q.mem)*5 +: 5];
  assign chunk_log = ctx_q.chunk_log;
  assign chunk_size = (BusLog+1)'(1) << chunk_log;

  // A row of pads has at least one.
  always_comb begin
    pads_first = 'x;
    segment_first = SegData;
    if (row_take) begin
      pads_first = row_head.pad ? ctx.pads : PadsW'(ctx.x_before);
      if (Pad && (row_head.pad || ctx.x_before != '0)) segment_first = SegBefore;
    end
  end

  assign row_take = !row_empty && (segment_q == SegNone || row_done) && !stop_i && (!row_head.first || !ctx_empty);

  tw_realign #(.MaxBytes(BusBytes), .BytesW(BytesW)) u_realign (
    .clk_i,
    .rst_ni,
    .row_valid_i  (row_take && !row_head.pad),
    .row_bytes_i  (ctx.row_bytes),
    .row_src_i    (row_head.src),
    .row_dst_i    (row_head.dst),
    .row_src_log_i(LogW'(BusLog)),
    .row_dst_log_i(ctx.chunk_log),
    .row_ready_o  (move_ready),
    .src_avail_i  (avail),
    .src0_i       (word0[tw_cfg_pkg::BusBits-1:0]),
    .src1_i       (word1[tw_cfg_pkg::BusBits-1:0]),
    .src_pop_o    (pop),
    .dst_ready_i  (segment_q == SegData && !stop_i && !bus_error),
    .dst_valid_o  (move_valid),
    .dst_data_o   (move_data),
    .dst_bytes_o  (move_bytes),
    .dst_full_o   (move_full),
    .dst_end_o    (move_end),
    .dst_count_o  (move_count),
    .src_both_o   (move_both),
    .active_o     (move_active)
  );

  assign bus_error = segment_q == SegData && move_valid &&
                     (word0[tw_cfg_pkg::BusBits] || (move_both && word1[tw_cfg_pkg::BusBits]));
  assign pad_step  = Pad && (segment_q == SegBefore || segment_q == SegAfter) && !stop_i;
  assign data_step = segment_q == SegData && move_valid && !bus_error && !stop_i;
  // A step of packed pads fills the rest of the chunk, or less if fewer pads are left.
  always_comb begin
    chunk_rest = 'x;
    pads_fit = 'x;
    pad_count = 'x;
    pad_end_byte = 'x;
    if (Pack && pad_step) begin
      chunk_rest = chunk_size - in_chunk;
      pads_fit = pads_q <= PadsW'(chunk_rest);
      pad_count = pads_fit ? (BusLog+1)'(pads_q) : chunk_rest;
      pad_end_byte = pads_fit ? in_chunk + (BusLog+1)'(pads_q) : chunk_size;
    end
  end
  assign pads_end = Pack && ctx_q.pack ? pads_fit : pads_q == PadsW'(1);
  assign pad_last = pad_step && pads_end && (segment_q == SegAfter || row_q.pad);
  assign row_end  = (data_step && move_end && ctx_q.x_after == '0) || pad_last;
  assign row_done = row_end;
  assign fill_end = ctx_q.fill && row_end;

  always_comb begin
    segment_d = segment_q;
    if (row_take) segment_d = segment_first;
    else if (row_done) segment_d = SegNone;
    else if (Pad && data_step && move_end) segment_d = SegAfter;
    else if (pad_step && pads_end) segment_d = SegData;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) segment_q <= SegNone;
    else segment_q <= segment_d;
  end

  always_ff @(posedge clk_i) begin
    if (row_take) begin
      row_q  <= row_head;
      ctx_q  <= ctx;
      pads_q <= pads_first;
    end else if (pad_step) begin
      pads_q <= pads_q - (ctx_q.pack ? PadsW'(pad_count) : PadsW'(1));
    end else if (data_step && move_end) begin
      pads_q <= PadsW'(ctx_q.x_after);
    end
  end

  // Where the next write goes
  localparam int unsigned ParamChunkLog = ParamLog > BusLog ? ParamLog - BusLog : 0;
  logic [PlaceW-1:0] place_q, place_step, place_d;
  logic              nine_rows;
  assign nine_rows = NineRows && ctx_q.mem == tw_isa_pkg::MemParam;
  always_comb begin
    place_d = place_step;
    if (nine_rows && place_step[RowLog +: 4] == 4'(tw_isa_pkg::ParamRows)) begin
      place_d[RowLog +: 4] = '0;
      place_d[PlaceW-1:RowLog+4] = place_q[PlaceW-1:RowLog+4] + 1'b1;
    end
  end

  // Entry of the next write, and chunk of that entry
  logic [PlaceW-1:0] write_entry, write_chunk;
  if (Pack) begin : gen_bytes
    assign in_chunk = (BusLog+1)'(place_q[BusLog:0]) & (chunk_size - 1'b1);
    always_comb begin
      place_step = place_q;
      if (pad_step) place_step = place_q + (ctx_q.pack ? PlaceW'(pad_count) : PlaceW'(1) << entry_log);
      // The pads after the data begin with a new entry, or with pack at the next byte.
      else if (data_step && move_end && !ctx_q.pack) place_step = ((place_q >> entry_log) + 1'b1) << entry_log;
      else if (data_step) place_step = place_q + PlaceW'(move_count);
    end
    always_ff @(posedge clk_i) begin
      if (row_take) place_q <= row_head.place;
      else if (pad_step || data_step) place_q <= place_d;
    end
    always_comb begin
      write_entry = '0;
      write_chunk = '0;
      if (segment_q != SegNone) begin
        write_entry = place_q >> entry_log;
        write_chunk = (place_q & ((PlaceW'(1) << entry_log) - 1'b1)) >> chunk_log;
      end
    end
  end else begin : gen_entries
    // Data begin with the first byte of an entry, so chunks are filled in order.
    logic [tw_cfg_pkg::ChunkW-1:0] chunk_q;
    logic                          chunk_end, entry_end;
    assign in_chunk  = '0;
    assign chunk_end = data_step && (move_full || move_end);
    assign entry_end = pad_step || (data_step && move_end) ||
                        (chunk_end && 32'(chunk_q) == (32'd1 << (entry_log - 5'(chunk_log))) - 32'd1);
    assign place_step = place_q + 1'b1;
    always_ff @(posedge clk_i) begin
      if (row_take) place_q <= row_head.place;
      else if (entry_end) place_q <= place_d;
      if (row_take || entry_end) chunk_q <= '0;
      else if (chunk_end) chunk_q <= chunk_q + 1'b1;
    end
    assign write_entry = place_q;
    assign write_chunk = PlaceW'(chunk_q);
  end

  ///////////////
  // Load port //
  ///////////////

  // Every output of the port is a register.
  logic [6:0]        write_mem_d;
  logic [PlaceW-1:0] entry_d, chunk_d;
  logic [BusLog:0]   end_byte;
  always_comb begin
    write_mem_d = '0;
    entry_d = '0;
    chunk_d = '0;
    end_byte = '0;
    below_end = '0;
    if (pad_step || data_step) write_mem_d[ctx_q.mem] = 1'b1;
    if (segment_q != SegNone) begin
      entry_d = write_entry;
      chunk_d = write_chunk;
      if (nine_rows) begin
        entry_d = place_q >> (RowLog + 4);
        chunk_d = (PlaceW'(place_q[RowLog +: 4]) << ParamChunkLog) + write_chunk;
      end
    end
    if (pad_step || data_step) begin
      // A fill pads the bytes of the chunk from here on.
      if (ctx_q.pack) begin
        end_byte = pad_step ? pad_end_byte : in_chunk + move_count;
        below_end = BusBytes'(((BusBytes+1)'(1) << end_byte) - 1'b1);
      end
    end
  end

  logic       retire_q;
  logic [3:0] retire_push_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ld_we_o  <= '0;
      retire_q <= 1'b0;
    end else begin
      ld_we_o  <= write_mem_d;
      retire_q <= row_done && row_q.last;
    end
  end
  always_ff @(posedge clk_i) begin
    if (pad_step || data_step) begin
      ld_entry_o    <= tw_cfg_pkg::EntryW'(entry_d);
      ld_chunk_o    <= 16'(chunk_d);
      ld_data_o     <= move_data;
      ld_valid_o    <= pad_step ? '0 : move_bytes;
      ld_all_o      <= pad_step && !ctx_q.pack;
      ld_tail_o     <= ctx_q.pack ? fill_end : (data_step && move_end);
      ld_pad_o      <= ctx_q.pad;
      retire_push_q <= ctx_q.push;
      if (!ctx_q.pack) ld_enable_o <= '1;
      else if (pad_step) ld_enable_o <= (below_end & ~BusBytes'(((BusBytes+1)'(1) << in_chunk) - 1'b1)) |
                                        (fill_end ? ~below_end : '0);
      else ld_enable_o <= move_bytes | (fill_end ? ~below_end : '0);
    end
  end

  /////////////////////////////////
  // Retirement, traps and state //
  /////////////////////////////////

  assign retire_o      = retire_q;
  assign retire_push_o = retire_push_q;
  assign busy_o        = rows_active || !row_empty || segment_q != SegNone || retire_q || !req_empty || burst_valid;
  assign quiet_o       = outstanding_q == '0;

  assign trap_o = trap_limit || trap_range || (bus_error && !stop_i);
  assign trap_cause_o = (bus_error && !stop_i) ? tw_isa_pkg::CauseBus :
                        trap_limit             ? tw_isa_pkg::CauseLimit : tw_isa_pkg::CauseScratchpad;
  assign trap_oldest_o = bus_error && !stop_i;

  // State for the counters: first the writing side, then what the requesting side waits for
  always_comb begin
    if (|ld_we_o) state_o = tw_isa_pkg::StateBusy;
    else if (burst_valid && !room) state_o = tw_isa_pkg::StateSpace;
    else if (ar_valid_o && !ar_grant_i) state_o = tw_isa_pkg::StateRequest;
    else if (outstanding_q != '0 || !buffer_empty) state_o = tw_isa_pkg::StateData;
    else if (busy_o) state_o = tw_isa_pkg::StateBusy;
    else state_o = tw_isa_pkg::StateEmpty;
  end

  logic unused;
  assign unused = ^{burst_last, move_full, move_ready, move_active, in_chunk, unused_row_count, unused_req_count};

  ////////////////
  // Assertions //
  ////////////////

  // One scratchpad is written at a time.
  `TW_ASSERT(OneMemory_A, $onehot0(ld_we_o))
  `TW_ASSERT(OneTrap_A, !(trap_limit && trap_range))
  `TW_ASSERT(OneStep_A, !(pad_step && data_step))

endmodule
