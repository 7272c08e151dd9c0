// Compares the model of an iCE40's block RAM with Yosys's (yosys_SB_RAM40_4K) for every pair of widths: equal initial
// contents, random writes and reads.
module ram_pair #(parameter int WriteMode = 0, parameter int ReadMode = 0) (
  input  logic        clk,
  input  logic        we,
  input  logic        wclke,
  input  logic        re,
  input  logic        rclke,
  input  logic [10:0] raddr,
  input  logic [10:0] waddr,
  input  logic [15:0] mask,
  input  logic [15:0] wdata,
  output int unsigned wrong
);
  localparam logic [255:0] Init = {8{32'h1b2d_3e4f}};
  logic [15:0] own, other;
  logic        seen = 1'b0;
  SB_RAM40_4K #(.WRITE_MODE(WriteMode), .READ_MODE(ReadMode), .INIT_3(Init), .INIT_F(~Init)) u_own (
    .RCLK(clk), .RCLKE(rclke), .RE(re), .WCLK(clk), .WCLKE(wclke), .WE(we), .RADDR(raddr), .WADDR(waddr), .MASK(mask),
    .WDATA(wdata), .RDATA(own)
  );
  yosys_SB_RAM40_4K #(.WRITE_MODE(WriteMode), .READ_MODE(ReadMode), .INIT_3(Init), .INIT_F(~Init)) u_other (
    .RCLK(clk), .RCLKE(rclke), .RE(re), .WCLK(clk), .WCLKE(wclke), .WE(we), .RADDR(raddr), .WADDR(waddr), .MASK(mask),
    .WDATA(wdata), .RDATA(other)
  );
  initial wrong = 0;
  always @(posedge clk) if (re && rclke) seen <= 1'b1;
  always @(negedge clk) if (seen && own != other) wrong = wrong + 1;
endmodule

module ice40_ram_check;
  logic        clk = 1'b0, we, wclke, re, rclke;
  logic [10:0] raddr, waddr;
  logic [15:0] mask, wdata;
  int unsigned wrong_pair [16];
  int unsigned wrong = 0;
  for (genvar m = 0; m < 16; m++) begin : gen_pair
    ram_pair #(.WriteMode(m / 4), .ReadMode(m % 4)) u_pair (
      .clk, .we, .wclke, .re, .rclke, .raddr, .waddr, .mask, .wdata, .wrong(wrong_pair[m])
    );
  end
  initial begin
    for (int unsigned n = 0; n < 100000; n++) begin
      we    = n > 4000 && $urandom() % 2 == 0;
      wclke = $urandom() % 8 != 0;
      re    = $urandom() % 4 != 0;
      rclke = $urandom() % 8 != 0;
      raddr = 11'($urandom());
      waddr = 11'($urandom());
      mask  = $urandom() % 2 == 0 ? '0 : 16'($urandom());
      wdata = 16'($urandom());
      #1 clk = 1'b1;
      #1 clk = 1'b0;
    end
    for (int unsigned i = 0; i < 16; i++) begin
      if (wrong_pair[i] != 0) $display("modes %0d: %0d", i, wrong_pair[i]);
      wrong = wrong + wrong_pair[i];
    end
    $display("%0d wrong", wrong);
    $finish;
  end
endmodule
