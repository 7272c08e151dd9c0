// Compares tw_mul with an ECP5's multiplier block for each number of stages: every product, with changing enables.
module ecp5_mul_check;

  logic              clk = 1'b0;
  logic [2:0]        en;
  logic [7:0]        a, b;
  logic [3:1][15:0]  expected, mapped;
  int unsigned       wrong = 0;

  for (genvar s = 1; s < 4; s++) begin : gen_stages
    tw_mul #(.Stages(s)) u_mul (.clk_i(clk), .en_i(en[s-1:0]), .a_i(a), .b_i(b), .product_o(expected[s]));
    mapped_mul #(.Stages(s)) u_mapped (.clk_i(clk), .en_i(en[s-1:0]), .a_i(a), .b_i(b), .product_o(mapped[s]));
  end

  task automatic edges(int unsigned n, bit all);
    for (int unsigned i = 0; i < n; i++) begin
      en = all ? '1 : 3'($urandom());
      #1 clk = 1'b1;
      #1 clk = 1'b0;
      #1 if (expected != mapped) wrong = wrong + 1;
      // Operands that an enable holds back.
      if (!all) {a, b} = 16'($urandom());
    end
  endtask

  initial begin
    {a, b} = '0;
    for (int unsigned i = 0; i < 3; i++) begin
      en = '1;
      #1 clk = 1'b1;
      #1 clk = 1'b0;
    end
    for (int unsigned pair = 0; pair < 65536; pair++) begin
      {a, b} = 16'(pair);
      edges(3, 1'b1);
      if (expected != {3{16'($signed(a)) * 16'($signed(b))}}) wrong = wrong + 1;
      edges(2, 1'b0);
    end
    $display("%0d wrong", wrong);
    $finish;
  end

endmodule
