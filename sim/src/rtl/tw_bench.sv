// The accelerator with registers for the memory's answers. The bench sets their inputs a cycle ahead, so that all
// outputs of the design depend only on registers and a cycle needs only one evaluation. The memory takes every request
// immediately or, with TW_STALLS, when a pseudo-random bit of its channel allows it.
module tw_bench (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        reg_valid_i,
  input  logic        reg_write_i,
  input  logic [11:0] reg_addr_i,
  input  logic [31:0] reg_wdata_i,
  output logic [31:0] reg_rdata_o,
  output logic        irq_o,
  output logic        ar_valid_o,
  output logic        ar_id_o,
  output logic [tw_cfg_pkg::OffsetBits-1:0] ar_addr_o,
  output logic [7:0]  ar_len_o,
  output logic        aw_valid_o,
  output logic [tw_cfg_pkg::OffsetBits-1:0] aw_addr_o,
  output logic [7:0]  aw_len_o,
  output logic        w_valid_o,
  output logic [tw_cfg_pkg::BusBits-1:0] w_data_o,
  output logic [tw_cfg_pkg::BusBytes-1:0] w_strb_o,
  output logic        w_last_o,
  // Inputs of the next cycle.
  input  logic        next_r_valid_i,
  input  logic        next_r_id_i,
  input  logic [tw_cfg_pkg::BusBits-1:0] next_r_data_i,
  input  logic [1:0]  next_r_resp_i,
  input  logic        next_r_last_i,
  input  logic        next_w_ready_i,
  input  logic        next_b_valid_i,
  input  logic [1:0]  next_b_resp_i
);

  logic       r_valid_q, r_id_q, r_last_q, w_ready_q, b_valid_q;
  logic [1:0] r_resp_q, b_resp_q;
  logic [tw_cfg_pkg::BusBits-1:0] r_data_q;

  always_ff @(posedge clk_i) begin
    r_valid_q <= next_r_valid_i;
    w_ready_q <= next_w_ready_i;
    b_valid_q <= next_b_valid_i;
    if (next_r_valid_i) begin
      r_id_q   <= next_r_id_i;
      r_data_q <= next_r_data_i;
      r_resp_q <= next_r_resp_i;
      r_last_q <= next_r_last_i;
    end
    if (next_b_valid_i) b_resp_q <= next_b_resp_i;
  end

  logic ar_valid, ar_ready, aw_valid, aw_ready;
`ifdef TW_STALLS
  // x^16 + x^14 + x^13 + x^11 + 1, one step per cycle.
  logic [15:0] random_q = 16'hace1;
  always_ff @(posedge clk_i) random_q <= {random_q[14:0], random_q[15] ^ random_q[13] ^ random_q[12] ^ random_q[10]};
  assign ar_ready = random_q[3:0] < 4'd5;
  assign aw_ready = random_q[9:6] < 4'd5;

  // A request must stay unchanged until it is taken, or until a trap.
  logic ar_stands_q, aw_stands_q;
  logic [tw_cfg_pkg::OffsetBits+8:0] ar_q;
  logic [tw_cfg_pkg::OffsetBits+7:0] aw_q;
  always_ff @(posedge clk_i) begin
    ar_stands_q <= ar_valid && !ar_ready;
    aw_stands_q <= aw_valid && !aw_ready;
    ar_q <= {ar_id_o, ar_len_o, ar_addr_o};
    aw_q <= {aw_len_o, aw_addr_o};
  end
  ReadStands_A: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (!ar_stands_q || !ar_valid || ar_q == {ar_id_o, ar_len_o, ar_addr_o}));
  WriteStands_A: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (!aw_stands_q || !aw_valid || aw_q == {aw_len_o, aw_addr_o}));
`else
  assign ar_ready = 1'b1;
  assign aw_ready = 1'b1;
`endif
  assign ar_valid_o = ar_valid && ar_ready;
  assign aw_valid_o = aw_valid && aw_ready;

  tw_core u_core (
    .clk_i, .rst_ni, .reg_valid_i, .reg_write_i, .reg_addr_i, .reg_wdata_i, .reg_rdata_o, .irq_o,
    .ar_valid_o(ar_valid), .ar_ready_i(ar_ready), .ar_id_o, .ar_addr_o, .ar_len_o,
    .r_valid_i(r_valid_q), .r_id_i(r_id_q), .r_data_i(r_data_q), .r_resp_i(r_resp_q), .r_last_i(r_last_q),
    .aw_valid_o(aw_valid), .aw_ready_i(aw_ready), .aw_addr_o, .aw_len_o,
    .w_valid_o, .w_ready_i(w_ready_q), .w_data_o, .w_strb_o, .w_last_o,
    .b_valid_i(b_valid_q), .b_resp_i(b_resp_q)
  );

endmodule
