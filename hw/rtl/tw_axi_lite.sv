// AXI4-Lite to the core's host registers: one access at a time, writes before reads.
//
// A register access takes one cycle. A read's value is kept for its response; a write waits until both address and data
// are there. Write strobes are ignored: a register is written whole. Addresses are in bytes; the lowest two bits are
// ignored.
module tw_axi_lite (
  input  logic clk_i,
  input  logic rst_ni,

  // Write
  input  logic        aw_valid_i,
  output logic        aw_ready_o,
  input  logic [11:0] aw_addr_i,
  input  logic        w_valid_i,
  output logic        w_ready_o,
  input  logic [31:0] w_data_i,
  output logic        b_valid_o,
  input  logic        b_ready_i,

  // Read
  input  logic        ar_valid_i,
  output logic        ar_ready_o,
  input  logic [11:0] ar_addr_i,
  output logic        r_valid_o,
  input  logic        r_ready_i,
  output logic [31:0] r_data_o,

  // Host registers; a read is answered in the same cycle
  output logic        reg_valid_o,
  output logic        reg_write_o,
  output logic [11:0] reg_addr_o,
  output logic [31:0] reg_wdata_o,
  input  logic [31:0] reg_rdata_i
);

  logic        b_valid_q, r_valid_q, write, read;
  logic [31:0] r_data_q;

  // An access is accepted when no response of its kind is waiting.
  assign write = rst_ni && aw_valid_i && w_valid_i && !b_valid_q;
  assign read  = rst_ni && ar_valid_i && !r_valid_q && !write;

  assign aw_ready_o = write;
  assign w_ready_o  = write;
  assign ar_ready_o = read;
  assign b_valid_o  = b_valid_q;
  assign r_valid_o  = r_valid_q;
  assign r_data_o   = r_data_q;

  assign reg_valid_o = write || read;
  assign reg_write_o = write;
  assign reg_addr_o  = {write ? aw_addr_i[11:2] : ar_addr_i[11:2], 2'b00};
  assign reg_wdata_o = w_data_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      b_valid_q <= 1'b0;
      r_valid_q <= 1'b0;
    end else begin
      if (write) b_valid_q <= 1'b1;
      else if (b_ready_i) b_valid_q <= 1'b0;
      if (read) r_valid_q <= 1'b1;
      else if (r_ready_i) r_valid_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (read) r_data_q <= reg_rdata_i;
  end

  logic unused;
  assign unused = ^{aw_addr_i[1:0], ar_addr_i[1:0]};

endmodule
