`include "tw_fields.svh"

// The accelerator: fetch, load, gemm, vector and store around their memories, ordered by tokens.
module tw_core (
  input  logic        clk_i,
  input  logic        rst_ni,
  // Host registers: reads answer in the same cycle.
  input  logic        reg_valid_i,
  input  logic        reg_write_i,
  input  logic [11:0] reg_addr_i,
  input  logic [31:0] reg_wdata_i,
  output logic [31:0] reg_rdata_o,
  output logic        irq_o,
  // AXI4 read: identifier 0 is fetch's, 1 load's. Data are never refused.
  output logic        ar_valid_o,
  input  logic        ar_ready_i,
  output logic        ar_id_o,
  output logic [tw_cfg_pkg::OffsetBits-1:0] ar_addr_o,
  output logic [7:0]  ar_len_o,
  input  logic        r_valid_i,
  input  logic        r_id_i,
  input  logic [tw_cfg_pkg::BusBits-1:0] r_data_i,
  input  logic [1:0]  r_resp_i,
  input  logic        r_last_i,
  // AXI4 write.
  output logic        aw_valid_o,
  input  logic        aw_ready_i,
  output logic [tw_cfg_pkg::OffsetBits-1:0] aw_addr_o,
  output logic [7:0]  aw_len_o,
  output logic        w_valid_o,
  input  logic        w_ready_i,
  output logic [tw_cfg_pkg::BusBits-1:0] w_data_o,
  output logic [tw_cfg_pkg::BusBytes-1:0] w_strb_o,
  output logic        w_last_o,
  input  logic        b_valid_i,
  input  logic [1:0]  b_resp_i
);

  localparam int unsigned OffsetBits = tw_cfg_pkg::OffsetBits;
  localparam int unsigned BusBits = tw_cfg_pkg::BusBits;
  localparam int unsigned BusBytes = tw_cfg_pkg::BusBytes;
  localparam int unsigned InpBits = tw_cfg_pkg::InpEntryBytes * 8;
  localparam int unsigned WgtBits = tw_cfg_pkg::WgtEntryBytes * 8;
  localparam int unsigned AccBits = tw_cfg_pkg::AccEntryBytes * 8;
  localparam int unsigned OutBits = tw_cfg_pkg::OutEntryBytes * 8;
  // Param is read by entries, or by rows.
  localparam bit Serial = tw_cfg_pkg::VectorSerial != 0;
  localparam int unsigned ParamDepth = Serial ? tw_cfg_pkg::ParamEntries : tw_cfg_pkg::ParamDepth;
  localparam int unsigned ParamBytes = Serial ? tw_cfg_pkg::ParamEntryBytes : tw_isa_pkg::ParamRows * tw_cfg_pkg::ParamEntryBytes;
  localparam int unsigned ParamBits = ParamBytes * 8;
  localparam int unsigned InpW = $clog2(tw_cfg_pkg::InpDepth);
  localparam int unsigned WgtW = $clog2(tw_cfg_pkg::WgtDepth);
  localparam int unsigned AccW = $clog2(tw_cfg_pkg::AccDepth);
  localparam int unsigned OutW = $clog2(tw_cfg_pkg::OutDepth);
  localparam int unsigned ParamW = $clog2(ParamDepth);
  localparam int unsigned GuopW = $clog2(tw_cfg_pkg::GemmUopDepth);
  localparam int unsigned VuopW = $clog2(tw_cfg_pkg::VectorUopDepth);
  localparam int unsigned CountW = tw_cfg_pkg::CountW;
  // Ordinals of instructions that have started and not retired are told apart by so many bits.
  localparam int unsigned FlightW = tw_cfg_pkg::FlightW;
  localparam bit Pack = tw_cfg_pkg::DmaPack != 0;

  // Control.
  logic unit_rst_n, work_rst_n, stop, cmd_start, running, finished, quiet;
  logic [OffsetBits-1:0] stream_addr;
  logic [CountW-1:0] stream_insns;
  logic [tw_cfg_pkg::BaseW-1:0] load_base, store_base;
  logic [OffsetBits-1:0] load_base_addr, load_base_limit, store_base_addr, store_base_limit;
  logic [4:0]   traps, unit_trap;
  logic [19:0]  causes;
  // What each unit does in this cycle; simulations read it to tell whose a stall is.
  logic [19:0]  states /*verilator public_flat_rd*/;
  logic [5*FlightW-1:0] ordinals;
  logic [3:0]   retire, unit_free, takes, start, busy;
  logic [4*CountW-1:0] retired;
  logic [15:0]  retire_push, need;
  // What fetch hands out: to which queue, which word of it, and how many instructions before.
  logic [3:0]   q_push, q_word;
  logic         q_last;
  logic [CountW-1:0] f_ordinal;

  tw_regs u_regs (
    .clk_i, .rst_ni, .reg_valid_i, .reg_write_i, .reg_addr_i, .reg_wdata_i, .reg_rdata_o, .irq_o,
    .load_base_i(load_base), .load_base_addr_o(load_base_addr), .load_base_limit_o(load_base_limit),
    .store_base_i(store_base), .store_base_addr_o(store_base_addr), .store_base_limit_o(store_base_limit), .start_o(cmd_start), .stream_addr_o(stream_addr),
    .stream_insns_o(stream_insns), .running_o(running), .finished_i(finished), .unit_rst_no(unit_rst_n), .stop_o(stop),
    .quiet_i(quiet), .trap_i(traps), .trap_cause_i(causes), .trap_ordinal_i(ordinals), .retire_i(retire), .fetched_i(f_ordinal), .retired_o(retired), .states_i(states)
  );

  // Tokens and ordinals begin anew with each command.
  assign work_rst_n = unit_rst_n && !cmd_start;

  // Fetch and queues.
  logic         f_ar_valid, f_ar_grant, l_ar_valid, l_ar_grant, f_done, f_held, f_quiet, f_trap;
  logic [OffsetBits-1:0] f_ar_addr, l_ar_addr;
  logic [7:0]   f_ar_len, l_ar_len;
  logic [3:0]   q_full, q_empty, q_valid, head_ready, head_valid;
  logic         l_hold, g_hold, v_hold, s_hold;
  logic [7:0]   missing;
  logic [255:0] f_insn;
  logic [3:0]   f_cause, f_state;
  logic         f_behind;

  tw_fetch u_fetch (
    .clk_i, .rst_ni(unit_rst_n), .stop_i(stop), .start_i(cmd_start), .stream_addr_i(stream_addr),
    .stream_insns_i(stream_insns), .ar_valid_o(f_ar_valid), .ar_grant_i(f_ar_grant), .ar_addr_o(f_ar_addr),
    .ar_len_o(f_ar_len), .r_valid_i(r_valid_i && !r_id_i), .r_data_i, .r_error_i(r_resp_i != 2'd0), .r_last_i,
    .push_o(q_push), .insn_o(f_insn), .word_o(q_word), .last_o(q_last), .full_i(q_full), .done_o(f_done), .held_o(f_held), .quiet_o(f_quiet),
    .state_o(f_state), .trap_o(f_trap), .trap_cause_o(f_cause), .ordinal_o(f_ordinal), .trap_behind_o(f_behind)
  );

  localparam int unsigned LoadQ = tw_cfg_pkg::LoadBodyW + 8;
  localparam int unsigned GemmQ = tw_cfg_pkg::GemmBodyW + 8;
  localparam int unsigned VectorQ = tw_cfg_pkg::VectorBodyW + 8;
  localparam int unsigned StoreQ = tw_cfg_pkg::StoreBodyW + 8;
  logic [LoadQ-1:0]   load_head;
  logic [GemmQ-1:0]   gemm_head;
  logic [VectorQ-1:0] vector_head;
  logic [StoreQ-1:0]  store_head;

  tw_queue #(.BodyW(tw_cfg_pkg::LoadBodyW)) u_load_queue (
    .clk_i, .rst_ni(unit_rst_n), .push_i(q_push[0]), .insn_i(f_insn), .word_i(q_word), .last_i(q_last), .pop_i(start[0]),
    .hold_i(l_hold), .head_o(load_head), .valid_o(q_valid[0]), .empty_o(q_empty[0]), .full_o(q_full[0])
  );
  tw_queue #(.BodyW(tw_cfg_pkg::GemmBodyW)) u_gemm_queue (
    .clk_i, .rst_ni(unit_rst_n), .push_i(q_push[1]), .insn_i(f_insn), .word_i(q_word), .last_i(q_last), .pop_i(start[1]),
    .hold_i(g_hold), .head_o(gemm_head), .valid_o(q_valid[1]), .empty_o(q_empty[1]), .full_o(q_full[1])
  );
  tw_queue #(.BodyW(tw_cfg_pkg::VectorBodyW)) u_vector_queue (
    .clk_i, .rst_ni(unit_rst_n), .push_i(q_push[2]), .insn_i(f_insn), .word_i(q_word), .last_i(q_last), .pop_i(start[2]),
    .hold_i(v_hold), .head_o(vector_head), .valid_o(q_valid[2]), .empty_o(q_empty[2]), .full_o(q_full[2])
  );
  tw_queue #(.BodyW(tw_cfg_pkg::StoreBodyW)) u_store_queue (
    .clk_i, .rst_ni(unit_rst_n), .push_i(q_push[3]), .insn_i(f_insn), .word_i(q_word), .last_i(q_last), .pop_i(start[3]),
    .hold_i(s_hold), .head_o(store_head), .valid_o(q_valid[3]), .empty_o(q_empty[3]), .full_o(q_full[3])
  );

  // A head that does not stand there yet misses nothing.
  assign need = {store_head[3:0] & {4{q_valid[3]}}, vector_head[3:0] & {4{q_valid[2]}}, gemm_head[3:0] & {4{q_valid[1]}},
                 load_head[3:0] & {4{q_valid[0]}}};
  assign head_valid = q_valid & head_ready;
  // What is stopped starts nothing; the tokens, of which nothing hangs then, need not know.
  assign takes = head_valid & unit_free;
  assign start = takes & {4{!stop}};
  logic [3:0] overflow;
  tw_tokens #(.Width(tw_cfg_pkg::TokenBits)) u_tokens (
    .clk_i, .rst_ni(work_rst_n), .need_i(need), .ready_o(head_ready), .missing_o(missing), .start_i(takes),
    .retire_i(retire), .push_i(retire_push), .overflow_o(overflow)
  );

  // Bases of the heads.
  logic [tw_cfg_pkg::LoadBodyW-1:0]  load_body;
  logic [tw_cfg_pkg::StoreBodyW-1:0] store_body;
  assign load_body  = load_head[LoadQ-1:8];
  assign store_body = store_head[StoreQ-1:8];
  assign load_base  = `TW_FIELD(load, base, load_body);
  assign store_base = `TW_FIELD(store, base, store_body);

  // Load.
  logic [6:0]  ld_we;
  logic [tw_cfg_pkg::EntryW-1:0] ld_entry;
  logic [15:0] ld_chunk;
  logic [BusBits-1:0]  ld_data;
  logic [BusBytes-1:0] ld_valid, ld_enable;
  logic        ld_tail, ld_all, l_quiet;
  logic [7:0]  ld_pad;
  logic [3:0]  l_state, l_cause, s_state, s_cause;
  logic [31:0] g_ordinal, v_ordinal, v_read_ordinal;
  logic        l_oldest, s_oldest;
  logic [1:0]  g_acc_older;

  tw_load u_load (
    .clk_i, .rst_ni(work_rst_n), .stop_i(stop), .insn_valid_i(head_valid[0]), .insn_i(load_head[LoadQ-1:8]),
    .insn_push_i(load_head[7:4]), .insn_free_o(unit_free[0]), .insn_hold_o(l_hold), .base_addr_i(load_base_addr), .base_limit_i(load_base_limit),
    .ar_valid_o(l_ar_valid), .ar_grant_i(l_ar_grant), .ar_addr_o(l_ar_addr), .ar_len_o(l_ar_len),
    .r_valid_i(r_valid_i && r_id_i), .r_data_i, .r_error_i(r_resp_i != 2'd0), .r_last_i,
    .ld_we_o(ld_we), .ld_entry_o(ld_entry), .ld_chunk_o(ld_chunk), .ld_data_o(ld_data), .ld_valid_o(ld_valid),
    .ld_enable_o(ld_enable), .ld_tail_o(ld_tail), .ld_all_o(ld_all), .ld_pad_o(ld_pad),
    .retire_o(retire[0]), .retire_push_o(retire_push[3:0]), .busy_o(busy[0]), .quiet_o(l_quiet), .state_o(l_state),
    .trap_o(unit_trap[0]), .trap_cause_o(l_cause), .trap_oldest_o(l_oldest)
  );

  // The bus's read requests: fetch and load in turn, beginning after the last granted.
  tw_turns u_turns (
    .clk_i, .rst_ni(unit_rst_n), .valid_i({l_ar_valid, f_ar_valid}), .ready_i(ar_ready_i), .grant_o({l_ar_grant, f_ar_grant}),
    .second_o(ar_id_o)
  );
  assign ar_valid_o = f_ar_valid || l_ar_valid;
  assign ar_addr_o  = ar_id_o ? l_ar_addr : f_ar_addr;
  assign ar_len_o   = ar_id_o ? l_ar_len : f_ar_len;

  // Gemm.
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
    .clk_i, .rst_ni(work_rst_n), .stop_i(stop), .insn_valid_i(head_valid[1]), .insn_i(gemm_head[GemmQ-1:8]),
    .insn_push_i(gemm_head[7:4]), .insn_free_o(unit_free[1]), .insn_hold_o(g_hold), .uop_re_o(guop_re), .uop_addr_o(guop_addr),
    .uop_data_i(guop_data), .inp_re_o(g_inp_re), .inp_addr_o(g_inp_addr), .inp_data_i(g_inp_data),
    .wgt_re_o(g_wgt_re), .wgt_addr_o(g_wgt_addr), .wgt_data_i(g_wgt_data), .acc_re_o(g_acc_re),
    .acc_raddr_o(g_acc_raddr), .acc_rdata_i(g_acc_rdata), .acc_we_o(g_acc_we), .acc_waddr_o(g_acc_waddr),
    .acc_wdata_o(g_acc_wdata), .retire_o(retire[1]), .retire_push_o(retire_push[7:4]), .busy_o(busy[1]),
    .working_o(g_working), .trap_o(unit_trap[1]), .trap_ordinal_o(g_ordinal), .acc_older_o(g_acc_older)
  );

  // Vector.
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
      .clk_i, .rst_ni(work_rst_n), .stop_i(stop), .insn_valid_i(head_valid[2]), .insn_i(vector_head[VectorQ-1:8]),
      .insn_push_i(vector_head[7:4]), .insn_free_o(unit_free[2]), .insn_hold_o(v_hold), .uop_re_o(vuop_re), .uop_addr_o(vuop_addr),
      .uop_data_i(vuop_data), .acc_re_o(v_acc_re), .acc_raddr_o(v_acc_raddr), .acc_rdata_i(v_acc_rdata),
      .out_re_o(v_out_re), .out_raddr_o(v_out_raddr), .out_rdata_i(v_out_rdata), .inp_re_o(v_inp_re),
      .inp_raddr_o(v_inp_raddr), .inp_rdata_i(v_inp_rdata), .param_re_o(v_param_re), .param_addr_o(v_param_addr),
      .param_data_i(v_param_data), .acc_we_o(v_acc_we), .out_we_o(v_out_we), .inp_we_o(v_inp_we), .waddr_o(v_waddr),
      .wdata32_o(v_wdata32), .wdata8_o(v_wdata8), .retire_o(retire[2]), .retire_push_o(retire_push[11:8]),
      .busy_o(busy[2]), .working_o(v_working), .trap_o(unit_trap[2]), .trap_ordinal_o(v_ordinal)
    );
    assign v_read_ordinal = v_ordinal;
  end else begin : gen_vector
    tw_vector u_vector (
      .clk_i, .rst_ni(work_rst_n), .stop_i(stop), .insn_valid_i(head_valid[2]), .insn_i(vector_head[VectorQ-1:8]),
      .insn_push_i(vector_head[7:4]), .insn_free_o(unit_free[2]), .uop_re_o(vuop_re), .uop_addr_o(vuop_addr),
      .uop_data_i(vuop_data), .acc_re_o(v_acc_re), .acc_raddr_o(v_acc_raddr), .acc_rdata_i(v_acc_rdata),
      .out_re_o(v_out_re), .out_raddr_o(v_out_raddr), .out_rdata_i(v_out_rdata), .inp_re_o(v_inp_re),
      .inp_raddr_o(v_inp_raddr), .inp_rdata_i(v_inp_rdata), .param_re_o(v_param_re), .param_addr_o(v_param_addr),
      .param_data_i(v_param_data), .acc_we_o(v_acc_we), .out_we_o(v_out_we), .inp_we_o(v_inp_we), .waddr_o(v_waddr),
      .wdata32_o(v_wdata32), .wdata8_o(v_wdata8), .retire_o(retire[2]), .retire_push_o(retire_push[11:8]),
      .busy_o(busy[2]), .working_o(v_working), .trap_o(unit_trap[2]), .trap_ordinal_o(v_ordinal),
      .read_ordinal_o(v_read_ordinal)
    );
    assign v_hold = 1'b0;
  end

  // Store.
  logic s_inp_re, s_out_re, s_quiet;
  logic [tw_cfg_pkg::EntryW-1:0] s_raddr;
  logic [InpBits-1:0] s_inp_data;
  logic [OutBits-1:0] s_out_data;

  tw_store u_store (
    .clk_i, .rst_ni(work_rst_n), .stop_i(stop), .insn_valid_i(head_valid[3]), .insn_i(store_head[StoreQ-1:8]),
    .insn_push_i(store_head[7:4]), .insn_free_o(unit_free[3]), .insn_hold_o(s_hold), .base_addr_i(store_base_addr), .base_limit_i(store_base_limit),
    .inp_re_o(s_inp_re), .out_re_o(s_out_re), .raddr_o(s_raddr), .inp_rdata_i(s_inp_data), .out_rdata_i(s_out_data),
    .aw_valid_o, .aw_ready_i, .aw_addr_o, .aw_len_o, .w_valid_o, .w_ready_i, .w_data_o, .w_strb_o, .w_last_o,
    .b_valid_i, .b_error_i(b_resp_i != 2'd0), .retire_o(retire[3]), .retire_push_o(retire_push[15:12]), .busy_o(busy[3]),
    .quiet_o(s_quiet), .state_o(s_state), .trap_o(unit_trap[3]), .trap_cause_o(s_cause), .trap_oldest_o(s_oldest)
  );

  // Memories.
  logic [6:0] ld_coll;
  logic [1:0] wcoll_acc;
  logic [3:0] rcoll_inp;
  logic       wcoll_out;
  logic [2:0] rcoll_acc, rcoll_out;
  logic       wcoll_inp;
  logic       unused_r1, unused_r2, unused_r3, unused_r4, unused_w1, unused_w2, unused_w3, unused_w4;

  // Chunk numbers in each memory's own width.
  localparam int unsigned ChInp = tw_cfg_pkg::InpEntryBytes / tw_cfg_pkg::InpChunkBytes;
  localparam int unsigned ChWgt = tw_cfg_pkg::WgtEntryBytes / tw_cfg_pkg::WgtChunkBytes;
  localparam int unsigned ChAcc = tw_cfg_pkg::AccEntryBytes / tw_cfg_pkg::AccChunkBytes;
  localparam int unsigned ChOut = tw_cfg_pkg::OutEntryBytes / tw_cfg_pkg::OutChunkBytes;
  localparam int unsigned ChParam = ParamBytes / tw_cfg_pkg::ParamChunkBytes;
  localparam int unsigned ChGuop = tw_cfg_pkg::GuopEntryBytes / tw_cfg_pkg::GuopChunkBytes;
  localparam int unsigned ChVuop = tw_cfg_pkg::VuopEntryBytes / tw_cfg_pkg::VuopChunkBytes;
  logic [(ChInp > 1 ? $clog2(ChInp) : 1)-1:0] chunk_inp;
  logic [(ChWgt > 1 ? $clog2(ChWgt) : 1)-1:0] chunk_wgt;
  logic [(ChAcc > 1 ? $clog2(ChAcc) : 1)-1:0] chunk_acc;
  logic [(ChOut > 1 ? $clog2(ChOut) : 1)-1:0] chunk_out;
  logic [(ChParam > 1 ? $clog2(ChParam) : 1)-1:0] chunk_param;
  logic [(ChGuop > 1 ? $clog2(ChGuop) : 1)-1:0] chunk_guop;
  logic [(ChVuop > 1 ? $clog2(ChVuop) : 1)-1:0] chunk_vuop;
  assign chunk_inp = $bits(chunk_inp)'(ld_chunk);
  assign chunk_wgt = $bits(chunk_wgt)'(ld_chunk);
  assign chunk_acc = $bits(chunk_acc)'(ld_chunk);
  assign chunk_out = $bits(chunk_out)'(ld_chunk);
  assign chunk_param = $bits(chunk_param)'(ld_chunk);
  assign chunk_guop = $bits(chunk_guop)'(ld_chunk);
  assign chunk_vuop = $bits(chunk_vuop)'(ld_chunk);

  // Vector reaches inp only where its rows have out's size; otherwise its ports are dead.
  logic [4*InpBits-1:0] inp_rdata;
  tw_spad #(
    .Depth(tw_cfg_pkg::InpDepth), .Banks(tw_cfg_pkg::InpBanks), .EntryBytes(tw_cfg_pkg::InpEntryBytes),
    .ChunkBytes(tw_cfg_pkg::InpChunkBytes), .GroupBytes(tw_cfg_pkg::InpEntryBytes), .ByteEnable(Pack), .Readers(4), .Writers(1)
  ) u_inp (
    .clk_i, .ld_we_i(ld_we[0]), .ld_addr_i(InpW'(ld_entry)), .ld_chunk_i(chunk_inp), .ld_data_i(ld_data[tw_cfg_pkg::InpChunkBytes*8-1:0]),
    .ld_valid_i(ld_valid[tw_cfg_pkg::InpChunkBytes-1:0]), .ld_enable_i(ld_enable[tw_cfg_pkg::InpChunkBytes-1:0]),
    .ld_tail_i(ld_tail), .ld_all_i(ld_all), .ld_pad_i(ld_pad), .ld_collision_o(ld_coll[0]),
    .re_i({s_inp_re, v_inp_re, g_inp_re}), .raddr_i({InpW'(s_raddr), v_inp_raddr, g_inp_addr}), .rdata_o(inp_rdata),
    .rcollision_o(rcoll_inp), .we_i(v_inp_we), .waddr_i(InpW'(v_waddr)), .wdata_i(InpBits'(v_wdata8)), .wcollision_o(wcoll_inp)
  );
  assign g_inp_data  = inp_rdata[0 +: InpBits];
  assign v_inp_rdata = {OutBits'(inp_rdata[2*InpBits +: InpBits]), OutBits'(inp_rdata[InpBits +: InpBits])};
  assign s_inp_data  = inp_rdata[3*InpBits +: InpBits];

  tw_spad #(
    .Depth(tw_cfg_pkg::WgtDepth), .EntryBytes(tw_cfg_pkg::WgtEntryBytes), .ChunkBytes(tw_cfg_pkg::WgtChunkBytes),
    .GroupBytes(tw_cfg_pkg::WgtEntryBytes)
  ) u_wgt (
    .clk_i, .ld_we_i(ld_we[1]), .ld_addr_i(WgtW'(ld_entry)), .ld_chunk_i(chunk_wgt), .ld_data_i(ld_data[tw_cfg_pkg::WgtChunkBytes*8-1:0]),
    .ld_valid_i(ld_valid[tw_cfg_pkg::WgtChunkBytes-1:0]), .ld_enable_i('1), .ld_tail_i(ld_tail), .ld_all_i(ld_all),
    .ld_pad_i(ld_pad), .ld_collision_o(ld_coll[1]), .re_i(g_wgt_re), .raddr_i(g_wgt_addr), .rdata_o(g_wgt_data),
    .rcollision_o(unused_r1), .we_i(1'b0), .waddr_i('0), .wdata_i('0), .wcollision_o(unused_w1)
  );

  logic [3*AccBits-1:0] acc_rdata;
  tw_spad #(
    .Depth(tw_cfg_pkg::AccDepth), .Banks(tw_cfg_pkg::AccBanks), .EntryBytes(tw_cfg_pkg::AccEntryBytes),
    .ChunkBytes(tw_cfg_pkg::AccChunkBytes), .GroupBytes(tw_cfg_pkg::AccEntryBytes), .ElementBytes(4), .Readers(3), .Writers(2)
  ) u_acc (
    .clk_i, .ld_we_i(ld_we[2]), .ld_addr_i(AccW'(ld_entry)), .ld_chunk_i(chunk_acc), .ld_data_i(ld_data[tw_cfg_pkg::AccChunkBytes*8-1:0]),
    .ld_valid_i(ld_valid[tw_cfg_pkg::AccChunkBytes-1:0]), .ld_enable_i('1), .ld_tail_i(ld_tail), .ld_all_i(ld_all),
    .ld_pad_i(ld_pad), .ld_collision_o(ld_coll[2]), .re_i({v_acc_re, g_acc_re}), .raddr_i({v_acc_raddr, g_acc_raddr}),
    .rdata_o(acc_rdata), .rcollision_o(rcoll_acc), .we_i({v_acc_we, g_acc_we}), .waddr_i({AccW'(v_waddr), g_acc_waddr}),
    .wdata_i({v_wdata32, g_acc_wdata}), .wcollision_o(wcoll_acc)
  );
  assign g_acc_rdata = acc_rdata[0 +: AccBits];
  assign v_acc_rdata = acc_rdata[AccBits +: 2*AccBits];

  logic [3*OutBits-1:0] out_rdata;
  tw_spad #(
    .Depth(tw_cfg_pkg::OutDepth), .Banks(tw_cfg_pkg::OutBanks), .EntryBytes(tw_cfg_pkg::OutEntryBytes),
    .ChunkBytes(tw_cfg_pkg::OutChunkBytes), .GroupBytes(tw_cfg_pkg::OutEntryBytes), .ByteEnable(Pack), .Readers(3), .Writers(1)
  ) u_out (
    .clk_i, .ld_we_i(ld_we[3]), .ld_addr_i(OutW'(ld_entry)), .ld_chunk_i(chunk_out), .ld_data_i(ld_data[tw_cfg_pkg::OutChunkBytes*8-1:0]),
    .ld_valid_i(ld_valid[tw_cfg_pkg::OutChunkBytes-1:0]), .ld_enable_i(ld_enable[tw_cfg_pkg::OutChunkBytes-1:0]),
    .ld_tail_i(ld_tail), .ld_all_i(ld_all), .ld_pad_i(ld_pad), .ld_collision_o(ld_coll[3]),
    .re_i({s_out_re, v_out_re}), .raddr_i({OutW'(s_raddr), v_out_raddr}), .rdata_o(out_rdata),
    .rcollision_o(rcoll_out), .we_i(v_out_we), .waddr_i(OutW'(v_waddr)), .wdata_i(v_wdata8), .wcollision_o(wcoll_out)
  );
  assign v_out_rdata = out_rdata[0 +: 2*OutBits];
  assign s_out_data  = out_rdata[2*OutBits +: OutBits];

  tw_spad #(
    .Depth(ParamDepth), .EntryBytes(ParamBytes), .ChunkBytes(tw_cfg_pkg::ParamChunkBytes),
    .GroupBytes(tw_cfg_pkg::ParamEntryBytes)
  ) u_param (
    .clk_i, .ld_we_i(ld_we[4]), .ld_addr_i(ParamW'(ld_entry)), .ld_chunk_i(chunk_param), .ld_data_i(ld_data[tw_cfg_pkg::ParamChunkBytes*8-1:0]),
    .ld_valid_i(ld_valid[tw_cfg_pkg::ParamChunkBytes-1:0]), .ld_enable_i('1), .ld_tail_i(ld_tail), .ld_all_i(ld_all),
    .ld_pad_i(ld_pad), .ld_collision_o(ld_coll[4]), .re_i(v_param_re), .raddr_i(v_param_addr), .rdata_o(v_param_data),
    .rcollision_o(unused_r2), .we_i(1'b0), .waddr_i('0), .wdata_i('0), .wcollision_o(unused_w2)
  );

  tw_spad #(
    .Depth(tw_cfg_pkg::GemmUopDepth), .EntryBytes(tw_cfg_pkg::GuopEntryBytes), .ChunkBytes(tw_cfg_pkg::GuopChunkBytes),
    .GroupBytes(tw_cfg_pkg::GuopEntryBytes)
  ) u_guop (
    .clk_i, .ld_we_i(ld_we[5]), .ld_addr_i(GuopW'(ld_entry)), .ld_chunk_i(chunk_guop), .ld_data_i(ld_data[tw_cfg_pkg::GuopChunkBytes*8-1:0]),
    .ld_valid_i(ld_valid[tw_cfg_pkg::GuopChunkBytes-1:0]), .ld_enable_i('1), .ld_tail_i(ld_tail), .ld_all_i(ld_all),
    .ld_pad_i(ld_pad), .ld_collision_o(ld_coll[5]), .re_i(guop_re), .raddr_i(guop_addr), .rdata_o(guop_data),
    .rcollision_o(unused_r3), .we_i(1'b0), .waddr_i('0), .wdata_i('0), .wcollision_o(unused_w3)
  );

  tw_spad #(
    .Depth(tw_cfg_pkg::VectorUopDepth), .EntryBytes(tw_cfg_pkg::VuopEntryBytes), .ChunkBytes(tw_cfg_pkg::VuopChunkBytes),
    .GroupBytes(tw_cfg_pkg::VuopEntryBytes)
  ) u_vuop (
    .clk_i, .ld_we_i(ld_we[6]), .ld_addr_i(VuopW'(ld_entry)), .ld_chunk_i(chunk_vuop), .ld_data_i(ld_data[tw_cfg_pkg::VuopChunkBytes*8-1:0]),
    .ld_valid_i(ld_valid[tw_cfg_pkg::VuopChunkBytes-1:0]), .ld_enable_i('1), .ld_tail_i(ld_tail), .ld_all_i(ld_all),
    .ld_pad_i(ld_pad), .ld_collision_o(ld_coll[6]), .re_i(vuop_re), .raddr_i(vuop_addr), .rdata_o(vuop_data),
    .rcollision_o(unused_r4), .we_i(1'b0), .waddr_i('0), .wdata_i('0), .wcollision_o(unused_w4)
  );

  // Collisions, by the unit of lowest number that takes part.
  logic [3:0] collision;
  assign collision[0] = |ld_coll;
  assign collision[1] = rcoll_inp[0] || rcoll_acc[0] || wcoll_acc[0];
  assign collision[2] = (|rcoll_inp[2:1]) || (|rcoll_acc[2:1]) || (|rcoll_out[1:0]) || wcoll_acc[1] || wcoll_out || wcoll_inp;
  assign collision[3] = rcoll_inp[3] || rcoll_out[2];

  // Deadlock: nobody can start, nothing is under way, for 16 cycles.
  logic [3:0] waits;
  logic       stuck;
  logic [3:0] stuck_q;
  logic       deadlock;
  assign waits = ~q_empty & ~head_ready;
  assign stuck = running && !stop && quiet && (busy == 4'd0) && ((q_empty | waits) == 4'hf) && (waits != 4'd0) && (f_done || f_held);
  assign deadlock = stuck && stuck_q == 4'd15;
  always_ff @(posedge clk_i) begin
    if (!work_rst_n || !stuck) stuck_q <= '0;
    else stuck_q <= stuck_q + 1'b1;
  end

  // Traps of a unit: its own, then token overflow, then collision, then deadlock.
  logic [4*CountW-1:0] issued;
  for (genvar u = 0; u < 4; u++) begin : gen_issued
    logic [CountW-1:0] issued_q /*verilator public_flat_rd*/;
    always_ff @(posedge clk_i) begin
      if (!work_rst_n) issued_q <= '0;
      else if (start[u]) issued_q <= issued_q + 1'b1;
    end
    assign issued[u*CountW +: CountW] = issued_q;
  end

  logic [4*FlightW-1:0] oldest;
  for (genvar u = 0; u < 4; u++) begin : gen_oldest
    assign oldest[u*FlightW +: FlightW] = FlightW'(retired[u*CountW +: CountW]);
  end

  // The instruction of a unit that collides: the oldest unfinished one writes, younger ones may read.
  logic [4*FlightW-1:0] collided;
  always_comb begin
    collided = 'x;
    if (|collision) begin
      collided = oldest;
      if (!wcoll_acc[0]) collided[FlightW +: FlightW] = rcoll_acc[0] ? oldest[FlightW +: FlightW] + FlightW'(g_acc_older) : FlightW'(g_ordinal);
      if (!(wcoll_acc[1] || wcoll_out || wcoll_inp)) collided[2*FlightW +: FlightW] = FlightW'(v_read_ordinal);
    end
  end

  logic [3:0] lowest_wait;
  assign lowest_wait = waits & (~waits + 4'd1);
  logic [4*FlightW-1:0] own_ordinal;
  logic [15:0]  own_cause;
  always_comb begin
    own_ordinal = 'x;
    if (|unit_trap[3:0]) begin
      // A load whose last row was written in the cycle before retires in this one.
      own_ordinal[0 +: FlightW] = l_oldest ? oldest[0 +: FlightW] + FlightW'(retire[0]) : FlightW'(issued[0 +: CountW]) - 1'b1;
      own_ordinal[FlightW +: FlightW] = FlightW'(g_ordinal);
      own_ordinal[2*FlightW +: FlightW] = FlightW'(v_ordinal);
      own_ordinal[3*FlightW +: FlightW] = s_oldest ? oldest[3*FlightW +: FlightW] : FlightW'(issued[3*CountW +: CountW]) - 1'b1;
    end
  end
  assign own_cause   = {s_cause, tw_isa_pkg::CauseScratchpad, tw_isa_pkg::CauseScratchpad, l_cause};
  assign unit_trap[4] = f_trap;
  assign traps = {f_trap, unit_trap[3:0] | overflow | collision | (deadlock ? lowest_wait : 4'd0)};
  always_comb begin
    causes = 'x;
    ordinals = 'x;
    if (|traps) begin
      causes[16 +: 4] = f_cause;
      ordinals[4*FlightW +: FlightW] = FlightW'(f_ordinal) + FlightW'(f_behind);
      for (int unsigned u = 0; u < 4; u++) begin
        if (unit_trap[u]) begin
          causes[u*4 +: 4] = own_cause[u*4 +: 4];
          ordinals[u*FlightW +: FlightW] = own_ordinal[u*FlightW +: FlightW];
        end else if (overflow[u]) begin
          causes[u*4 +: 4] = tw_isa_pkg::CauseToken;
          ordinals[u*FlightW +: FlightW] = oldest[u*FlightW +: FlightW];
        end else if (collision[u]) begin
          causes[u*4 +: 4] = tw_isa_pkg::CauseCollision;
          ordinals[u*FlightW +: FlightW] = collided[u*FlightW +: FlightW];
        end else begin
          causes[u*4 +: 4] = tw_isa_pkg::CauseDeadlock;
          ordinals[u*FlightW +: FlightW] = FlightW'(issued[u*CountW +: CountW]);
        end
      end
    end
  end

  assign quiet = f_quiet && l_quiet && s_quiet;
  assign finished = f_done && (&q_empty) && busy == 4'd0 && quiet;

  // States for the counters: a unit without work of its own waits for its head's tokens or has none.
  function automatic logic [3:0] waiting(input logic empty, input logic ready, input logic [1:0] from);
    if (empty) waiting = tw_isa_pkg::StateEmpty;
    else if (!ready) waiting = tw_isa_pkg::StateTokenLoad + 4'(from);
    else waiting = tw_isa_pkg::StateSpace;
  endfunction
  always_comb begin
    states[0 +: 4]  = busy[0] ? l_state : waiting(q_empty[0], head_ready[0], missing[1:0]);
    states[4 +: 4]  = g_working ? tw_isa_pkg::StateBusy : waiting(q_empty[1], head_ready[1], missing[3:2]);
    states[8 +: 4]  = v_working ? tw_isa_pkg::StateBusy : waiting(q_empty[2], head_ready[2], missing[5:4]);
    states[12 +: 4] = busy[3] ? s_state : waiting(q_empty[3], head_ready[3], missing[7:6]);
    states[16 +: 4] = f_state;
  end

  logic unused;
  assign unused = ^{unused_r1, unused_r2, unused_r3, unused_r4, unused_w1, unused_w2, unused_w3, unused_w4,
                    unit_trap[4], ld_chunk, v_waddr, g_ordinal, v_ordinal, v_read_ordinal, issued};

endmodule
