`include "tw_fields.svh"

// The load unit's queues where they are used: whatever instructions come and whenever the memory answers, none
// overflows, none gives what it does not have, and each beat that was asked for has a place.
module tw_load_formal (
  input logic                           clk_i,
  input logic                           rst_ni,
  input logic                           stop_i,
  input logic                           insn_valid_i,
  input logic [tw_cfg_pkg::LoadBodyW-1:0] insn_i,
  input logic [3:0]                     insn_push_i,
  input logic [tw_cfg_pkg::OffsetBits-1:0] base_addr_i,
  input logic [tw_cfg_pkg::OffsetBits-1:0] base_limit_i,
  input logic                           ar_ready_i,
  input logic                           r_valid_i,
  input logic [tw_cfg_pkg::BusBits-1:0] r_data_i,
  input logic                           r_error_i,
  input logic                           r_last_i
);

  logic        ar_valid, take;
  logic [7:0]  ar_len, bursts;
  logic [15:0] owed;
  assign take = ar_valid && ar_ready_i;

  tw_load u_dut (
    .clk_i, .rst_ni, .stop_i, .insn_valid_i, .insn_i, .insn_push_i, .insn_free_o(), .insn_hold_o(), .base_addr_i, .base_limit_i,
    .ar_valid_o(ar_valid), .ar_grant_i(take), .ar_addr_o(), .ar_len_o(ar_len), .r_valid_i, .r_data_i, .r_error_i, .r_last_i,
    .ld_we_o(), .ld_entry_o(), .ld_chunk_o(), .ld_data_o(), .ld_valid_o(), .ld_enable_o(), .ld_tail_o(), .ld_all_o(),
    .ld_pad_o(), .retire_o(), .retire_push_o(), .busy_o(), .quiet_o(), .state_o(), .trap_o(), .trap_cause_o(), .trap_oldest_o()
  );
  tw_check_memory u_memory (
    .clk_i, .rst_ni, .take_i(take), .len_i(ar_len), .r_valid_i, .r_last_i, .owed_o(owed), .bursts_o(bursts)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  always @(posedge clk_i) begin
    if (!started_q) assume (!rst_ni);
    // What tw_bursts_formal proves of rows with bytes in them, and the decoder lets no others pass.
    if (u_dut.burst_valid) assume (u_dut.burst_beats != '0 && 32'(u_dut.burst_beats) <= tw_cfg_pkg::MaxBurstBeats);
    if (rst_ni) begin
      Reserved_A: assert (32'(owed) + 32'(u_dut.u_buffer.count_q) <= tw_cfg_pkg::LoadBufferBeats);
      Outstanding_A: assert (32'(bursts) <= tw_cfg_pkg::Outstanding);
      Credits_I: assert (32'(u_dut.free_q) + 32'(owed) + 32'(u_dut.u_buffer.count_q) == tw_cfg_pkg::LoadBufferBeats);
      Bursts_I: assert (32'(u_dut.outstanding_q) == 32'(bursts));
      Front_I: assert (4'(u_dut.avail) + 4'(u_dut.u_buffer.read_q) <= 4'd4);
      Queues_I: assert (32'(u_dut.gen_contexts.u_contexts.count_q) <= tw_cfg_pkg::LoadsUnderWay && 32'(u_dut.u_row_queue.count_q) <= tw_cfg_pkg::LoadRows
                        && 32'(u_dut.u_requests.count_q) <= tw_cfg_pkg::LoadRequests);
      Ahead_C: cover (32'(bursts) >= 32'd2 && u_dut.avail != '0);
      Full_C: cover (u_dut.burst_valid && !u_dut.room && owed != '0);
    end
  end

endmodule
