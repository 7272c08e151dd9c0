`include "tw_assert.svh"
`include "tw_fields.svh"

// Accelerator core: five units around their scratchpads.
//
//   host --- tw_regs ---> tw_fetch ---> four instruction queues ---> load, gemm, vector, store
//
// Fetch reads the instruction stream and hands each instruction to its unit's queue. An instruction starts when it is
// at the head of its queue, its unit is free and the dependency tokens that it needs are there (tw_tokens). Units
// exchange data only through the scratchpads.
//
// Signals that have one bit or field for each unit are indexed by Load, Gemm, Vector and Store. Signals of one unit
// start with its letter: f_ fetch, l_ load, g_ gemm, v_ vector, s_ store.
module tw_core (
  input  logic clk_i,
  input  logic rst_ni,

  // Host registers; a read is answered in the same cycle
  input  logic        reg_valid_i,
  input  logic        reg_write_i,
  input  logic [11:0] reg_addr_i,
  input  logic [31:0] reg_wdata_i,
  output logic [31:0] reg_rdata_o,
  output logic        irq_o,

  // AXI4 read: identifier 0 is fetch, 1 is load. The core never refuses data.
  output logic                              ar_valid_o,
  input  logic                              ar_ready_i,
  output logic                              ar_id_o,
  output logic [tw_cfg_pkg::OffsetBits-1:0] ar_addr_o,
  output logic [7:0]                        ar_len_o,
  input  logic                              r_valid_i,
  input  logic                              r_id_i,
  input  logic [tw_cfg_pkg::BusBits-1:0]    r_data_i,
  input  logic [1:0]                        r_resp_i,
  input  logic                              r_last_i,

  // AXI4 write
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
  input  logic [1:0]                        b_resp_i
);

  // Units that run instructions
  localparam int unsigned Load = 0;
  localparam int unsigned Gemm = 1;
  localparam int unsigned Vector = 2;
  localparam int unsigned Store = 3;

  localparam int unsigned OffsetBits = tw_cfg_pkg::OffsetBits;
  localparam int unsigned BusBits = tw_cfg_pkg::BusBits;
  localparam int unsigned BusBytes = tw_cfg_pkg::BusBytes;
  localparam int unsigned InpBits = tw_cfg_pkg::InpEntryBytes * 8;
  localparam int unsigned WgtBits = tw_cfg_pkg::WgtEntryBytes * 8;
  localparam int unsigned AccBits = tw_cfg_pkg::AccEntryBytes * 8;
  localparam int unsigned OutBits = tw_cfg_pkg::OutEntryBytes * 8;
  // The serial vector unit reads param row by row, the other one by whole entries.
  localparam bit Serial = tw_cfg_pkg::VectorSerial != 0;
  localparam int unsigned ParamDepth = Serial ? tw_cfg_pkg::ParamEntries : tw_cfg_pkg::ParamDepth;
  localparam int unsigned ParamBytes = (Serial ? 1 : tw_isa_pkg::ParamRows) * tw_cfg_pkg::ParamEntryBytes;
  localparam int unsigned ParamBits = ParamBytes * 8;
  localparam int unsigned InpW = $clog2(tw_cfg_pkg::InpDepth);
  localparam int unsigned WgtW = $clog2(tw_cfg_pkg::WgtDepth);
  localparam int unsigned AccW = $clog2(tw_cfg_pkg::AccDepth);
  localparam int unsigned OutW = $clog2(tw_cfg_pkg::OutDepth);
  localparam int unsigned ParamW = $clog2(ParamDepth);
  localparam int unsigned GuopW = $clog2(tw_cfg_pkg::GemmUopDepth);
  localparam int unsigned VuopW = $clog2(tw_cfg_pkg::VectorUopDepth);
  localparam int unsigned CountW = tw_cfg_pkg::CountW;
  // Bits that tell apart the ordinals of all instructions that have started and not retired
  localparam int unsigned FlightW = tw_cfg_pkg::FlightW;
  localparam bit Pack = tw_cfg_pkg::DmaPack != 0;

  ////////////////////////////////
  // Host registers and control //
  ////////////////////////////////

  logic                         unit_rst_n, work_rst_n, stop, cmd_start, running, finished, quiet;
  logic [OffsetBits-1:0]        stream_addr;
  logic [CountW-1:0]            stream_insns;
  logic [tw_cfg_pkg::BaseW-1:0] load_base, store_base;
  logic [OffsetBits-1:0]        load_base_addr, load_base_limit, store_base_addr, store_base_limit;
  logic [4:0]                   traps, unit_trap;
  logic [19:0]                  trap_causes;
  // What each unit does in this cycle. Simulators read it to attribute stalls.
  logic [19:0]                  states /*verilator public_flat_rd*/;
  logic [5*FlightW-1:0]         trap_ordinals;
  logic [3:0]                   retire, unit_free, start_if_running, start, busy;
  logic [4*CountW-1:0]          retired;
  logic [15:0]                  retire_push, need;
  // What fetch hands out: the queue, the word of the instruction, and the number of instructions before it
  logic [3:0]                   q_push, q_word;
  logic                         q_last;
  logic [CountW-1:0]            f_ordinal;

  tw_regs u_regs (
    .clk_i,
    .rst_ni,
    .reg_valid_i,
    .reg_write_i,
    .reg_addr_i,
    .reg_wdata_i,
    .reg_rdata_o,
    .irq_o,
    .load_base_i       (load_base),
    .load_base_addr_o  (load_base_addr),
    .load_base_limit_o (load_base_limit),
    .store_base_i      (store_base),
    .store_base_addr_o (store_base_addr),
    .store_base_limit_o(store_base_limit),
    .start_o           (cmd_start),
    .stream_addr_o     (stream_addr),
    .stream_insns_o    (stream_insns),
    .running_o         (running),
    .finished_i        (finished),
    .unit_rst_no       (unit_rst_n),
    .stop_o            (stop),
    .quiet_i           (quiet),
    .trap_i            (traps),
    .trap_cause_i      (trap_causes),
    .trap_ordinal_i    (trap_ordinals),
    .retire_i          (retire),
    .fetched_i         (f_ordinal),
    .retired_o         (retired),
    .states_i          (states)
  );

  // Tokens and ordinals are reset at the start of each command.
  assign work_rst_n = unit_rst_n && !cmd_start;

  //////////////////////
  // Fetch and queues //
  //////////////////////

  logic                  f_ar_valid, f_ar_grant, l_ar_valid, l_ar_grant, f_done, f_held, f_quiet, f_trap;
  logic [OffsetBits-1:0] f_ar_addr, l_ar_addr;
  logic [7:0]            f_ar_len, l_ar_len;
  logic [3:0]            q_full, q_empty, q_valid, head_ready, head_valid;
  logic                  l_hold, g_hold, v_hold, s_hold;
  logic [7:0]            missing;
  logic [255:0]          f_insn;
  logic [3:0]            f_cause, f_state;
  logic                  f_behind;

  tw_fetch u_fetch (
    .clk_i,
    .rst_ni        (unit_rst_n),
    .stop_i        (stop),
    .start_i       (cmd_start),
    .stream_addr_i (stream_addr),
    .stream_insns_i(stream_insns),
    .ar_valid_o    (f_ar_valid),
    .ar_grant_i    (f_ar_grant),
    .ar_addr_o     (f_ar_addr),
    .ar_len_o      (f_ar_len),
    .r_valid_i     (r_valid_i && !r_id_i),
    .r_data_i,
    .r_error_i     (r_resp_i != 2'd0),
    .r_last_i,
    .push_o        (q_push),
    .insn_o        (f_insn),
    .word_o        (q_word),
    .last_o        (q_last),
    .full_i        (q_full),
    .done_o        (f_done),
    .held_o        (f_held),
    .quiet_o       (f_quiet),
    .state_o       (f_state),
    .trap_o        (f_trap),
    .trap_cause_o  (f_cause),
    .ordinal_o     (f_ordinal),
    .trap_behind_o (f_behind)
  );

  localparam int unsigned LoadHeadW = tw_cfg_pkg::LoadBodyW + 8;
  localparam int unsigned GemmHeadW = tw_cfg_pkg::GemmBodyW + 8;
  localparam int unsigned VectorHeadW = tw_cfg_pkg::VectorBodyW + 8;
  localparam int unsigned StoreHeadW = tw_cfg_pkg::StoreBodyW + 8;
  logic [LoadHeadW-1:0]   load_head;
  logic [GemmHeadW-1:0]   gemm_head;
  logic [VectorHeadW-1:0] vector_head;
  logic [StoreHeadW-1:0]  store_head;

  tw_queue #(.BodyW(tw_cfg_pkg::LoadBodyW)) u_load_queue (
    .clk_i,
    .rst_ni (unit_rst_n),
    .push_i (q_push[Load]),
    .insn_i (f_insn),
    .word_i (q_word),
    .last_i (q_last),
    .pop_i  (start[Load]),
    .hold_i (l_hold),
    .head_o (load_head),
    .valid_o(q_valid[Load]),
    .empty_o(q_empty[Load]),
    .full_o (q_full[Load])
  );
  tw_queue #(.BodyW(tw_cfg_pkg::GemmBodyW)) u_gemm_queue (
    .clk_i,
    .rst_ni (unit_rst_n),
    .push_i (q_push[Gemm]),
    .insn_i (f_insn),
    .word_i (q_word),
    .last_i (q_last),
    .pop_i  (start[Gemm]),
    .hold_i (g_hold),
    .head_o (gemm_head),
    .valid_o(q_valid[Gemm]),
    .empty_o(q_empty[Gemm]),
    .full_o (q_full[Gemm])
  );
  tw_queue #(.BodyW(tw_cfg_pkg::VectorBodyW)) u_vector_queue (
    .clk_i,
    .rst_ni (unit_rst_n),
    .push_i (q_push[Vector]),
    .insn_i (f_insn),
    .word_i (q_word),
    .last_i (q_last),
    .pop_i  (start[Vector]),
    .hold_i (v_hold),
    .head_o (vector_head),
    .valid_o(q_valid[Vector]),
    .empty_o(q_empty[Vector]),
    .full_o (q_full[Vector])
  );
  tw_queue #(.BodyW(tw_cfg_pkg::StoreBodyW)) u_store_queue (
    .clk_i,
    .rst_ni (unit_rst_n),
    .push_i (q_push[Store]),
    .insn_i (f_insn),
    .word_i (q_word),
    .last_i (q_last),
    .pop_i  (start[Store]),
    .hold_i (s_hold),
    .head_o (store_head),
    .valid_o(q_valid[Store]),
    .empty_o(q_empty[Store]),
    .full_o (q_full[Store])
  );

  // Pop masks of the heads. A queue without a valid head needs no token.
  assign need = {store_head[3:0]  & {4{q_valid[Store]}},
                 vector_head[3:0] & {4{q_valid[Vector]}},
                 gemm_head[3:0]   & {4{q_valid[Gemm]}},
                 load_head[3:0]   & {4{q_valid[Load]}}};
  assign head_valid = q_valid & head_ready;
  // After a trap nothing starts. The token counters no longer matter then, so they use the earlier signal without
  // `stop`.
  assign start_if_running = head_valid & unit_free;
  assign start = start_if_running & {4{!stop}};
  logic [3:0] overflow;
  tw_tokens #(.Width(tw_cfg_pkg::TokenBits)) u_tokens (
    .clk_i,
    .rst_ni    (work_rst_n),
    .need_i    (need),
    .ready_o   (head_ready),
    .missing_o (missing),
    .start_i   (start_if_running),
    .retire_i  (retire),
    .push_i    (retire_push),
    .overflow_o(overflow)
  );

  // Base registers of the heads
  logic [tw_cfg_pkg::LoadBodyW-1:0]  load_body;
  logic [tw_cfg_pkg::StoreBodyW-1:0] store_body;
  assign load_body  = load_head[LoadHeadW-1:8];
  assign store_body = store_head[StoreHeadW-1:8];
  assign load_base  = `TW_FIELD(load, base, load_body);
  assign store_base = `TW_FIELD(store, base, store_body);

  //////////
  // Load //
  //////////

  logic [6:0]                    ld_we;
  logic [tw_cfg_pkg::EntryW-1:0] ld_entry;
  logic [15:0]                   ld_chunk;
  logic [BusBits-1:0]            ld_data;
  logic [BusBytes-1:0]           ld_valid, ld_enable;
  logic                          ld_tail, ld_all, l_quiet;
  logic [7:0]                    ld_pad;
  logic [3:0]                    l_state, l_cause, s_state, s_cause;
  logic [31:0]                   g_ordinal, v_ordinal, v_read_ordinal;
  logic                          l_oldest, s_oldest;
  logic [1:0]                    g_acc_older;

  tw_load u_load (
    .clk_i,
    .rst_ni       (work_rst_n),
    .stop_i       (stop),
    .insn_valid_i (head_valid[Load]),
    .insn_i       (load_head[LoadHeadW-1:8]),
    .insn_push_i  (load_head[7:4]),
    .insn_free_o  (unit_free[Load]),
    .insn_hold_o  (l_hold),
    .base_addr_i  (load_base_addr),
    .base_limit_i (load_base_limit),
    .ar_valid_o   (l_ar_valid),
    .ar_grant_i   (l_ar_grant),
    .ar_addr_o    (l_ar_addr),
    .ar_len_o     (l_ar_len),
    .r_valid_i    (r_valid_i && r_id_i),
    .r_data_i,
    .r_error_i    (r_resp_i != 2'd0),
    .r_last_i,
    .ld_we_o      (ld_we),
    .ld_entry_o   (ld_entry),
    .ld_chunk_o   (ld_chunk),
    .ld_data_o    (ld_data),
    .ld_valid_o   (ld_valid),
    .ld_enable_o  (ld_enable),
    .ld_tail_o    (ld_tail),
    .ld_all_o     (ld_all),
    .ld_pad_o     (ld_pad),
    .retire_o     (retire[Load]),
    .retire_push_o(retire_push[3:0]),
    .busy_o       (busy[Load]),
    .quiet_o      (l_quiet),
    .state_o      (l_state),
    .trap_o       (unit_trap[Load]),
    .trap_cause_o (l_cause),
    .trap_oldest_o(l_oldest)
  );

  // Fetch and load share the read requests in turn.
  tw_turns u_turns (
    .clk_i,
    .rst_ni  (unit_rst_n),
    .valid_i ({l_ar_valid, f_ar_valid}),
    .ready_i (ar_ready_i),
    .grant_o ({l_ar_grant, f_ar_grant}),
    .second_o(ar_id_o)
  );
  assign ar_valid_o = f_ar_valid || l_ar_valid;
  assign ar_addr_o  = ar_id_o ? l_ar_addr : f_ar_addr;
  assign ar_len_o   = ar_id_o ? l_ar_len : f_ar_len;

  //////////
  // Gemm //
  //////////

  logic guop_re, g_inp_re, g_wgt_re, g_acc_re, g_acc_we, g_working;
  logic [GuopW-1:0] guop_addr;
  logic [tw_cfg_pkg::GuopEntryBytes*8-1:0] guop_data;
  logic [InpW-1:0] g_inp_addr;
  logic [WgtW-1:0] g_wgt_addr;
  logic [AccW-1:0] g_acc_raddr, g_acc_waddr;
  logic [InpBits-1:0] g_inp_data;
  logic [WgtBits-1:0] g_wgt_data;
  logic [AccBits-1:0] g_acc_rdata, g_acc_wdata;

  tw_gemm u_gemm (
    .clk_i,
    .rst_ni        (work_rst_n),
    .stop_i        (stop),
    .insn_valid_i  (head_valid[Gemm]),
    .insn_i        (gemm_head[GemmHeadW-1:8]),
    .insn_push_i   (gemm_head[7:4]),
    .insn_free_o   (unit_free[Gemm]),
    .insn_hold_o   (g_hold),
    .uop_re_o      (guop_re),
    .uop_addr_o    (guop_addr),
    .uop_data_i    (guop_data),
    .inp_re_o      (g_inp_re),
    .inp_addr_o    (g_inp_addr),
    .inp_data_i    (g_inp_data),
    .wgt_re_o      (g_wgt_re),
    .wgt_addr_o    (g_wgt_addr),
    .wgt_data_i    (g_wgt_data),
    .acc_re_o      (g_acc_re),
    .acc_raddr_o   (g_acc_raddr),
    .acc_rdata_i   (g_acc_rdata),
    .acc_we_o      (g_acc_we),
    .acc_waddr_o   (g_acc_waddr),
    .acc_wdata_o   (g_acc_wdata),
    .retire_o      (retire[Gemm]),
    .retire_push_o (retire_push[7:4]),
    .busy_o        (busy[Gemm]),
    .working_o     (g_working),
    .trap_o        (unit_trap[Gemm]),
    .trap_ordinal_o(g_ordinal),
    .acc_older_o   (g_acc_older)
  );

  ////////////
  // Vector //
  ////////////

  logic vuop_re, v_param_re, v_acc_we, v_out_we, v_inp_we, v_working;
  logic [VuopW-1:0] vuop_addr;
  logic [tw_cfg_pkg::VuopEntryBytes*8-1:0] vuop_data;
  logic [1:0] v_acc_re, v_out_re, v_inp_re;
  logic [2*AccW-1:0] v_acc_raddr;
  logic [2*OutW-1:0] v_out_raddr;
  logic [2*InpW-1:0] v_inp_raddr;
  logic [2*AccBits-1:0] v_acc_rdata;
  logic [2*OutBits-1:0] v_out_rdata, v_inp_rdata;
  logic [ParamW-1:0] v_param_addr;
  logic [ParamBits-1:0] v_param_data;
  logic [tw_cfg_pkg::VecW-1:0] v_waddr;
  logic [AccBits-1:0] v_wdata32;
  logic [OutBits-1:0] v_wdata8;

  if (Serial) begin : gen_vector_serial
    tw_vector_serial u_vector (
      .clk_i,
      .rst_ni        (work_rst_n),
      .stop_i        (stop),
      .insn_valid_i  (head_valid[Vector]),
      .insn_i        (vector_head[VectorHeadW-1:8]),
      .insn_push_i   (vector_head[7:4]),
      .insn_free_o   (unit_free[Vector]),
      .insn_hold_o   (v_hold),
      .uop_re_o      (vuop_re),
      .uop_addr_o    (vuop_addr),
      .uop_data_i    (vuop_data),
      .acc_re_o      (v_acc_re),
      .acc_raddr_o   (v_acc_raddr),
      .acc_rdata_i   (v_acc_rdata),
      .out_re_o      (v_out_re),
      .out_raddr_o   (v_out_raddr),
      .out_rdata_i   (v_out_rdata),
      .inp_re_o      (v_inp_re),
      .inp_raddr_o   (v_inp_raddr),
      .inp_rdata_i   (v_inp_rdata),
      .param_re_o    (v_param_re),
      .param_addr_o  (v_param_addr),
      .param_data_i  (v_param_data),
      .acc_we_o      (v_acc_we),
      .out_we_o      (v_out_we),
      .inp_we_o      (v_inp_we),
      .waddr_o       (v_waddr),
      .wdata32_o     (v_wdata32),
      .wdata8_o      (v_wdata8),
      .retire_o      (retire[Vector]),
      .retire_push_o (retire_push[11:8]),
      .busy_o        (busy[Vector]),
      .working_o     (v_working),
      .trap_o        (unit_trap[Vector]),
      .trap_ordinal_o(v_ordinal)
    );
    assign v_read_ordinal = v_ordinal;
  end else begin : gen_vector
    tw_vector u_vector (
      .clk_i,
      .rst_ni        (work_rst_n),
      .stop_i        (stop),
      .insn_valid_i  (head_valid[Vector]),
      .insn_i        (vector_head[VectorHeadW-1:8]),
      .insn_push_i   (vector_head[7:4]),
      .insn_free_o   (unit_free[Vector]),
      .uop_re_o      (vuop_re),
      .uop_addr_o    (vuop_addr),
      .uop_data_i    (vuop_data),
      .acc_re_o      (v_acc_re),
      .acc_raddr_o   (v_acc_raddr),
      .acc_rdata_i   (v_acc_rdata),
      .out_re_o      (v_out_re),
      .out_raddr_o   (v_out_raddr),
      .out_rdata_i   (v_out_rdata),
      .inp_re_o      (v_inp_re),
      .inp_raddr_o   (v_inp_raddr),
      .inp_rdata_i   (v_inp_rdata),
      .param_re_o    (v_param_re),
      .param_addr_o  (v_param_addr),
      .param_data_i  (v_param_data),
      .acc_we_o      (v_acc_we),
      .out_we_o      (v_out_we),
      .inp_we_o      (v_inp_we),
      .waddr_o       (v_waddr),
      .wdata32_o     (v_wdata32),
      .wdata8_o      (v_wdata8),
      .retire_o      (retire[Vector]),
      .retire_push_o (retire_push[11:8]),
      .busy_o        (busy[Vector]),
      .working_o     (v_working),
      .trap_o        (unit_trap[Vector]),
      .trap_ordinal_o(v_ordinal),
      .read_ordinal_o(v_read_ordinal)
    );
    assign v_hold = 1'b0;
  end

  ///////////
  // Store //
  ///////////

  logic s_inp_re, s_out_re, s_quiet;
  logic [tw_cfg_pkg::EntryW-1:0] s_raddr;
  logic [InpBits-1:0] s_inp_data;
  logic [OutBits-1:0] s_out_data;

  tw_store u_store (
    .clk_i,
    .rst_ni       (work_rst_n),
    .stop_i       (stop),
    .insn_valid_i (head_valid[Store]),
    .insn_i       (store_head[StoreHeadW-1:8]),
    .insn_push_i  (store_head[7:4]),
    .insn_free_o  (unit_free[Store]),
    .insn_hold_o  (s_hold),
    .base_addr_i  (store_base_addr),
    .base_limit_i (store_base_limit),
    .inp_re_o     (s_inp_re),
    .out_re_o     (s_out_re),
    .raddr_o      (s_raddr),
    .inp_rdata_i  (s_inp_data),
    .out_rdata_i  (s_out_data),
    .aw_valid_o,
    .aw_ready_i,
    .aw_addr_o,
    .aw_len_o,
    .w_valid_o,
    .w_ready_i,
    .w_data_o,
    .w_strb_o,
    .w_last_o,
    .b_valid_i,
    .b_error_i    (b_resp_i != 2'd0),
    .retire_o     (retire[Store]),
    .retire_push_o(retire_push[15:12]),
    .busy_o       (busy[Store]),
    .quiet_o      (s_quiet),
    .state_o      (s_state),
    .trap_o       (unit_trap[Store]),
    .trap_cause_o (s_cause),
    .trap_oldest_o(s_oldest)
  );

  /////////////////
  // Scratchpads //
  /////////////////

  logic [6:0] ld_collision;
  logic [1:0] acc_write_collision;
  logic [3:0] inp_read_collision;
  logic       out_write_collision;
  logic [2:0] acc_read_collision, out_read_collision;
  logic       inp_write_collision;
  logic       unused_wgt_read, unused_param_read, unused_guop_read, unused_vuop_read;
  logic       unused_wgt_write, unused_param_write, unused_guop_write, unused_vuop_write;

  // The load port's chunk number, in the width of each scratchpad
  localparam int unsigned InpChunks = tw_cfg_pkg::InpEntryBytes / tw_cfg_pkg::InpChunkBytes;
  localparam int unsigned WgtChunks = tw_cfg_pkg::WgtEntryBytes / tw_cfg_pkg::WgtChunkBytes;
  localparam int unsigned AccChunks = tw_cfg_pkg::AccEntryBytes / tw_cfg_pkg::AccChunkBytes;
  localparam int unsigned OutChunks = tw_cfg_pkg::OutEntryBytes / tw_cfg_pkg::OutChunkBytes;
  localparam int unsigned ParamChunks = ParamBytes / tw_cfg_pkg::ParamChunkBytes;
  localparam int unsigned GuopChunks = tw_cfg_pkg::GuopEntryBytes / tw_cfg_pkg::GuopChunkBytes;
  localparam int unsigned VuopChunks = tw_cfg_pkg::VuopEntryBytes / tw_cfg_pkg::VuopChunkBytes;
  logic [(InpChunks > 1 ? $clog2(InpChunks) : 1)-1:0] chunk_inp;
  logic [(WgtChunks > 1 ? $clog2(WgtChunks) : 1)-1:0] chunk_wgt;
  logic [(AccChunks > 1 ? $clog2(AccChunks) : 1)-1:0] chunk_acc;
  logic [(OutChunks > 1 ? $clog2(OutChunks) : 1)-1:0] chunk_out;
  logic [(ParamChunks > 1 ? $clog2(ParamChunks) : 1)-1:0] chunk_param;
  logic [(GuopChunks > 1 ? $clog2(GuopChunks) : 1)-1:0] chunk_guop;
  logic [(VuopChunks > 1 ? $clog2(VuopChunks) : 1)-1:0] chunk_vuop;
  assign chunk_inp = $bits(chunk_inp)'(ld_chunk);
  assign chunk_wgt = $bits(chunk_wgt)'(ld_chunk);
  assign chunk_acc = $bits(chunk_acc)'(ld_chunk);
  assign chunk_out = $bits(chunk_out)'(ld_chunk);
  assign chunk_param = $bits(chunk_param)'(ld_chunk);
  assign chunk_guop = $bits(chunk_guop)'(ld_chunk);
  assign chunk_vuop = $bits(chunk_vuop)'(ld_chunk);

  // The vector unit reaches inp only where inp rows have the size of out rows; otherwise its ports are unused.
  logic [4*InpBits-1:0] inp_rdata;
  tw_spad #(
    .Depth     (tw_cfg_pkg::InpDepth),
    .Banks     (tw_cfg_pkg::InpBanks),
    .EntryBytes(tw_cfg_pkg::InpEntryBytes),
    .ChunkBytes(tw_cfg_pkg::InpChunkBytes),
    .GroupBytes(tw_cfg_pkg::InpEntryBytes),
    .ByteEnable(Pack),
    .Readers   (4),
    .Writers   (1)
  ) u_inp (
    .clk_i,
    .ld_we_i       (ld_we[0]),
    .ld_addr_i     (InpW'(ld_entry)),
    .ld_chunk_i    (chunk_inp),
    .ld_data_i     (ld_data[tw_cfg_pkg::InpChunkBytes*8-1:0]),
    .ld_valid_i    (ld_valid[tw_cfg_pkg::InpChunkBytes-1:0]),
    .ld_enable_i   (ld_enable[tw_cfg_pkg::InpChunkBytes-1:0]),
    .ld_tail_i     (ld_tail),
    .ld_all_i      (ld_all),
    .ld_pad_i      (ld_pad),
    .ld_collision_o(ld_collision[0]),
    .re_i          ({s_inp_re, v_inp_re, g_inp_re}),
    .raddr_i       ({InpW'(s_raddr), v_inp_raddr, g_inp_addr}),
    .rdata_o       (inp_rdata),
    .rcollision_o  (inp_read_collision),
    .we_i          (v_inp_we),
    .waddr_i       (InpW'(v_waddr)),
    .wdata_i       (InpBits'(v_wdata8)),
    .wcollision_o  (inp_write_collision)
  );
  assign g_inp_data  = inp_rdata[0 +: InpBits];
  assign v_inp_rdata = {OutBits'(inp_rdata[2*InpBits +: InpBits]), OutBits'(inp_rdata[InpBits +: InpBits])};
  assign s_inp_data  = inp_rdata[3*InpBits +: InpBits];

  tw_spad #(
    .Depth     (tw_cfg_pkg::WgtDepth),
    .EntryBytes(tw_cfg_pkg::WgtEntryBytes),
    .ChunkBytes(tw_cfg_pkg::WgtChunkBytes),
    .GroupBytes(tw_cfg_pkg::WgtEntryBytes)
  ) u_wgt (
    .clk_i,
    .ld_we_i       (ld_we[1]),
    .ld_addr_i     (WgtW'(ld_entry)),
    .ld_chunk_i    (chunk_wgt),
    .ld_data_i     (ld_data[tw_cfg_pkg::WgtChunkBytes*8-1:0]),
    .ld_valid_i    (ld_valid[tw_cfg_pkg::WgtChunkBytes-1:0]),
    .ld_enable_i   ('1),
    .ld_tail_i     (ld_tail),
    .ld_all_i      (ld_all),
    .ld_pad_i      (ld_pad),
    .ld_collision_o(ld_collision[1]),
    .re_i          (g_wgt_re),
    .raddr_i       (g_wgt_addr),
    .rdata_o       (g_wgt_data),
    .rcollision_o  (unused_wgt_read),
    .we_i          (1'b0),
    .waddr_i       ('0),
    .wdata_i       ('0),
    .wcollision_o  (unused_wgt_write)
  );

  logic [3*AccBits-1:0] acc_rdata;
  tw_spad #(
    .Depth       (tw_cfg_pkg::AccDepth),
    .Banks       (tw_cfg_pkg::AccBanks),
    .EntryBytes  (tw_cfg_pkg::AccEntryBytes),
    .ChunkBytes  (tw_cfg_pkg::AccChunkBytes),
    .GroupBytes  (tw_cfg_pkg::AccEntryBytes),
    .ElementBytes(4),
    .Readers     (3),
    .Writers     (2)
  ) u_acc (
    .clk_i,
    .ld_we_i       (ld_we[2]),
    .ld_addr_i     (AccW'(ld_entry)),
    .ld_chunk_i    (chunk_acc),
    .ld_data_i     (ld_data[tw_cfg_pkg::AccChunkBytes*8-1:0]),
    .ld_valid_i    (ld_valid[tw_cfg_pkg::AccChunkBytes-1:0]),
    .ld_enable_i   ('1),
    .ld_tail_i     (ld_tail),
    .ld_all_i      (ld_all),
    .ld_pad_i      (ld_pad),
    .ld_collision_o(ld_collision[2]),
    .re_i          ({v_acc_re, g_acc_re}),
    .raddr_i       ({v_acc_raddr, g_acc_raddr}),
    .rdata_o       (acc_rdata),
    .rcollision_o  (acc_read_collision),
    .we_i          ({v_acc_we, g_acc_we}),
    .waddr_i       ({AccW'(v_waddr), g_acc_waddr}),
    .wdata_i       ({v_wdata32, g_acc_wdata}),
    .wcollision_o  (acc_write_collision)
  );
  assign g_acc_rdata = acc_rdata[0 +: AccBits];
  assign v_acc_rdata = acc_rdata[AccBits +: 2*AccBits];

  logic [3*OutBits-1:0] out_rdata;
  tw_spad #(
    .Depth     (tw_cfg_pkg::OutDepth),
    .Banks     (tw_cfg_pkg::OutBanks),
    .EntryBytes(tw_cfg_pkg::OutEntryBytes),
    .ChunkBytes(tw_cfg_pkg::OutChunkBytes),
    .GroupBytes(tw_cfg_pkg::OutEntryBytes),
    .ByteEnable(Pack),
    .Readers   (3),
    .Writers   (1)
  ) u_out (
    .clk_i,
    .ld_we_i       (ld_we[3]),
    .ld_addr_i     (OutW'(ld_entry)),
    .ld_chunk_i    (chunk_out),
    .ld_data_i     (ld_data[tw_cfg_pkg::OutChunkBytes*8-1:0]),
    .ld_valid_i    (ld_valid[tw_cfg_pkg::OutChunkBytes-1:0]),
    .ld_enable_i   (ld_enable[tw_cfg_pkg::OutChunkBytes-1:0]),
    .ld_tail_i     (ld_tail),
    .ld_all_i      (ld_all),
    .ld_pad_i      (ld_pad),
    .ld_collision_o(ld_collision[3]),
    .re_i          ({s_out_re, v_out_re}),
    .raddr_i       ({OutW'(s_raddr), v_out_raddr}),
    .rdata_o       (out_rdata),
    .rcollision_o  (out_read_collision),
    .we_i          (v_out_we),
    .waddr_i       (OutW'(v_waddr)),
    .wdata_i       (v_wdata8),
    .wcollision_o  (out_write_collision)
  );
  assign v_out_rdata = out_rdata[0 +: 2*OutBits];
  assign s_out_data  = out_rdata[2*OutBits +: OutBits];

  tw_spad #(
    .Depth     (ParamDepth),
    .EntryBytes(ParamBytes),
    .ChunkBytes(tw_cfg_pkg::ParamChunkBytes),
    .GroupBytes(tw_cfg_pkg::ParamEntryBytes)
  ) u_param (
    .clk_i,
    .ld_we_i       (ld_we[4]),
    .ld_addr_i     (ParamW'(ld_entry)),
    .ld_chunk_i    (chunk_param),
    .ld_data_i     (ld_data[tw_cfg_pkg::ParamChunkBytes*8-1:0]),
    .ld_valid_i    (ld_valid[tw_cfg_pkg::ParamChunkBytes-1:0]),
    .ld_enable_i   ('1),
    .ld_tail_i     (ld_tail),
    .ld_all_i      (ld_all),
    .ld_pad_i      (ld_pad),
    .ld_collision_o(ld_collision[4]),
    .re_i          (v_param_re),
    .raddr_i       (v_param_addr),
    .rdata_o       (v_param_data),
    .rcollision_o  (unused_param_read),
    .we_i          (1'b0),
    .waddr_i       ('0),
    .wdata_i       ('0),
    .wcollision_o  (unused_param_write)
  );

  tw_spad #(
    .Depth     (tw_cfg_pkg::GemmUopDepth),
    .EntryBytes(tw_cfg_pkg::GuopEntryBytes),
    .ChunkBytes(tw_cfg_pkg::GuopChunkBytes),
    .GroupBytes(tw_cfg_pkg::GuopEntryBytes)
  ) u_guop (
    .clk_i,
    .ld_we_i       (ld_we[5]),
    .ld_addr_i     (GuopW'(ld_entry)),
    .ld_chunk_i    (chunk_guop),
    .ld_data_i     (ld_data[tw_cfg_pkg::GuopChunkBytes*8-1:0]),
    .ld_valid_i    (ld_valid[tw_cfg_pkg::GuopChunkBytes-1:0]),
    .ld_enable_i   ('1),
    .ld_tail_i     (ld_tail),
    .ld_all_i      (ld_all),
    .ld_pad_i      (ld_pad),
    .ld_collision_o(ld_collision[5]),
    .re_i          (guop_re),
    .raddr_i       (guop_addr),
    .rdata_o       (guop_data),
    .rcollision_o  (unused_guop_read),
    .we_i          (1'b0),
    .waddr_i       ('0),
    .wdata_i       ('0),
    .wcollision_o  (unused_guop_write)
  );

  tw_spad #(
    .Depth     (tw_cfg_pkg::VectorUopDepth),
    .EntryBytes(tw_cfg_pkg::VuopEntryBytes),
    .ChunkBytes(tw_cfg_pkg::VuopChunkBytes),
    .GroupBytes(tw_cfg_pkg::VuopEntryBytes)
  ) u_vuop (
    .clk_i,
    .ld_we_i       (ld_we[6]),
    .ld_addr_i     (VuopW'(ld_entry)),
    .ld_chunk_i    (chunk_vuop),
    .ld_data_i     (ld_data[tw_cfg_pkg::VuopChunkBytes*8-1:0]),
    .ld_valid_i    (ld_valid[tw_cfg_pkg::VuopChunkBytes-1:0]),
    .ld_enable_i   ('1),
    .ld_tail_i     (ld_tail),
    .ld_all_i      (ld_all),
    .ld_pad_i      (ld_pad),
    .ld_collision_o(ld_collision[6]),
    .re_i          (vuop_re),
    .raddr_i       (vuop_addr),
    .rdata_o       (vuop_data),
    .rcollision_o  (unused_vuop_read),
    .we_i          (1'b0),
    .waddr_i       ('0),
    .wdata_i       ('0),
    .wcollision_o  (unused_vuop_write)
  );

  /////////////////////////////
  // Collisions and deadlock //
  /////////////////////////////

  // A collision belongs to every unit that takes part; the trap reports the one with the lowest number.
  logic [3:0] collision;
  assign collision[Load] = |ld_collision;
  assign collision[Gemm] = inp_read_collision[0] || acc_read_collision[0] || acc_write_collision[0];
  assign collision[Vector] = (|inp_read_collision[2:1]) || (|acc_read_collision[2:1]) || (|out_read_collision[1:0]) ||
                             acc_write_collision[1] || out_write_collision || inp_write_collision;
  assign collision[Store] = inp_read_collision[3] || out_read_collision[2];

  // Deadlock: for 16 cycles no unit can start, none is busy, and no request is under way.
  logic [3:0] waits_for_token;
  logic       stuck;
  logic [3:0] stuck_cycles_q;
  logic       deadlock;
  assign waits_for_token = ~q_empty & ~head_ready;
  assign stuck = running && !stop && quiet && busy == '0 && (q_empty | waits_for_token) == '1 && waits_for_token != '0 &&
                 (f_done || f_held);
  assign deadlock = stuck && stuck_cycles_q == '1;
  always_ff @(posedge clk_i) begin
    if (!work_rst_n || !stuck) stuck_cycles_q <= '0;
    else stuck_cycles_q <= stuck_cycles_q + 1'b1;
  end

  ///////////
  // Traps //
  ///////////

  // Causes of a unit's trap, by priority: its own, token overflow, collision, deadlock
  logic [4*CountW-1:0] issued;
  for (genvar u = 0; u < 4; u++) begin : gen_issued
    logic [CountW-1:0] issued_q /*verilator public_flat_rd*/;
    always_ff @(posedge clk_i) begin
      if (!work_rst_n) issued_q <= '0;
      else if (start[u]) issued_q <= issued_q + 1'b1;
    end
    assign issued[u*CountW +: CountW] = issued_q;
  end

  logic [4*FlightW-1:0] oldest_ordinal;
  for (genvar u = 0; u < 4; u++) begin : gen_oldest
    assign oldest_ordinal[u*FlightW +: FlightW] = FlightW'(retired[u*CountW +: CountW]);
  end

  // The instruction that collides: a write belongs to the oldest unfinished one, a read can belong to a younger one.
  logic [4*FlightW-1:0] collision_ordinal;
  always_comb begin
    collision_ordinal = 'x;
    if (|collision) begin
      collision_ordinal = oldest_ordinal;
      if (!acc_write_collision[0]) begin
        collision_ordinal[Gemm*FlightW +: FlightW] =
            acc_read_collision[0] ? oldest_ordinal[Gemm*FlightW +: FlightW] + FlightW'(g_acc_older) : FlightW'(g_ordinal);
      end
      if (!(acc_write_collision[1] || out_write_collision || inp_write_collision)) begin
        collision_ordinal[Vector*FlightW +: FlightW] = FlightW'(v_read_ordinal);
      end
    end
  end

  logic [3:0] lowest_wait;
  assign lowest_wait = waits_for_token & (~waits_for_token + 4'd1);
  logic [4*FlightW-1:0] own_ordinal;
  logic [15:0]          own_cause;
  always_comb begin
    own_ordinal = 'x;
    if (|unit_trap[3:0]) begin
      // The load that retires in this cycle is not the one that traps: its last row was written in the cycle before.
      own_ordinal[Load*FlightW +: FlightW] = l_oldest ? oldest_ordinal[Load*FlightW +: FlightW] + FlightW'(retire[Load])
                                                        : FlightW'(issued[Load*CountW +: CountW]) - 1'b1;
      own_ordinal[Gemm*FlightW +: FlightW]   = FlightW'(g_ordinal);
      own_ordinal[Vector*FlightW +: FlightW] = FlightW'(v_ordinal);
      own_ordinal[Store*FlightW +: FlightW]  = s_oldest ? oldest_ordinal[Store*FlightW +: FlightW]
                                                        : FlightW'(issued[Store*CountW +: CountW]) - 1'b1;
    end
  end
  assign own_cause    = {s_cause, tw_isa_pkg::CauseScratchpad, tw_isa_pkg::CauseScratchpad, l_cause};
  assign unit_trap[4] = f_trap;
  assign traps        = {f_trap, unit_trap[3:0] | overflow | collision | (deadlock ? lowest_wait : 4'd0)};
  always_comb begin
    trap_causes = 'x;
    trap_ordinals = 'x;
    if (|traps) begin
      trap_causes[16 +: 4] = f_cause;
      trap_ordinals[4*FlightW +: FlightW] = FlightW'(f_ordinal) + FlightW'(f_behind);
      for (int unsigned u = 0; u < 4; u++) begin
        if (unit_trap[u]) begin
          trap_causes[u*4 +: 4] = own_cause[u*4 +: 4];
          trap_ordinals[u*FlightW +: FlightW] = own_ordinal[u*FlightW +: FlightW];
        end else if (overflow[u]) begin
          trap_causes[u*4 +: 4] = tw_isa_pkg::CauseToken;
          trap_ordinals[u*FlightW +: FlightW] = oldest_ordinal[u*FlightW +: FlightW];
        end else if (collision[u]) begin
          trap_causes[u*4 +: 4] = tw_isa_pkg::CauseCollision;
          trap_ordinals[u*FlightW +: FlightW] = collision_ordinal[u*FlightW +: FlightW];
        end else begin
          trap_causes[u*4 +: 4] = tw_isa_pkg::CauseDeadlock;
          trap_ordinals[u*FlightW +: FlightW] = FlightW'(issued[u*CountW +: CountW]);
        end
      end
    end
  end

  ////////////////////////////////
  // Completion and unit states //
  ////////////////////////////////

  assign quiet = f_quiet && l_quiet && s_quiet;
  assign finished = f_done && (&q_empty) && busy == 4'd0 && quiet;

  // States for the counters. A unit that is not busy has no instruction, or its head waits for a token.
  function automatic logic [3:0] waiting(input logic empty, input logic ready, input logic [1:0] from);
    if (empty) waiting = tw_isa_pkg::StateEmpty;
    else if (!ready) waiting = tw_isa_pkg::StateTokenLoad + 4'(from);
    else waiting = tw_isa_pkg::StateSpace;
  endfunction
  always_comb begin
    states[0 +: 4]  = busy[Load] ? l_state : waiting(q_empty[Load], head_ready[Load], missing[1:0]);
    states[4 +: 4]  = g_working ? tw_isa_pkg::StateBusy : waiting(q_empty[Gemm], head_ready[Gemm], missing[3:2]);
    states[8 +: 4]  = v_working ? tw_isa_pkg::StateBusy : waiting(q_empty[Vector], head_ready[Vector], missing[5:4]);
    states[12 +: 4] = busy[Store] ? s_state : waiting(q_empty[Store], head_ready[Store], missing[7:6]);
    states[16 +: 4] = f_state;
  end

  logic unused;
  assign unused = ^{unused_wgt_read, unused_param_read, unused_guop_read, unused_vuop_read,
                    unused_wgt_write, unused_param_write, unused_guop_write, unused_vuop_write,
                    unit_trap[4], ld_chunk, v_waddr, g_ordinal, v_ordinal, v_read_ordinal, issued};

  ////////////////
  // Assertions //
  ////////////////

  // Units are reset a cycle later than the registers, so their outputs count only when unit_rst_n is set.
  `TW_ASSERT(OneQueue_A, !unit_rst_n || $onehot0(q_push))
  `TW_ASSERT(StartPopsQueue_A, !unit_rst_n || (start & q_empty) == '0)
  `TW_ASSERT(RetireWhileBusy_A, !unit_rst_n || (retire & ~busy) == '0)
  `TW_ASSERT(OneGrant_A, !(f_ar_grant && l_ar_grant))
  `TW_ASSERT(GrantIsAsked_A, !(f_ar_grant && !f_ar_valid) && !(l_ar_grant && !l_ar_valid))
  `TW_ASSERT(OneLoadPort_A, !unit_rst_n || $onehot0(ld_we))

endmodule
