`include "tw_assert.svh"
`include "tw_fields.svh"

// Store unit: copies rows from inp or out to memory.
//
//   tw_rows       walks the rows of an instruction, checks and hands on each
//   tw_front      holds the chunks that are read ahead from the scratchpad
//   tw_realign    moves a row's bytes into beats of the bus
//   tw_words      buffers the beats
//   tw_bursts     splits the rows into write bursts; a burst is requested when all its beats are buffered
module tw_store (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic stop_i,

  // Head of the instruction queue, with all its tokens
  input  logic                              insn_valid_i,
  input  logic [tw_cfg_pkg::StoreBodyW-1:0] insn_i,
  input  logic [3:0]                        insn_push_i,
  output logic                              insn_free_o,
  // The queue must keep the instruction's fields: it has started and still reads them
  output logic                              insn_hold_o,

  // Base register of the head
  input  logic [tw_cfg_pkg::OffsetBits-1:0] base_addr_i,
  input  logic [tw_cfg_pkg::OffsetBits-1:0] base_limit_i,

  // Reads of source entries
  output logic                                   inp_re_o,
  output logic                                   out_re_o,
  output logic [tw_cfg_pkg::EntryW-1:0]          raddr_o,
  input  logic [tw_cfg_pkg::InpEntryBytes*8-1:0] inp_rdata_i,
  input  logic [tw_cfg_pkg::OutEntryBytes*8-1:0] out_rdata_i,

  // Write requests, data and responses
  output logic                              aw_valid_o,
  input  logic                              aw_ready_i,
  output logic [tw_cfg_pkg::OffsetBits-1:0] aw_addr_o,
  output logic [7:0]                        aw_len_o,
  output logic                              w_valid_o,
  input  logic                              w_ready_i,
  output logic [tw_cfg_pkg::BusBits-1:0]    w_data_o,
  output logic [tw_cfg_pkg::BusBytes-1:0]   w_strb_o,
  output logic                              w_last_o,
  input  logic                              b_valid_i,
  input  logic                              b_error_i,

  // Retirement and state
  output logic       retire_o,
  output logic [3:0] retire_push_o,
  output logic       busy_o,
  output logic       quiet_o,
  output logic [3:0] state_o,

  // Traps
  output logic       trap_o,
  output logic [3:0] trap_cause_o,
  // The trapping instruction is the oldest that has not retired; else it is the one that started last
  output logic       trap_oldest_o
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
  localparam int unsigned InpChunkBits = tw_cfg_pkg::InpChunkBytes * 8;
  localparam int unsigned OutChunkBits = tw_cfg_pkg::OutChunkBytes * 8;
  localparam int unsigned InpChunks = tw_cfg_pkg::InpEntryBytes / tw_cfg_pkg::InpChunkBytes;
  localparam int unsigned OutChunks = tw_cfg_pkg::OutEntryBytes / tw_cfg_pkg::OutChunkBytes;
  localparam int unsigned PosW = tw_cfg_pkg::PosW;
  localparam int unsigned BytesW = tw_cfg_pkg::RowBytesW;
  localparam bit Pack = tw_cfg_pkg::DmaPack != 0;
  localparam int unsigned FrontWords = tw_cfg_pkg::FrontWords;

  ///////////
  // Types //
  ///////////

  // A row, from the walk to the reading side
  typedef struct packed {
    logic              mem_out;
    logic [PosW-1:0]   pos;
    logic [BytesW-1:0] bytes;
    logic [BusLog-1:0] dst;
  } row_t;

  // A row that is read, for tw_realign
  typedef struct packed {
    logic              mem_out;
    logic [BusLog-1:0] src;
    logic [BytesW-1:0] bytes;
    logic [BusLog-1:0] dst;
  } move_t;

  ////////////////////////////////
  // Instruction start and walk //
  ////////////////////////////////

  // Simulators skip the fields while there is no instruction.
  logic [tw_cfg_pkg::StoreBodyW-1:0] head;
  assign head = tw_cfg_pkg::Lean != 0 || insn_valid_i ? insn_i : '0;

  logic                  start, rows_active, rows_valid, rows_ready, rows_pad, rows_last, rows_done, trap_limit, trap_range;
  logic [PosW-1:0]       rows_pos;
  logic [OffsetBits-1:0] rows_addr;
  logic [BytesW-1:0]     rows_bytes;
  logic [2:0]            mem_q;
  logic [3:0]            retiring_push;
  logic                  pushes_full, pushes_empty;

  // In lean configurations the queue shows no head while the one before is walked.
  assign insn_free_o = !pushes_full && (!rows_active || (tw_cfg_pkg::Lean == 0 && rows_done));
  assign start       = insn_valid_i && !stop_i && insn_free_o;
  assign insn_hold_o = rows_active;

  // The decoder lets only out and inp pass.
  logic [2:0] head_mem;
  assign head_mem = `TW_FIELD(store, mem, head) == tw_isa_pkg::MemOut ? tw_isa_pkg::MemOut : tw_isa_pkg::MemInp;

  tw_rows #(.BodyW(tw_cfg_pkg::StoreBodyW)) u_rows (
    .clk_i,
    .rst_ni,
    .stop_i,
    .start_i            (start),
    .mem_i              (head_mem),
    .base_addr_i,
    .base_limit_i,
    .offset_i           (`TW_FIELD(store, offset, head)),
    .entry_i            (`TW_FIELD(store, entry, head)),
    .row_bytes_i        (`TW_FIELD(store, row_bytes, head)),
    .rows_i             (`TW_FIELD(store, rows, head)),
    .planes_i           (`TW_FIELD(store, planes, head)),
    .row_stride_i       (`TW_FIELD(store, row_stride, head)),
    .plane_stride_i     (`TW_FIELD(store, plane_stride, head)),
    .x_before_i         ('0),
    .x_after_i          ('0),
    .y_before_i         ('0),
    .y_after_i          ('0),
    .z_before_i         ('0),
    .z_after_i          ('0),
    .pack_i             (`TW_FIELD(store, pack, head)),
    .pack_byte_i        (`TW_FIELD(store, pack_byte, head)),
    .pack_row_stride_i  (`TW_FIELD(store, pack_row_stride, head)),
    .pack_plane_stride_i(`TW_FIELD(store, pack_plane_stride, head)),
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

  if (tw_cfg_pkg::Lean != 0) begin : gen_kept
    assign mem_q = head_mem;
  end else begin : gen_copied
    always_ff @(posedge clk_i) begin
      if (start) mem_q <= head_mem;
    end
  end

  ////////////
  // Queues //
  ////////////

  // A row goes to the reading side and to the burst side.
  logic row_full, row_empty, req_full, req_empty, row_take, req_ready, req_last;
  row_t row_in, row_head;
  localparam int unsigned PushCountW = $clog2(tw_cfg_pkg::StoresUnderWay + 1);
  localparam int unsigned ReqCountW = $clog2(tw_cfg_pkg::StoreRows + 1);
  logic [OffsetBits-1:0]                       req_addr;
  logic [BytesW-1:0]                           req_bytes;
  logic [PushCountW-1:0]                       unused_push_count;
  logic [ReqCountW-1:0]                        unused_req_count;
  logic [$clog2(tw_cfg_pkg::StoreReads+1)-1:0] unused_row_count;
  assign rows_ready     = !row_full && !req_full;
  assign row_in.mem_out = mem_q == tw_isa_pkg::MemOut;
  assign row_in.pos     = rows_pos;
  assign row_in.bytes   = rows_bytes;
  assign row_in.dst     = rows_addr[BusLog-1:0];

  tw_fifo #(.Width(4), .Depth(tw_cfg_pkg::StoresUnderWay)) u_pushes (
    .clk_i,
    .rst_ni,
    .push_i (start),
    .data_i (insn_push_i),
    .pop_i  (retire_o),
    .data_o (retiring_push),
    .empty_o(pushes_empty),
    .full_o (pushes_full),
    .count_o(unused_push_count)
  );
  tw_fifo #(.Width($bits(row_t)), .Depth(tw_cfg_pkg::StoreReads)) u_row_queue (
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
  tw_fifo #(.Width(OffsetBits + BytesW + 1), .Depth(tw_cfg_pkg::StoreRows)) u_requests (
    .clk_i,
    .rst_ni,
    .push_i (rows_valid && rows_ready),
    .data_i ({rows_addr, rows_bytes, rows_last}),
    .pop_i  (!req_empty && req_ready && !stop_i),
    .data_o ({req_addr, req_bytes, req_last}),
    .empty_o(req_empty),
    .full_o (req_full),
    .count_o(unused_req_count)
  );

  //////////////////////
  // Scratchpad reads //
  //////////////////////

  // Chunks of the rows' entries are read, one a cycle, into the words of tw_front. The queue of moves has as many
  // places as tw_front has words, and a row takes at least one word, so that queue never overflows.
  logic                            read_q, read_out_q, chunk_valid_q, chunk_out_q;
  logic [BytesW:0]                 chunks_left_q, chunks;
  // Which chunk of its entry is read, and which was read in the cycle before
  logic [31:0]                     chunk_select, chunk_select_q;
  logic [2:0]                      avail;
  logic [tw_cfg_pkg::BusBits-1:0]  word0, word1, chunk_data;
  logic [1:0]                      pop;
  logic                            read, read_end, beat_ready, moves_empty, moves_full;
  logic                            move_ready, move_valid, move_full, move_end, move_both, move_active;
  move_t                           move_in, move_head;
  logic [$clog2(FrontWords+1)-1:0] unused_moves_count;
  logic [4:0]                      head_log;
  logic [BusLog:0]                 move_count;
  logic [tw_cfg_pkg::BusBits-1:0]  move_data;
  logic [BusBytes-1:0]             move_bytes;

  function automatic logic [4:0] log_of_chunk(input logic mem_out);
    log_of_chunk = mem_out ? 5'($clog2(tw_cfg_pkg::OutChunkBytes)) : 5'($clog2(tw_cfg_pkg::InpChunkBytes));
  endfunction

  logic [BusLog-1:0] head_src;
  always_comb begin
    head_log = '0;
    head_src = '0;
    chunks = '0;
    move_in = '0;
    if (row_take) begin
      head_log = log_of_chunk(row_head.mem_out);
      if (Pack) head_src = BusLog'(32'(row_head.pos) & ((32'd1 << head_log) - 32'd1));
      chunks          = (BytesW+1)'((32'(row_head.bytes) + 32'(head_src) + (32'd1 << head_log) - 32'd1) >> head_log);
      move_in.mem_out = row_head.mem_out;
      move_in.src     = head_src;
      move_in.bytes   = row_head.bytes;
      move_in.dst     = row_head.dst;
    end
  end
  assign read = chunk_valid_q && !stop_i && avail + 3'(read_q) < 3'(FrontWords);
  assign read_end = read && chunks_left_q == (BytesW+1)'(1);
  assign row_take = !row_empty && (!chunk_valid_q || read_end) && !stop_i;
  assign inp_re_o = read && !chunk_out_q;
  assign out_re_o = read && chunk_out_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      chunk_valid_q <= 1'b0;
      read_q        <= 1'b0;
    end else begin
      if (row_take) chunk_valid_q <= 1'b1;
      else if (read_end) chunk_valid_q <= 1'b0;
      read_q <= read;
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
      read_out_q     <= chunk_out_q;
      chunk_select_q <= chunk_select;
    end
  end
  if (Pack) begin : gen_bytes
    logic [PosW-1:0] chunk_pos_q;
    logic [4:0]      cur_log;
    assign cur_log      = log_of_chunk(chunk_out_q);
    assign raddr_o      = tw_cfg_pkg::EntryW'(chunk_pos_q >> (chunk_out_q ? OutLog : InpLog));
    assign chunk_select = 32'(PosW'(chunk_pos_q >> cur_log)) & 32'((chunk_out_q ? OutChunks : InpChunks) - 1);
    always_ff @(posedge clk_i) begin
      if (row_take) chunk_pos_q <= (row_head.pos >> head_log) << head_log;
      else if (read) chunk_pos_q <= chunk_pos_q + (PosW'(1) << cur_log);
    end
  end else begin : gen_entries
    logic [tw_cfg_pkg::EntryW-1:0] entry_q;
    logic [tw_cfg_pkg::ChunkW-1:0] place_q;
    logic entry_end;
    assign raddr_o      = entry_q;
    assign chunk_select = 32'(place_q);
    assign entry_end    = chunk_select == 32'((chunk_out_q ? OutChunks : InpChunks) - 1);
    always_ff @(posedge clk_i) begin
      if (row_take) entry_q <= tw_cfg_pkg::EntryW'(row_head.pos);
      else if (read && entry_end) entry_q <= entry_q + 1'b1;
      if (row_take || (read && entry_end)) place_q <= '0;
      else if (read) place_q <= place_q + 1'b1;
    end
  end

  always_comb begin
    chunk_data = '0;
    if (read_q) begin
      if (read_out_q) begin
        for (int unsigned c = 0; c < OutChunks; c++) begin
          if (chunk_select_q == c) begin
            chunk_data = tw_cfg_pkg::BusBits'(out_rdata_i[c*OutChunkBits +: OutChunkBits]);
          end
        end
      end else begin
        for (int unsigned c = 0; c < InpChunks; c++) begin
          if (chunk_select_q == c) begin
            chunk_data = tw_cfg_pkg::BusBits'(inp_rdata_i[c*InpChunkBits +: InpChunkBits]);
          end
        end
      end
    end
  end

  tw_front #(.Width(tw_cfg_pkg::BusBits), .Places(FrontWords)) u_front (
    .clk_i,
    .rst_ni,
    .push_i (read_q),
    .data_i (chunk_data),
    .pop_i  (pop),
    .avail_o(avail),
    .word0_o(word0),
    .word1_o(word1)
  );

  tw_fifo #(.Width($bits(move_t)), .Depth(FrontWords)) u_moves (
    .clk_i,
    .rst_ni,
    .push_i (row_take),
    .data_i (move_in),
    .pop_i  (!moves_empty && move_ready),
    .data_o (move_head),
    .empty_o(moves_empty),
    .full_o (moves_full),
    .count_o(unused_moves_count)
  );

  tw_realign #(.MaxBytes(BusBytes), .BytesW(BytesW)) u_realign (
    .clk_i,
    .rst_ni,
    .row_valid_i  (!moves_empty),
    .row_bytes_i  (move_head.bytes),
    .row_src_i    (move_head.src),
    .row_dst_i    (move_head.dst),
    .row_src_log_i(LogW'(log_of_chunk(move_head.mem_out))),
    .row_dst_log_i(LogW'(BusLog)),
    .row_ready_o  (move_ready),
    .src_avail_i  (avail),
    .src0_i       (word0),
    .src1_i       (word1),
    .src_pop_o    (pop),
    .dst_ready_i  (beat_ready),
    .dst_valid_o  (move_valid),
    .dst_data_o   (move_data),
    .dst_bytes_o  (move_bytes),
    .dst_full_o   (move_full),
    .dst_end_o    (move_end),
    .dst_count_o  (move_count),
    .src_both_o   (move_both),
    .active_o     (move_active)
  );

  ///////////
  // Beats //
  ///////////

  // One or more moves make a beat, which is then buffered.
  logic [tw_cfg_pkg::BusBits-1:0] beat_q, beat;
  logic [BusBytes-1:0]            beat_strb_q, beat_strb;
  logic                           beat_push;
  logic [BeatsW-1:0]              held_beats_q, ready_beats_q;
  logic [2:0]                     recent_pushes_q;
  assign beat_ready = held_beats_q != BeatsW'(Beats) && !stop_i;
  // A move changes only its own bytes of the beat.
  always_comb begin
    beat = beat_q;
    if (move_valid) begin
      for (int unsigned b = 0; b < BusBytes; b++) begin
        if (move_bytes[b]) beat[b*8 +: 8] = move_data[b*8 +: 8];
      end
    end
  end
  assign beat_strb = beat_strb_q | move_bytes;
  assign beat_push = move_valid && beat_ready && (move_full || move_end);
  always_ff @(posedge clk_i) begin
    if (!rst_ni || beat_push) begin
      beat_q      <= '0;
      beat_strb_q <= '0;
    end else if (move_valid && beat_ready) begin
      beat_q      <= beat;
      beat_strb_q <= beat_strb;
    end
  end

  logic [2:0]                              w_avail;
  logic                                    w_pop, w_freed, w_empty;
  logic [tw_cfg_pkg::BusBits+BusBytes-1:0] w_word, unused_word1;
  tw_words #(
    .Width (tw_cfg_pkg::BusBits + BusBytes),
    .Depth (Beats),
    .Places(tw_cfg_pkg::BeatWords)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .push_i (beat_push),
    .data_i ({beat_strb, beat}),
    .pop_i  ({1'b0, w_pop}),
    .avail_o(w_avail),
    .word0_o(w_word),
    .word1_o(unused_word1),
    .freed_o(w_freed),
    .empty_o(w_empty)
  );

  /////////////////////////////
  // Write requests and data //
  /////////////////////////////

  // A burst is requested when all its beats have been buffered for long enough to be sent without a pause.
  logic                             burst_valid, burst_last, burst_take, request_room;
  logic                             lengths_empty, lengths_full, ends_empty, ends_full, ends_insn;
  logic [8:0]                       burst_beats, w_length;
  logic [8:0]                       w_beat_q;
  logic [OutW-1:0]                  outstanding_q;
  logic [$clog2(Outstanding+1)-1:0] unused_len_count, unused_end_count;

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
    .row_last_i   (req_last),
    .row_ready_o  (req_ready),
    .burst_valid_o(burst_valid),
    .burst_addr_o (aw_addr_o),
    .burst_beats_o(burst_beats),
    .burst_last_o (burst_last),
    .burst_take_i (burst_take)
  );
  assign request_room = outstanding_q != OutW'(Outstanding);
  assign aw_valid_o = burst_valid && request_room && 32'(ready_beats_q) >= 32'(burst_beats) && !stop_i;
  assign aw_len_o = 8'(burst_beats - 1'b1);
  assign burst_take = aw_valid_o && aw_ready_i;

  // Lengths of the bursts whose data are not sent yet; for bursts not acknowledged yet, whether each ends its
  // instruction
  tw_fifo #(.Width(9), .Depth(Outstanding)) u_lengths (
    .clk_i,
    .rst_ni,
    .push_i (burst_take),
    .data_i (burst_beats),
    .pop_i  (w_pop && w_last_o),
    .data_o (w_length),
    .empty_o(lengths_empty),
    .full_o (lengths_full),
    .count_o(unused_len_count)
  );
  tw_fifo #(.Width(1), .Depth(Outstanding)) u_ends (
    .clk_i,
    .rst_ni,
    .push_i (burst_take),
    .data_i (burst_last),
    .pop_i  (b_valid_i),
    .data_o (ends_insn),
    .empty_o(ends_empty),
    .full_o (ends_full),
    .count_o(unused_end_count)
  );

  assign w_valid_o = !lengths_empty && w_avail != '0;
  assign w_data_o  = w_word[tw_cfg_pkg::BusBits-1:0];
  assign w_strb_o  = w_word[tw_cfg_pkg::BusBits +: BusBytes];
  assign w_last_o  = w_beat_q == w_length - 1'b1;
  assign w_pop     = w_valid_o && w_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      outstanding_q   <= '0;
      w_beat_q        <= '0;
      held_beats_q    <= '0;
      ready_beats_q   <= '0;
      recent_pushes_q <= '0;
    end else begin
      outstanding_q <= outstanding_q + OutW'(burst_take) - OutW'(b_valid_i);
      if (w_pop) w_beat_q <= w_last_o ? '0 : w_beat_q + 1'b1;
      held_beats_q    <= held_beats_q + BeatsW'(beat_push) - BeatsW'(w_pop);
      recent_pushes_q <= {recent_pushes_q[1:0], beat_push};
      ready_beats_q   <= ready_beats_q + BeatsW'(recent_pushes_q[2]) - (burst_take ? BeatsW'(burst_beats) : '0);
    end
  end

  /////////////////////////////////
  // Retirement, traps and state //
  /////////////////////////////////

  // Nothing retires after a trap: the instruction that trapped can be older than the acknowledged one.
  assign retire_o      = b_valid_i && ends_insn && !b_error_i && !stop_i;
  assign retire_push_o = retiring_push;
  assign busy_o        = rows_active || !pushes_empty;
  assign quiet_o       = outstanding_q == '0;

  logic bus_error;
  assign bus_error = b_valid_i && b_error_i && !stop_i;
  assign trap_o = trap_limit || trap_range || bus_error;
  assign trap_cause_o = bus_error  ? tw_isa_pkg::CauseBus :
                        trap_limit ? tw_isa_pkg::CauseLimit : tw_isa_pkg::CauseScratchpad;
  assign trap_oldest_o = bus_error;

  always_comb begin
    if (move_valid && beat_ready) state_o = tw_isa_pkg::StateBusy;
    else if (move_valid && !beat_ready) state_o = tw_isa_pkg::StateSpace;
    else if (burst_valid && !request_room) state_o = tw_isa_pkg::StateSpace;
    else if (move_active || rows_active || !row_empty || chunk_valid_q || !moves_empty) state_o = tw_isa_pkg::StateBusy;
    else if (busy_o) state_o = tw_isa_pkg::StateData;
    else state_o = tw_isa_pkg::StateEmpty;
  end

  logic unused;
  assign unused = ^{rows_pad, rows_pos, move_count, move_both, lengths_full, ends_full, ends_empty, w_freed, w_empty,
                    unused_word1, unused_push_count, unused_row_count, unused_req_count, unused_len_count,
                    unused_end_count, unused_moves_count, moves_full};

  ////////////////
  // Assertions //
  ////////////////

  `TW_ASSERT(MoveIsQueued_A, !(row_take && moves_full && !(!moves_empty && move_ready)))
  `TW_ASSERT(OneTrap_A, $onehot0({trap_limit, trap_range}))
  // The beats of a requested burst are buffered, and a response belongs to a burst.
  `TW_ASSERT(BeatsReserved_A, 32'(ready_beats_q) <= 32'(held_beats_q) && 32'(held_beats_q) <= Beats)
  `TW_ASSERT(ResponseHasBurst_A, !(b_valid_i && ends_empty))
  `TW_ASSERT(DataHasLength_A, !w_valid_o || w_beat_q < w_length)
  `TW_ASSERT(BurstIsQueued_A, !(burst_take && (lengths_full || ends_full)))

endmodule
