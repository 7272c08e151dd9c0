// What any queue must be, whatever is inside it: elements leave in the order in which they came, none is lost, none
// comes twice, and never more than Capacity are held.
//
// Up to two elements leave in a cycle, the older in the low half of `pop_data_i`. Of all that goes in the prover marks
// two, at moments of its own choice; each must leave, with its own data, exactly when what was in front of it has left,
// and the first before the second. As the choice is free, that holds for every pair.
module tw_check_queue #(
  parameter int unsigned Width = 8,
  parameter int unsigned Capacity = 8,
  localparam int unsigned CountW = $clog2(Capacity + 1) + 1
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               push_i,
  input  logic [Width-1:0]   data_i,
  input  logic [1:0]         pop_i,
  input  logic [2*Width-1:0] pop_data_i,
  // The prover's choice: mark what goes in now.
  input  logic               mark_i,
  output logic [CountW-1:0]  held_o
);

  // Elements held; by mark: whether it was set, whether its element has left, what it is, and the elements up to and
  // with it.
  logic [CountW-1:0] held_q;
  logic [1:0]        set_q, gone_q;
  logic [Width-1:0]  data0_q, data1_q;
  logic [CountW-1:0] place0_q, place1_q;
  logic              leaves0, leaves1;

  assign held_o  = held_q;
  assign leaves0 = set_q[0] && !gone_q[0] && place0_q <= CountW'(pop_i);
  assign leaves1 = set_q[1] && !gone_q[1] && place1_q <= CountW'(pop_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q <= '0;
      set_q  <= '0;
      gone_q <= '0;
    end else begin
      held_q   <= held_q + CountW'(push_i) - CountW'(pop_i);
      gone_q   <= gone_q | {leaves1, leaves0};
      place0_q <= place0_q - CountW'(pop_i);
      place1_q <= place1_q - CountW'(pop_i);
      if (push_i && mark_i && !set_q[0]) begin
        set_q[0] <= 1'b1;
        data0_q  <= data_i;
        place0_q <= held_q - CountW'(pop_i) + 1'b1;
      end else if (push_i && mark_i && !set_q[1]) begin
        set_q[1] <= 1'b1;
        data1_q  <= data_i;
        place1_q <= held_q - CountW'(pop_i) + 1'b1;
      end
    end
  end

  always @(posedge clk_i) begin
    if (rst_ni) begin
      WithinCapacity_A: assert (held_q <= CountW'(Capacity));
      NothingFromNowhere_A: assert (CountW'(pop_i) <= held_q);
      if (leaves0) FirstIsItself_A: assert (data0_q == (place0_q == CountW'(1) ? pop_data_i[0 +: Width] : pop_data_i[Width +: Width]));
      if (leaves1) SecondIsItself_A: assert (data1_q == (place1_q == CountW'(1) ? pop_data_i[0 +: Width] : pop_data_i[Width +: Width]));
      // What is marked is inside until it leaves, in its order.
      if (set_q[0] && !gone_q[0]) FirstInside_I: assert (place0_q != '0 && place0_q <= held_q);
      if (set_q[1] && !gone_q[1]) SecondInside_I: assert (place1_q != '0 && place1_q <= held_q);
      if (set_q[1] && !gone_q[1] && !gone_q[0]) InOrder_I: assert (place0_q < place1_q);
      if (gone_q[1]) FirstWentFirst_I: assert (gone_q[0]);
      Marks_I: assert (set_q != 2'b10 && (gone_q & ~set_q) == '0);
      Full_C: cover (held_q == CountW'(Capacity));
      Both_C: cover (gone_q == 2'b11 && held_q == '0);
    end
  end

endmodule
