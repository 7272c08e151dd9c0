// tw_axi_lite under any master that keeps AXI4-Lite's rules: what it asks for stays until it is taken.
module tw_axi_lite_formal (
  input logic        clk_i,
  input logic        rst_ni,
  input logic        aw_valid_i,
  input logic [11:0] aw_addr_i,
  input logic        w_valid_i,
  input logic [31:0] w_data_i,
  input logic        b_ready_i,
  input logic        ar_valid_i,
  input logic [11:0] ar_addr_i,
  input logic        r_ready_i,
  input logic [31:0] reg_rdata_i
);

  logic        aw_ready, w_ready, b_valid, ar_ready, r_valid, reg_valid, reg_write;
  logic [11:0] reg_addr;
  logic [31:0] r_data, reg_wdata;

  tw_axi_lite u_dut (
    .clk_i, .rst_ni, .aw_valid_i, .aw_ready_o(aw_ready), .aw_addr_i, .w_valid_i, .w_ready_o(w_ready), .w_data_i,
    .b_valid_o(b_valid), .b_ready_i, .ar_valid_i, .ar_ready_o(ar_ready), .ar_addr_i, .r_valid_o(r_valid), .r_ready_i,
    .r_data_o(r_data), .reg_valid_o(reg_valid), .reg_write_o(reg_write), .reg_addr_o(reg_addr), .reg_wdata_o(reg_wdata), .reg_rdata_i
  );

  // Accesses taken and not yet answered, and what a read's answer must be.
  logic        writes_q, reads_q;
  logic [31:0] value_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      writes_q <= 1'b0;
      reads_q  <= 1'b0;
    end else begin
      writes_q <= (writes_q && !(b_valid && b_ready_i)) || (aw_valid_i && aw_ready);
      reads_q  <= (reads_q && !(r_valid && r_ready_i)) || (ar_valid_i && ar_ready);
    end
    if (ar_valid_i && ar_ready) value_q <= reg_rdata_i;
  end

  logic started_q = 1'b0;
  logic past_aw_q, past_w_q, past_ar_q, past_rst_q;
  logic [11:0] past_aw_addr_q, past_ar_addr_q;
  logic [31:0] past_w_data_q;
  logic [1:0]  held_q = '0;
  always_ff @(posedge clk_i) begin
    started_q      <= 1'b1;
    past_rst_q     <= rst_ni;
    past_aw_q      <= aw_valid_i && !aw_ready;
    past_w_q       <= w_valid_i && !w_ready;
    past_ar_q      <= ar_valid_i && !ar_ready;
    past_aw_addr_q <= aw_addr_i;
    past_ar_addr_q <= ar_addr_i;
    past_w_data_q  <= w_data_i;
    // How long a whole request has stood although its answers are fetched at once.
    if (!rst_ni || !(ar_valid_i && !ar_ready && r_ready_i) || (aw_valid_i && w_valid_i)) held_q <= '0;
    else if (held_q != '1) held_q <= held_q + 1'b1;
  end

  always @(posedge clk_i) begin
    if (!started_q) assume (!rst_ni);
    if (rst_ni && started_q && past_rst_q) begin
      if (past_aw_q) assume (aw_valid_i && aw_addr_i == past_aw_addr_q);
      if (past_w_q) assume (w_valid_i && w_data_i == past_w_data_q);
      if (past_ar_q) assume (ar_valid_i && ar_addr_i == past_ar_addr_q);
    end
    if (rst_ni) begin
      // A register is accessed in exactly the cycle in which a request is taken, with what the request says.
      Together_A: assert (aw_ready == w_ready);
      Access_A: assert (reg_valid == ((aw_valid_i && aw_ready) || (ar_valid_i && ar_ready)));
      Apart_A: assert (!(aw_valid_i && aw_ready && ar_valid_i && ar_ready));
      Write_A: assert (reg_write == (aw_valid_i && aw_ready));
      OnlyAsked_A: assert (!aw_ready || (aw_valid_i && w_valid_i));
      WriteAddress_A: assert (!reg_write || (reg_addr == {aw_addr_i[11:2], 2'b00} && reg_wdata == w_data_i));
      ReadAddress_A: assert (!reg_valid || reg_write || reg_addr == {ar_addr_i[11:2], 2'b00});
      // One answer for each, which stays until it is fetched.
      WriteAnswer_A: assert (b_valid == writes_q);
      ReadAnswer_A: assert (r_valid == reads_q);
      OneWrite_A: assert (!(aw_valid_i && aw_ready) || !writes_q);
      OneRead_A: assert (!(ar_valid_i && ar_ready) || !reads_q);
      Value_A: assert (!r_valid || r_data == value_q);
      // Reads that find no write beside them come through.
      Progress_A: assert (held_q <= 2'd1);
      Both_C: cover (b_valid && r_valid);
      Waits_C: cover (b_valid && b_ready_i && aw_valid_i && w_valid_i && !aw_ready);
      Late_C: cover (aw_valid_i && !w_valid_i && ar_valid_i && ar_ready);
    end
  end

endmodule
