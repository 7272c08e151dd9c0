// tw_words under any use that pushes only into a place that was freed, and takes no more than is visible; its times are
// those of hw/TIMING.md.
module tw_words_formal #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 2
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             push_i,
  input logic [1:0]       pop_i,
  input logic             mark_i,
  input logic [Width-1:0] data_i
);

  localparam int unsigned FreeW = $clog2(Depth + 1);
  localparam int unsigned HeldW = $clog2(Depth + 5) + 1;

  logic [Width-1:0] word0, word1;
  logic [2:0]       avail;
  logic             freed, empty;
  logic [HeldW-1:0] held;

  tw_words #(.Width(Width), .Depth(Depth)) u_dut (
    .clk_i, .rst_ni, .push_i, .data_i, .pop_i, .avail_o(avail), .word0_o(word0), .word1_o(word1), .freed_o(freed),
    .empty_o(empty)
  );
  tw_check_queue #(.Width(Width), .Capacity(Depth + 4)) u_queue (
    .clk_i, .rst_ni, .push_i, .data_i, .pop_i, .pop_data_i({word1, word0}), .mark_i, .held_o(held)
  );

  // The user's count of free places, and the words that left the memory and are not used up.
  logic [FreeW-1:0] free_q;
  logic [HeldW-1:0] outside;
  logic             left_q;
  assign outside = held - HeldW'(Depth) + HeldW'(free_q);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      free_q <= FreeW'(Depth);
      left_q <= 1'b0;
    end else begin
      free_q <= free_q - FreeW'(push_i) + FreeW'(freed);
      left_q <= freed;
    end
  end

  // The word at a place: visible, on its way, or in the memory.
  localparam int unsigned PtrW = Depth > 1 ? $clog2(Depth) : 1;
  logic [PtrW-1:0]  at0, at1;
  logic [Width-1:0] seen0, seen1;
  assign at0 = PtrW'((32'(u_dut.rd_q) + 32'(u_queue.place0_q) - 32'(outside) - 32'd1) % Depth);
  assign at1 = PtrW'((32'(u_dut.rd_q) + 32'(u_queue.place1_q) - 32'(outside) - 32'd1) % Depth);
  always_comb begin
    seen0 = u_dut.mem[at0];
    seen1 = u_dut.mem[at1];
    if (u_queue.place0_q <= outside) seen0 = u_dut.read_data_q;
    if (u_queue.place1_q <= outside) seen1 = u_dut.read_data_q;
    if (u_queue.place0_q <= HeldW'(avail)) seen0 = visible(u_queue.place0_q);
    if (u_queue.place1_q <= HeldW'(avail)) seen1 = visible(u_queue.place1_q);
  end

  function automatic logic [Width-1:0] visible(input logic [HeldW-1:0] place);
    case (place)
      HeldW'(1): visible = u_dut.u_front.s0_q;
      HeldW'(2): visible = u_dut.u_front.s1_q;
      HeldW'(3): visible = u_dut.u_front.s2_q;
      default:   visible = u_dut.u_front.s3_q;
    endcase
  endfunction

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  always @(posedge clk_i) begin
    if (!started_q) assume (!rst_ni);
    assume (pop_i != 2'd3 && 3'(pop_i) <= avail);
    assume (!(push_i && free_q == '0));
    if (rst_ni) begin
      Free_A: assert (32'(free_q) <= Depth && outside <= HeldW'(4));
      Empty_A: assert (empty == (held == '0));
      // A word leaves the memory as soon as it is there and at most three that left before it wait; it is visible two
      // cycles later.
      Leaves_A: assert (freed == (32'(free_q) != Depth && outside <= HeldW'(3)));
      Visible_A: assert (HeldW'(avail) == outside - HeldW'(left_q));
      // For the proofs by induction: what the counts and pointers are, and that the marked words are in their places.
      Counts_I: assert (32'(u_dut.count_q) == Depth - 32'(free_q) && u_dut.read_q == left_q);
      Pointers_I: assert (32'(u_dut.rd_q) < Depth && 32'(u_dut.wr_q) == (32'(u_dut.rd_q) + 32'(u_dut.count_q)) % Depth);
      if (u_queue.set_q[0] && !u_queue.gone_q[0]) First_I: assert (seen0 == u_queue.data0_q);
      if (u_queue.set_q[1] && !u_queue.gone_q[1]) Second_I: assert (seen1 == u_queue.data1_q);
      TwoOut_C: cover (pop_i == 2'd2 && push_i && freed);
      AllFull_C: cover (32'(held) == Depth + 4);
    end
  end

endmodule
