`include "tw_fields.svh"

// The store unit: rows are walked, read ahead from inp or out, aligned to the bus and buffered; a burst is requested when
// all its beats are there.
module tw_store (
  input  logic                           clk_i,
  input  logic                           rst_ni,
  input  logic                           stop_i,
  input  logic                           insn_valid_i,
  input  logic [tw_cfg_pkg::StoreBodyW-1:0] insn_i,
  input  logic [3:0]                     insn_push_i,
  output logic                           insn_free_o,
  // The instruction's fields are needed after its start.
  output logic                           insn_hold_o,
  input  logic [tw_cfg_pkg::OffsetBits-1:0] base_addr_i,
  input  logic [tw_cfg_pkg::OffsetBits-1:0] base_limit_i,
  // Source entries.
  output logic                           inp_re_o,
  output logic                           out_re_o,
  output logic [tw_cfg_pkg::EntryW-1:0]  raddr_o,
  input  logic [tw_cfg_pkg::InpEntryBytes*8-1:0] inp_rdata_i,
  input  logic [tw_cfg_pkg::OutEntryBytes*8-1:0] out_rdata_i,
  // Writes.
  output logic                           aw_valid_o,
  input  logic                           aw_ready_i,
  output logic [tw_cfg_pkg::OffsetBits-1:0] aw_addr_o,
  output logic [7:0]                     aw_len_o,
  output logic                           w_valid_o,
  input  logic                           w_ready_i,
  output logic [tw_cfg_pkg::BusBits-1:0] w_data_o,
  output logic [tw_cfg_pkg::BusBytes-1:0] w_strb_o,
  output logic                           w_last_o,
  input  logic                           b_valid_i,
  input  logic                           b_error_i,
  output logic                           retire_o,
  output logic [3:0]                     retire_push_o,
  output logic                           busy_o,
  output logic                           quiet_o,
  output logic [3:0]                     state_o,
  output logic                           trap_o,
  output logic [3:0]                     trap_cause_o,
  // The instruction that traps is the oldest that has not retired, else the one that started last.
  output logic                           trap_oldest_o
);

  localparam int unsigned BusBytes = tw_cfg_pkg::BusBytes;
  localparam int unsigned BusLog = $clog2(BusBytes);
  localparam int unsigned LogW = $clog2(BusLog + 1);
  localparam int unsigned OffsetBits = tw_cfg_pkg::OffsetBits;
  localparam int unsigned Outstanding = tw_cfg_pkg::Outstanding;
  localparam int unsigned OutW = $clog2(Outstanding + 1);
  localparam int unsigned Beats = tw_cfg_pkg::StoreBufferBeats;
  localparam int unsigned BeatsW = $clog2(Beats + 1);
  localparam int unsigned InpLog = $clog2(tw_cfg_pkg::InpEntryBytes);
  localparam int unsigned OutLog = $clog2(tw_cfg_pkg::OutEntryBytes);
  localparam int unsigned InpChunk = tw_cfg_pkg::InpChunkBytes * 8;
  localparam int unsigned OutChunk = tw_cfg_pkg::OutChunkBytes * 8;
  localparam int unsigned InpChunks = tw_cfg_pkg::InpEntryBytes / tw_cfg_pkg::InpChunkBytes;
  localparam int unsigned OutChunks = tw_cfg_pkg::OutEntryBytes / tw_cfg_pkg::OutChunkBytes;
  localparam int unsigned PosW = tw_cfg_pkg::PosW;
  localparam int unsigned BytesW = tw_cfg_pkg::RowBytesW;
  localparam bit Pack = tw_cfg_pkg::DmaPack != 0;
  localparam int unsigned Front = tw_cfg_pkg::FrontWords;

  typedef struct packed {
    logic              mem_out;
    logic [PosW-1:0]   pos;
    logic [BytesW-1:0] bytes;
    logic [BusLog-1:0] dst;
  } row_t;

  // Fields are taken apart only while there is an instruction.
  logic [tw_cfg_pkg::StoreBodyW-1:0] head;
  assign head = tw_cfg_pkg::Lean != 0 || insn_valid_i ? insn_i : '0;

  // Walk.
  logic rows_active, rows_valid, rows_ready, rows_pad, rows_last, rows_done, trap_limit, trap_range, start;
  logic [PosW-1:0] rows_pos;
  logic [OffsetBits-1:0] rows_addr;
  logic [BytesW-1:0] rows_bytes;
  logic [2:0]  mem_q;
  logic [3:0]  push_q;
  logic        push_full, push_empty;

  // Where lean no head stands while the one before is walked.
  assign insn_free_o = !push_full && (!rows_active || (tw_cfg_pkg::Lean == 0 && rows_done));
  assign start = insn_valid_i && !stop_i && insn_free_o;
  assign insn_hold_o  = rows_active;

  // The decoder lets out and inp alone pass.
  logic [2:0] head_mem;
  assign head_mem = `TW_FIELD(store, mem, head) == tw_isa_pkg::MemOut ? tw_isa_pkg::MemOut : tw_isa_pkg::MemInp;

  tw_rows #(.BodyW(tw_cfg_pkg::StoreBodyW)) u_rows (
    .clk_i, .rst_ni, .stop_i, .start_i(start), .mem_i(head_mem), .base_addr_i, .base_limit_i,
    .offset_i(`TW_FIELD(store, offset, head)), .entry_i(`TW_FIELD(store, entry, head)),
    .row_bytes_i(`TW_FIELD(store, row_bytes, head)), .rows_i(`TW_FIELD(store, rows, head)),
    .planes_i(`TW_FIELD(store, planes, head)), .row_stride_i(`TW_FIELD(store, row_stride, head)),
    .plane_stride_i(`TW_FIELD(store, plane_stride, head)), .x_before_i('0), .x_after_i('0), .y_before_i('0),
    .y_after_i('0), .z_before_i('0), .z_after_i('0), .pack_i(`TW_FIELD(store, pack, head)),
    .pack_byte_i(`TW_FIELD(store, pack_byte, head)), .pack_row_stride_i(`TW_FIELD(store, pack_row_stride, head)),
    .pack_plane_stride_i(`TW_FIELD(store, pack_plane_stride, head)),
    .ready_i(rows_ready), .valid_o(rows_valid), .pad_o(rows_pad), .last_o(rows_last), .pos_o(rows_pos),
    .addr_o(rows_addr), .row_bytes_o(rows_bytes), .active_o(rows_active), .done_o(rows_done),
    .trap_limit_o(trap_limit), .trap_range_o(trap_range)
  );

  if (tw_cfg_pkg::Lean != 0) begin : gen_kept
    assign mem_q = head_mem;
  end else begin : gen_copied
    always_ff @(posedge clk_i) begin
      if (start) mem_q <= head_mem;
    end
  end

  // The walked rows go to the reading side and to the burst side.
  logic row_full, row_empty, req_full, req_empty, row_take, req_ready, req_last;
  row_t row_in, row_head;
  localparam int unsigned PushCountW = $clog2(tw_cfg_pkg::StoresUnderWay + 1);
  localparam int unsigned ReqCountW = $clog2(tw_cfg_pkg::StoreRows + 1);
  logic [OffsetBits-1:0] req_addr;
  logic [BytesW-1:0] req_bytes;
  logic [PushCountW-1:0] unused_push_count;
  logic [ReqCountW-1:0]  unused_req_count;
  logic [$clog2(tw_cfg_pkg::StoreReads+1)-1:0] unused_row_count;
  assign rows_ready     = !row_full && !req_full;
  assign row_in.mem_out = mem_q == tw_isa_pkg::MemOut;
  assign row_in.pos     = rows_pos;
  assign row_in.bytes   = rows_bytes;
  assign row_in.dst     = rows_addr[BusLog-1:0];

  tw_fifo #(.Width(4), .Depth(tw_cfg_pkg::StoresUnderWay)) u_pushes (
    .clk_i, .rst_ni, .push_i(start), .data_i(insn_push_i), .pop_i(retire_o), .data_o(push_q), .empty_o(push_empty),
    .full_o(push_full), .count_o(unused_push_count)
  );
  tw_fifo #(.Width($bits(row_t)), .Depth(tw_cfg_pkg::StoreReads)) u_row_queue (
    .clk_i, .rst_ni, .push_i(rows_valid && rows_ready), .data_i(row_in), .pop_i(row_take), .data_o(row_head),
    .empty_o(row_empty), .full_o(row_full), .count_o(unused_row_count)
  );
  tw_fifo #(.Width(OffsetBits + BytesW + 1), .Depth(tw_cfg_pkg::StoreRows)) u_requests (
    .clk_i, .rst_ni, .push_i(rows_valid && rows_ready), .data_i({rows_addr, rows_bytes, rows_last}),
    .pop_i(!req_empty && req_ready && !stop_i), .data_o({req_addr, req_bytes, req_last}), .empty_o(req_empty),
    .full_o(req_full), .count_o(unused_req_count)
  );

  typedef struct packed {
    logic              mem_out;
    logic [BusLog-1:0] src;
    logic [BytesW-1:0] bytes;
    logic [BusLog-1:0] dst;
  } move_t;

  // Reading: chunks of the rows' entries, one a cycle, into visible words; no more than those wait there for their bytes to be
  // moved, so that the rows that are read and not yet moved never fill their queue.
  logic        rd_q, rd_out_q, chunk_q, chunk_out_q;
  logic [BytesW:0] chunks_left_q, chunks;
  // The chunk of its entry that is read, and that was.
  logic [31:0] sel, sel_q;
  logic [2:0]  avail;
  logic [tw_cfg_pkg::BusBits-1:0] word0, word1, chunk_data;
  logic [1:0]  pop;
  logic        read, read_end, re_ready, re_valid, re_full, re_end, re_both, re_active, beat_ready, mv_empty, mv_full;
  move_t       mv_in, mv_head;
  logic [$clog2(Front+1)-1:0] unused_mv_count;
  logic [4:0]  head_log;
  logic [BusLog:0] re_count;
  logic [tw_cfg_pkg::BusBits-1:0] re_data;
  logic [BusBytes-1:0] re_bytes;

  function automatic logic [4:0] chunk_log(input logic mem_out);
    chunk_log = mem_out ? 5'($clog2(tw_cfg_pkg::OutChunkBytes)) : 5'($clog2(tw_cfg_pkg::InpChunkBytes));
  endfunction

  logic [BusLog-1:0] head_src;
  always_comb begin
    head_log = '0;
    head_src = '0;
    chunks = '0;
    mv_in = '0;
    if (row_take) begin
      head_log = chunk_log(row_head.mem_out);
      if (Pack) head_src = BusLog'(32'(row_head.pos) & ((32'd1 << head_log) - 32'd1));
      chunks = (BytesW+1)'((32'(row_head.bytes) + 32'(head_src) + (32'd1 << head_log) - 32'd1) >> head_log);
      mv_in.mem_out = row_head.mem_out;
      mv_in.src     = head_src;
      mv_in.bytes   = row_head.bytes;
      mv_in.dst     = row_head.dst;
    end
  end
  assign read = chunk_q && !stop_i && avail + 3'(rd_q) < 3'(Front);
  assign read_end = read && chunks_left_q == (BytesW+1)'(1);
  assign row_take = !row_empty && (!chunk_q || read_end) && !stop_i;
  assign inp_re_o = read && !chunk_out_q;
  assign out_re_o = read && chunk_out_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      chunk_q <= 1'b0;
      rd_q    <= 1'b0;
    end else begin
      if (row_take) chunk_q <= 1'b1;
      else if (read_end) chunk_q <= 1'b0;
      rd_q    <= read;
    end
  end
  always_ff @(posedge clk_i) begin
    if (row_take) begin
      chunks_left_q <= chunks;
      chunk_out_q   <= row_head.mem_out;
    end else if (read) begin
      chunks_left_q <= chunks_left_q - 1'b1;
    end
    if (read) begin
      rd_out_q <= chunk_out_q;
      sel_q    <= sel;
    end
  end
  if (Pack) begin : gen_bytes
    logic [PosW-1:0] chunk_pos_q;
    logic [4:0]  cur_log;
    assign cur_log = chunk_log(chunk_out_q);
    assign raddr_o = tw_cfg_pkg::EntryW'(chunk_pos_q >> (chunk_out_q ? OutLog : InpLog));
    assign sel     = 32'(PosW'(chunk_pos_q >> cur_log)) & 32'((chunk_out_q ? OutChunks : InpChunks) - 1);
    always_ff @(posedge clk_i) begin
      if (row_take) chunk_pos_q <= (row_head.pos >> head_log) << head_log;
      else if (read) chunk_pos_q <= chunk_pos_q + (PosW'(1) << cur_log);
    end
  end else begin : gen_entries
    logic [tw_cfg_pkg::EntryW-1:0] entry_q;
    logic [tw_cfg_pkg::ChunkW-1:0] place_q;
    logic entry_end;
    assign raddr_o   = entry_q;
    assign sel       = 32'(place_q);
    assign entry_end = sel == 32'((chunk_out_q ? OutChunks : InpChunks) - 1);
    always_ff @(posedge clk_i) begin
      if (row_take) entry_q <= tw_cfg_pkg::EntryW'(row_head.pos);
      else if (read && entry_end) entry_q <= entry_q + 1'b1;
      if (row_take || (read && entry_end)) place_q <= '0;
      else if (read) place_q <= place_q + 1'b1;
    end
  end

  always_comb begin
    chunk_data = '0;
    if (rd_q) begin
      if (rd_out_q) begin
        for (int unsigned c = 0; c < OutChunks; c++) begin
          if (sel_q == c) begin
            chunk_data = tw_cfg_pkg::BusBits'(out_rdata_i[c*OutChunk +: OutChunk]);
          end
        end
      end else begin
        for (int unsigned c = 0; c < InpChunks; c++) begin
          if (sel_q == c) begin
            chunk_data = tw_cfg_pkg::BusBits'(inp_rdata_i[c*InpChunk +: InpChunk]);
          end
        end
      end
    end
  end

  tw_front #(.Width(tw_cfg_pkg::BusBits), .Places(Front)) u_front (
    .clk_i, .rst_ni, .push_i(rd_q), .data_i(chunk_data), .pop_i(pop), .avail_o(avail), .word0_o(word0), .word1_o(word1)
  );

  tw_fifo #(.Width($bits(move_t)), .Depth(Front)) u_moves (
    .clk_i, .rst_ni, .push_i(row_take), .data_i(mv_in), .pop_i(!mv_empty && re_ready), .data_o(mv_head),
    .empty_o(mv_empty), .full_o(mv_full), .count_o(unused_mv_count)
  );

  tw_realign #(.MaxBytes(BusBytes), .BytesW(BytesW)) u_realign (
    .clk_i, .rst_ni, .row_valid_i(!mv_empty), .row_bytes_i(mv_head.bytes), .row_src_i(mv_head.src),
    .row_dst_i(mv_head.dst), .row_src_log_i(LogW'(chunk_log(mv_head.mem_out))), .row_dst_log_i(LogW'(BusLog)), .row_ready_o(re_ready), .src_avail_i(avail),
    .src0_i(word0), .src1_i(word1), .src_pop_o(pop), .dst_ready_i(beat_ready), .dst_valid_o(re_valid), .dst_data_o(re_data),
    .dst_bytes_o(re_bytes), .dst_full_o(re_full), .dst_end_o(re_end), .dst_count_o(re_count), .src_both_o(re_both),
    .active_o(re_active)
  );

  // A beat is put together from one or more moves and then buffered.
  logic [tw_cfg_pkg::BusBits-1:0] part_q, beat;
  logic [BusBytes-1:0] part_strb_q, beat_strb;
  logic                beat_push;
  logic [BeatsW-1:0]   held_q, ready_q;
  logic [2:0]          pushed_q;
  assign beat_ready = held_q != BeatsW'(Beats) && !stop_i;
  // A move brings bytes of its own alone; what lies beside them in the source is cut off.
  always_comb begin
    beat = part_q;
    if (re_valid) begin
      for (int unsigned b = 0; b < BusBytes; b++) begin
        if (re_bytes[b]) beat[b*8 +: 8] = re_data[b*8 +: 8];
      end
    end
  end
  assign beat_strb  = part_strb_q | re_bytes;
  assign beat_push  = re_valid && beat_ready && (re_full || re_end);
  always_ff @(posedge clk_i) begin
    if (!rst_ni || beat_push) begin
      part_q      <= '0;
      part_strb_q <= '0;
    end else if (re_valid && beat_ready) begin
      part_q      <= beat;
      part_strb_q <= beat_strb;
    end
  end

  logic [2:0] w_avail;
  logic       w_pop, w_freed, w_empty;
  logic [tw_cfg_pkg::BusBits+BusBytes-1:0] w_word, unused_word1;
  tw_words #(.Width(tw_cfg_pkg::BusBits + BusBytes), .Depth(Beats), .Places(tw_cfg_pkg::BeatWords)) u_beats (
    .clk_i, .rst_ni, .push_i(beat_push), .data_i({beat_strb, beat}), .pop_i({1'b0, w_pop}), .avail_o(w_avail),
    .word0_o(w_word), .word1_o(unused_word1), .freed_o(w_freed), .empty_o(w_empty)
  );

  // Bursts: requested when their beats are buffered, and long enough ago to be read out without a pause.
  logic       burst_valid, burst_last, take, len_empty, len_full, end_empty, end_full, end_last, room;
  logic [8:0] burst_beats, w_beats;
  logic [8:0] w_count_q;
  logic [OutW-1:0] outstanding_q;
  logic [$clog2(Outstanding+1)-1:0] unused_len_count, unused_end_count;

  tw_bursts #(
    .AddrW(OffsetBits), .BusBytes(BusBytes), .MaxBeats(tw_cfg_pkg::MaxBurstBeats), .BytesW(BytesW)
  ) u_bursts (
    .clk_i, .rst_ni, .row_valid_i(!req_empty && !stop_i), .row_addr_i(req_addr), .row_bytes_i(req_bytes), .row_last_i(req_last),
    .row_ready_o(req_ready), .burst_valid_o(burst_valid), .burst_addr_o(aw_addr_o), .burst_beats_o(burst_beats),
    .burst_last_o(burst_last), .burst_take_i(take)
  );
  assign room = outstanding_q != OutW'(Outstanding);
  assign aw_valid_o = burst_valid && room && 32'(ready_q) >= 32'(burst_beats) && !stop_i;
  assign aw_len_o = 8'(burst_beats - 1'b1);
  assign take = aw_valid_o && aw_ready_i;

  // Lengths of the bursts whose data are still to go, and whether each ends its instruction.
  tw_fifo #(.Width(9), .Depth(Outstanding)) u_lengths (
    .clk_i, .rst_ni, .push_i(take), .data_i(burst_beats), .pop_i(w_pop && w_last_o), .data_o(w_beats), .empty_o(len_empty),
    .full_o(len_full), .count_o(unused_len_count)
  );
  tw_fifo #(.Width(1), .Depth(Outstanding)) u_ends (
    .clk_i, .rst_ni, .push_i(take), .data_i(burst_last), .pop_i(b_valid_i), .data_o(end_last), .empty_o(end_empty),
    .full_o(end_full), .count_o(unused_end_count)
  );

  assign w_valid_o = !len_empty && w_avail != '0;
  assign w_data_o  = w_word[tw_cfg_pkg::BusBits-1:0];
  assign w_strb_o  = w_word[tw_cfg_pkg::BusBits +: BusBytes];
  assign w_last_o  = w_count_q == w_beats - 1'b1;
  assign w_pop     = w_valid_o && w_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      outstanding_q <= '0;
      w_count_q     <= '0;
      held_q        <= '0;
      ready_q       <= '0;
      pushed_q      <= '0;
    end else begin
      outstanding_q <= outstanding_q + OutW'(take) - OutW'(b_valid_i);
      if (w_pop) w_count_q <= w_last_o ? '0 : w_count_q + 1'b1;
      held_q  <= held_q + BeatsW'(beat_push) - BeatsW'(w_pop);
      pushed_q <= {pushed_q[1:0], beat_push};
      ready_q <= ready_q + BeatsW'(pushed_q[2]) - (take ? BeatsW'(burst_beats) : '0);
    end
  end

  // What is acknowledged after a trap does not retire: the instruction that trapped may stand before it.
  assign retire_o      = b_valid_i && end_last && !b_error_i && !stop_i;
  assign retire_push_o = push_q;
  assign busy_o        = rows_active || !push_empty;
  assign quiet_o       = outstanding_q == '0;

  logic bus_trap;
  assign bus_trap = b_valid_i && b_error_i && !stop_i;
  assign trap_o = trap_limit || trap_range || bus_trap;
  assign trap_cause_o = bus_trap ? tw_isa_pkg::CauseBus : (trap_limit ? tw_isa_pkg::CauseLimit : tw_isa_pkg::CauseScratchpad);
  assign trap_oldest_o = bus_trap;

  always_comb begin
    if (re_valid && beat_ready) state_o = tw_isa_pkg::StateBusy;
    else if (re_valid && !beat_ready) state_o = tw_isa_pkg::StateSpace;
    else if (burst_valid && !room) state_o = tw_isa_pkg::StateSpace;
    else if (re_active || rows_active || !row_empty || chunk_q || !mv_empty) state_o = tw_isa_pkg::StateBusy;
    else if (busy_o) state_o = tw_isa_pkg::StateData;
    else state_o = tw_isa_pkg::StateEmpty;
  end

  logic unused;
  assign unused = ^{rows_pad, rows_pos, re_count, re_both, len_full, end_full, end_empty, w_freed, w_empty, unused_word1,
                    unused_push_count, unused_row_count, unused_req_count, unused_len_count, unused_end_count, unused_mv_count, mv_full};

endmodule
