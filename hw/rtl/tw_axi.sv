// The core as an AXI peripheral: registers on AXI4-Lite, memory on AXI4. Ports have the names by which block-design
// tools recognize the interfaces. Bursts are incrementing, in whole beats; identifier 0 is fetch, 1 is load.
//
// Requests leave through queues of two, because the core does not meet two rules of the bus:
// - A request must stay until it is taken, even if a trap stops the core meanwhile.
// - Write data must be offered before the address is taken, because a slave may take the address after the data.
module tw_axi #(
  localparam int unsigned AddrW = tw_cfg_pkg::OffsetBits,
  localparam int unsigned BusBits = tw_cfg_pkg::BusBits,
  localparam int unsigned BusBytes = tw_cfg_pkg::BusBytes
) (
  input  logic                aclk,
  input  logic                aresetn,
  output logic                irq,

  // Registers
  input  logic [11:0]         s_axi_awaddr,
  input  logic [2:0]          s_axi_awprot,
  input  logic                s_axi_awvalid,
  output logic                s_axi_awready,
  input  logic [31:0]         s_axi_wdata,
  input  logic [3:0]          s_axi_wstrb,
  input  logic                s_axi_wvalid,
  output logic                s_axi_wready,
  output logic [1:0]          s_axi_bresp,
  output logic                s_axi_bvalid,
  input  logic                s_axi_bready,
  input  logic [11:0]         s_axi_araddr,
  input  logic [2:0]          s_axi_arprot,
  input  logic                s_axi_arvalid,
  output logic                s_axi_arready,
  output logic [31:0]         s_axi_rdata,
  output logic [1:0]          s_axi_rresp,
  output logic                s_axi_rvalid,
  input  logic                s_axi_rready,

  // Memory
  output logic [0:0]          m_axi_arid,
  output logic [AddrW-1:0]    m_axi_araddr,
  output logic [7:0]          m_axi_arlen,
  output logic [2:0]          m_axi_arsize,
  output logic [1:0]          m_axi_arburst,
  output logic [3:0]          m_axi_arcache,
  output logic [2:0]          m_axi_arprot,
  output logic                m_axi_arvalid,
  input  logic                m_axi_arready,
  input  logic [0:0]          m_axi_rid,
  input  logic [BusBits-1:0]  m_axi_rdata,
  input  logic [1:0]          m_axi_rresp,
  input  logic                m_axi_rlast,
  input  logic                m_axi_rvalid,
  output logic                m_axi_rready,
  output logic [0:0]          m_axi_awid,
  output logic [AddrW-1:0]    m_axi_awaddr,
  output logic [7:0]          m_axi_awlen,
  output logic [2:0]          m_axi_awsize,
  output logic [1:0]          m_axi_awburst,
  output logic [3:0]          m_axi_awcache,
  output logic [2:0]          m_axi_awprot,
  output logic                m_axi_awvalid,
  input  logic                m_axi_awready,
  output logic [BusBits-1:0]  m_axi_wdata,
  output logic [BusBytes-1:0] m_axi_wstrb,
  output logic                m_axi_wlast,
  output logic                m_axi_wvalid,
  input  logic                m_axi_wready,
  input  logic [0:0]          m_axi_bid,
  input  logic [1:0]          m_axi_bresp,
  input  logic                m_axi_bvalid,
  output logic                m_axi_bready
);

  logic        reg_valid, reg_write;
  logic [11:0] reg_addr;
  logic [31:0] reg_wdata, reg_rdata;

  tw_axi_lite u_lite (
    .clk_i      (aclk),
    .rst_ni     (aresetn),
    .aw_valid_i (s_axi_awvalid),
    .aw_ready_o (s_axi_awready),
    .aw_addr_i  (s_axi_awaddr),
    .w_valid_i  (s_axi_wvalid),
    .w_ready_o  (s_axi_wready),
    .w_data_i   (s_axi_wdata),
    .b_valid_o  (s_axi_bvalid),
    .b_ready_i  (s_axi_bready),
    .ar_valid_i (s_axi_arvalid),
    .ar_ready_o (s_axi_arready),
    .ar_addr_i  (s_axi_araddr),
    .r_valid_o  (s_axi_rvalid),
    .r_ready_i  (s_axi_rready),
    .r_data_o   (s_axi_rdata),
    .reg_valid_o(reg_valid),
    .reg_write_o(reg_write),
    .reg_addr_o (reg_addr),
    .reg_wdata_o(reg_wdata),
    .reg_rdata_i(reg_rdata)
  );
  assign s_axi_bresp = 2'd0;
  assign s_axi_rresp = 2'd0;

  logic             ar_valid, ar_id, ar_full, ar_empty, aw_valid, aw_full, aw_empty;
  logic [AddrW-1:0] ar_addr, aw_addr;
  logic [7:0]       ar_len, aw_len;
  logic [1:0]       unused_ar_count, unused_aw_count;

  tw_core u_core (
    .clk_i      (aclk),
    .rst_ni     (aresetn),
    .reg_valid_i(reg_valid),
    .reg_write_i(reg_write),
    .reg_addr_i (reg_addr),
    .reg_wdata_i(reg_wdata),
    .reg_rdata_o(reg_rdata),
    .irq_o      (irq),
    .ar_valid_o (ar_valid),
    .ar_ready_i (!ar_full),
    .ar_id_o    (ar_id),
    .ar_addr_o  (ar_addr),
    .ar_len_o   (ar_len),
    .r_valid_i  (m_axi_rvalid),
    .r_id_i     (m_axi_rid[0]),
    .r_data_i   (m_axi_rdata),
    .r_resp_i   (m_axi_rresp),
    .r_last_i   (m_axi_rlast),
    .aw_valid_o (aw_valid),
    .aw_ready_i (!aw_full),
    .aw_addr_o  (aw_addr),
    .aw_len_o   (aw_len),
    .w_valid_o  (m_axi_wvalid),
    .w_ready_i  (m_axi_wready),
    .w_data_o   (m_axi_wdata),
    .w_strb_o   (m_axi_wstrb),
    .w_last_o   (m_axi_wlast),
    .b_valid_i  (m_axi_bvalid),
    .b_resp_i   (m_axi_bresp)
  );

  tw_fifo #(.Width(AddrW + 9), .Depth(2)) u_reads (
    .clk_i  (aclk),
    .rst_ni (aresetn),
    .push_i (ar_valid && !ar_full),
    .data_i ({ar_id, ar_len, ar_addr}),
    .pop_i  (m_axi_arvalid && m_axi_arready),
    .data_o ({m_axi_arid[0], m_axi_arlen, m_axi_araddr}),
    .empty_o(ar_empty),
    .full_o (ar_full),
    .count_o(unused_ar_count)
  );
  tw_fifo #(.Width(AddrW + 8), .Depth(2)) u_writes (
    .clk_i  (aclk),
    .rst_ni (aresetn),
    .push_i (aw_valid && !aw_full),
    .data_i ({aw_len, aw_addr}),
    .pop_i  (m_axi_awvalid && m_axi_awready),
    .data_o ({m_axi_awlen, m_axi_awaddr}),
    .empty_o(aw_empty),
    .full_o (aw_full),
    .count_o(unused_aw_count)
  );
  assign m_axi_arvalid = !ar_empty;
  assign m_axi_awvalid = !aw_empty;

  // The core requests data only if it has space for them.
  assign m_axi_rready = 1'b1;
  assign m_axi_bready = 1'b1;

  // Incrementing bursts of whole beats. Memory is normal, non-cacheable and bufferable: the driver manages caches.
  assign m_axi_arsize  = 3'($clog2(BusBytes));
  assign m_axi_awsize  = 3'($clog2(BusBytes));
  assign m_axi_arburst = 2'b01;
  assign m_axi_awburst = 2'b01;
  assign m_axi_arcache = 4'b0011;
  assign m_axi_awcache = 4'b0011;
  assign m_axi_arprot  = 3'b000;
  assign m_axi_awprot  = 3'b000;
  assign m_axi_awid    = 1'b0;

  logic unused;
  assign unused = ^{s_axi_awprot, s_axi_arprot, s_axi_wstrb, m_axi_bid, unused_ar_count, unused_aw_count};

endmodule
