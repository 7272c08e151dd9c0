// Gemm lane without multipliers, for four-input lookup tables with carry chains. Same function as tw_gemm_lane.
//
// An input is recoded into four digits of base 4. The lower three range from -2 to 1, the highest from -2 to 2, so that
// a bit of a digit times a weight takes one or two lookup tables. A negative multiple is the complement; the missing
// one enters a carry chain. The lane adds up the digits of each place first, then the places.
module tw_gemm_table_lane #(
  parameter int unsigned BlockIn = 16,
  parameter int unsigned MulStages = 0,
  localparam int unsigned Enables = MulStages == 0 ? 1 : MulStages
) (
  input  logic                 clk_i,
  // Enables of the registers before the sum, in the order in which data pass them; if there is none, of the sum
  input  logic [Enables-1:0]   en_i,
  input  logic                 en_sum_i,
  input  logic [BlockIn*8-1:0] inp_i,
  input  logic [BlockIn*8-1:0] wgt_i,
  output logic [31:0]          sum_o
);

  localparam int unsigned Levels = $clog2(BlockIn);
  // Bits of a digit times a weight, and of the sum of BlockIn of those
  localparam int unsigned RowW = 9;
  localparam int unsigned PlaceW = RowW + Levels;

  // Operands, registered if there is a stage for them
  logic [BlockIn*8-1:0] inp_q, wgt_q;
  if (MulStages < 2) begin : gen_no_operands
    assign {inp_q, wgt_q} = {inp_i, wgt_i};
  end else begin : gen_operands
    always_ff @(posedge clk_i) begin
      if (en_i[0]) {inp_q, wgt_q} <= {inp_i, wgt_i};
    end
  end

  // Digits: bit 1 says that a digit is negative; bit 2 of the highest digit says that it is 2 or -2.
  (* keep *)
  logic [BlockIn*9-1:0] digits;
  for (genvar i = 0; i < BlockIn; i++) begin : gen_digits
    logic [7:0] a;
    logic       c1, c2, c3;
    logic [1:0] d0, d1, d2;
    logic [2:0] d3;
    assign a  = inp_q[i*8 +: 8];
    assign d0 = a[1:0];
    assign c1 = a[1];
    assign d1 = a[3:2] + {1'b0, c1};
    assign c2 = a[3] || (a[2] && c1);
    assign d2 = a[5:4] + {1'b0, c2};
    assign c3 = a[5] || (a[4] && c2);
    // The highest digit, from -2 to 2: bit 2 twice, bit 1 negative, bit 0 odd
    assign d3[0] = a[6] ^ c3;
    assign d3[1] = a[7] && !(a[6] && c3);
    assign d3[2] = (a[7] && !a[6] && !c3) || (!a[7] && a[6] && c3);
    assign digits[i*9 +: 9] = {d3, d2, d1, d0};
  end

  // Rows of each place (digit times weight), registered if there is a stage for them. Then the sum of each place, and
  // the one that none of its carry chains took; both registered if there are three stages.
  logic [4*BlockIn*RowW-1:0] rows, rows_q;
  logic [4*BlockIn-1:0]      negatives, negatives_q;
  logic [4*PlaceW-1:0]       places, places_q;
  logic [3:0]                ones, ones_q;
  for (genvar p = 0; p < 4; p++) begin : gen_place
    // An adder tree. Sums of level l have RowW + l bits; the sums of all levels are in one vector.
    logic [2*BlockIn*PlaceW-1:0] sums;
    logic [BlockIn-1:0]          negative;
    for (genvar i = 0; i < BlockIn; i++) begin : gen_row
      logic [7:0]      w;
      logic [RowW-1:0] row;
      assign w = wgt_q[i*8 +: 8];
      if (p < 3) begin : gen_low
        logic [1:0] d;
        assign d = digits[i*9 + p*2 +: 2];
        always_comb begin
          unique case (d)
            2'b00:   row = '0;
            2'b01:   row = {w[7], w};
            2'b10:   row = ~{w, 1'b0};
            default: row = ~{w[7], w};
          endcase
        end
        assign negatives[p*BlockIn + i] = d[1];
      end else begin : gen_high
        logic [2:0]      d;
        (* keep *)
        logic [RowW-1:0] size;
        assign d    = digits[i*9 + 6 +: 3];
        assign size = d[2] ? {w, 1'b0} : (d[0] ? {w[7], w} : '0);
        assign row  = {RowW{d[1]}} ^ size;
        assign negatives[p*BlockIn + i] = d[1];
      end
      assign rows[(p*BlockIn + i)*RowW +: RowW] = row;
      assign sums[i*PlaceW +: PlaceW] = PlaceW'($signed(rows_q[(p*BlockIn + i)*RowW +: RowW]));
    end
    assign negative = negatives_q[p*BlockIn +: BlockIn];
    for (genvar l = 0; l < Levels; l++) begin : gen_level
      localparam int unsigned From = 2*BlockIn - (2*BlockIn >> l);
      localparam int unsigned To = 2*BlockIn - (BlockIn >> l);
      localparam int unsigned W = RowW + l + 1;
      for (genvar k = 0; k < (BlockIn >> (l + 1)); k++) begin : gen_add
        logic [W:0] sum;
        assign sum = {sums[(From + 2*k)*PlaceW +: W], 1'b1} + {sums[(From + 2*k + 1)*PlaceW +: W], negative[To - BlockIn + k]};
        assign sums[(To + k)*PlaceW +: PlaceW] = PlaceW'($signed(sum[W:1]));
      end
    end
    assign sums[(2*BlockIn - 1)*PlaceW +: PlaceW] = '0;
    assign places[p*PlaceW +: PlaceW] = sums[(2*BlockIn - 2)*PlaceW +: PlaceW];
    assign ones[p] = negative[BlockIn-1];
  end

  if (MulStages == 0) begin : gen_fused
    assign rows_q      = rows;
    assign negatives_q = negatives;
  end else begin : gen_registered
    always_ff @(posedge clk_i) begin
      if (en_i[MulStages > 1 ? 1 : 0]) begin
        rows_q      <= rows;
        negatives_q <= negatives;
      end
    end
  end

  if (MulStages < 3) begin : gen_no_places
    assign places_q = places;
    assign ones_q   = ones;
  end else begin : gen_places
    always_ff @(posedge clk_i) begin
      if (en_i[2]) begin
        places_q <= places;
        ones_q   <= ones;
      end
    end
  end

  // The sum of all places. Bits that have nothing to add pass unchanged.
  logic [PlaceW+1:0] first;
  logic [PlaceW+2:0] low, high;
  assign first = {places_q[PlaceW-1], places_q[0 +: PlaceW], 1'b1} + {{(PlaceW+1){1'b0}}, ones_q[0]};
  logic [PlaceW+1:0] low_top, high_top;
  assign low_top  = {{3{first[PlaceW+1]}}, first[PlaceW:3], 1'b1} + {places_q[2*PlaceW-1], places_q[PlaceW +: PlaceW], ones_q[1]};
  assign low      = {low_top[PlaceW+1:1], first[2:1]};
  assign high_top = {{3{places_q[3*PlaceW-1]}}, places_q[2*PlaceW+2 +: PlaceW-2], 1'b1} +
                    {places_q[4*PlaceW-1], places_q[3*PlaceW +: PlaceW], ones_q[3]};
  assign high     = {high_top[PlaceW+1:1], places_q[2*PlaceW +: 2]};
  logic [PlaceW+4:0] top;
  assign top = {{5{low[PlaceW+2]}}, low[PlaceW+2:4], 1'b1} + {high[PlaceW+2], high, ones_q[2]};
  always_ff @(posedge clk_i) begin
    if (MulStages == 0 ? en_i[0] : en_sum_i) sum_o <= 32'($signed({top[PlaceW+4:1], low[3:0]}));
  end

endmodule
