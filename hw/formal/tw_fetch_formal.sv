// The fetch unit's queues where they are used: each beat that was asked for has a place, an instruction goes to one
// queue that has a place, and as many as the command has, no more.
module tw_fetch_formal (
  input logic                           clk_i,
  input logic                           rst_ni,
  input logic                           stop_i,
  input logic                           start_i,
  input logic [tw_cfg_pkg::OffsetBits-1:0] stream_addr_i,
  input logic [tw_cfg_pkg::CountW-1:0]  stream_insns_i,
  input logic                           ar_ready_i,
  input logic                           r_valid_i,
  input logic [tw_cfg_pkg::BusBits-1:0] r_data_i,
  input logic                           r_error_i,
  input logic                           r_last_i,
  input logic [3:0]                     full_i
);

  localparam int unsigned Buffer = tw_cfg_pkg::FetchBufferBeats;

  logic        ar_valid, take, done, quiet;
  logic [7:0]  ar_len, bursts;
  logic [15:0] owed;
  logic [3:0]  push;
  assign take = ar_valid && ar_ready_i;

  tw_fetch u_dut (
    .clk_i, .rst_ni, .stop_i, .start_i, .stream_addr_i, .stream_insns_i, .ar_valid_o(ar_valid), .ar_grant_i(take), .ar_addr_o(),
    .ar_len_o(ar_len), .r_valid_i, .r_data_i, .r_error_i, .r_last_i, .push_o(push), .insn_o(), .word_o(), .last_o(), .full_i, .done_o(done), .held_o(),
    .quiet_o(quiet), .state_o(), .trap_o(), .trap_cause_o(), .ordinal_o(), .trap_behind_o()
  );
  tw_check_memory u_memory (
    .clk_i, .rst_ni, .take_i(take), .len_i(ar_len), .r_valid_i, .r_last_i, .owed_o(owed), .bursts_o(bursts)
  );

  // Instructions of the command that are not handed out yet, with a bit that shows one too many.
  logic [32:0] waiting_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) waiting_q <= '0;
    else if (start_i) waiting_q <= 33'(stream_insns_i);
    else if (push != '0) waiting_q <= waiting_q - 1'b1;
  end

  // Beats of an instruction, or instructions of a beat.
  localparam int unsigned Beats = tw_cfg_pkg::BusBytes < 32 ? 32 / tw_cfg_pkg::BusBytes : 1;
  localparam int unsigned Parts = tw_cfg_pkg::BusBytes > 32 ? tw_cfg_pkg::BusBytes / 32 : 1;
  // Beats that are to come, those to be asked for included.
  logic [39:0] coming, left;
  assign coming = (u_dut.burst_valid ? 40'(u_dut.gen_bursts.u_bursts.beats_q) : 40'd0) + 40'(owed) + 40'(u_dut.u_beats.count_q)
                  + 40'(u_dut.u_beats.read_q) + 40'(u_dut.avail);
  assign left = 40'(u_dut.left_q);

  // For the covers: a whole command of two instructions.
  logic        started_command_q;
  logic [31:0] last_insns_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) started_command_q <= 1'b0;
    else if (start_i) started_command_q <= 1'b1;
    if (start_i) last_insns_q <= 32'(stream_insns_i);
  end

  // Behind a trap all stops until the reset; the instruction that trapped is never handed out.
  logic trapped_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) trapped_q <= 1'b0;
    else if (u_dut.trap_o) trapped_q <= 1'b1;
  end

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  always @(posedge clk_i) begin
    if (!started_q) assume (!rst_ni);
    // A command starts when the one before has ended, and its stream is aligned to instructions.
    assume (!start_i || (done && quiet && !stop_i && stream_addr_i[4:0] == '0));
    if (trapped_q) assume (stop_i);
    // What tw_bursts_formal proves.
    if (u_dut.burst_valid) assume (u_dut.burst_beats != '0 && 32'(u_dut.burst_beats) <= tw_cfg_pkg::FetchBurstBeats
                                   && 40'(u_dut.burst_beats) <= 40'(u_dut.gen_bursts.u_bursts.beats_q)
                                   && u_dut.gen_bursts.u_bursts.ends_q == (40'(u_dut.burst_beats) == 40'(u_dut.gen_bursts.u_bursts.beats_q)));
    if (rst_ni) begin
      Reserved_A: assert (32'(owed) + 32'(u_dut.u_beats.count_q) <= Buffer);
      OneQueue_A: assert ((push & (push - 4'd1)) == '0 && (push & full_i) == '0 && (!stop_i || push == '0));
      NoneTooMany_A: assert (push == '0 || waiting_q != '0);
      Done_A: assert (done == (waiting_q == '0));
      Credits_I: assert (32'(u_dut.free_q) + 32'(owed) + 32'(u_dut.u_beats.count_q) == Buffer);
      Flying_I: assert (32'(u_dut.flying_q) == 32'(owed));
      if (trapped_q) Trapped_I: assert (waiting_q != '0 && !done);
      else Waiting_I: assert (waiting_q == 33'(u_dut.left_q) + 33'(u_dut.insn_valid_q));
      Command_C: cover (done && started_command_q && last_insns_q == 32'd2);
      Ahead_C: cover (push != '0 && bursts != '0);
      Front_I: assert (4'(u_dut.avail) + 4'(u_dut.u_beats.read_q) <= 4'd4);
    end
  end

  // What is to come are the beats of the instructions that are not handed out yet.
  if (Parts == 1) begin : gen_join
    always @(posedge clk_i) begin
      if (rst_ni) Beats_I: assert (coming + 40'(u_dut.gen_join.beat_q) == left * 40'(Beats) && 32'(u_dut.gen_join.beat_q) < Beats);
    end
  end else begin : gen_cut
    always @(posedge clk_i) begin
      if (rst_ni) Parts_I: assert (coming == (left == '0 ? 40'd0 : (left + 40'(u_dut.gen_cut.part_q) + 40'(Parts - 1)) / 40'(Parts)));
    end
  end

endmodule
