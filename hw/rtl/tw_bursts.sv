`include "tw_assert.svh"

// Splits rows into bursts: at most MaxBeats beats, a power of two, none across a page.
module tw_bursts #(
  parameter int unsigned AddrW = 40,
  parameter int unsigned BusBytes = 8,
  parameter int unsigned MaxBeats = 32,
  parameter int unsigned BytesW = 16
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              row_valid_i,
  input  logic [AddrW-1:0]  row_addr_i,
  input  logic [BytesW-1:0] row_bytes_i,
  input  logic              row_last_i,
  output logic              row_ready_o,
  output logic              burst_valid_o,
  output logic [AddrW-1:0]  burst_addr_o,
  output logic [8:0]        burst_beats_o,
  output logic              burst_last_o,
  input  logic              burst_take_i
);

  localparam int unsigned Log = $clog2(BusBytes);
  localparam int unsigned PageLog = $clog2(tw_isa_pkg::PageBytes);
  // Bytes of the longest burst, as a logarithm.
  localparam int unsigned BurstLog = $clog2(MaxBeats) + Log;
  localparam int unsigned BurstW = $clog2(MaxBeats) + 1;
  localparam logic [7:0]  LastByte = 8'(BusBytes - 1);
  localparam int unsigned BeatsW = BytesW + 1 > BurstW ? BytesW + 1 : BurstW;

  logic              valid_q, last_q;
  logic [AddrW-1:0]  addr_q;
  logic [BeatsW-1:0] beats_q;
  logic [BurstW-1:0] page, beats;
  logic [BytesW:0]   total;
  logic              ends;

  // Beats of a row: from its first byte's beat to its last byte's.
  always_comb begin
    total = '0;
    if (row_valid_i) total = (BytesW+1)'(row_bytes_i) + (BytesW+1)'(row_addr_i[Log-1:0]) + (BytesW+1)'(LastByte);
  end
  always_comb begin
    beats = '0;
    page = BurstW'(MaxBeats);
    if (valid_q) begin
      // Only in the page's last stretch of a longest burst is the page's end the nearer one.
      if ((addr_q[PageLog-1:0] >> BurstLog) == PageLog'((tw_isa_pkg::PageBytes - 1) >> BurstLog)) begin
        page = BurstW'(MaxBeats) - BurstW'((addr_q[PageLog-1:0] >> Log) & PageLog'(MaxBeats - 1));
      end
      beats = beats_q < BeatsW'(page) ? BurstW'(beats_q) : page;
    end
  end
  assign ends = BeatsW'(beats) == beats_q;
  assign burst_valid_o = valid_q;
  assign burst_addr_o  = addr_q;
  assign burst_beats_o = 9'(beats);
  assign burst_last_o  = last_q && ends;
  assign row_ready_o   = !valid_q || (burst_take_i && ends);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (row_valid_i && row_ready_o) valid_q <= 1'b1;
    else if (burst_take_i && ends) valid_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (row_valid_i && row_ready_o) begin
      addr_q  <= {row_addr_i[AddrW-1:Log], Log'(0)};
      beats_q <= BeatsW'(total >> Log);
      last_q  <= row_last_i;
    end else if (burst_take_i) begin
      addr_q  <= addr_q + (AddrW'(beats) << Log);
      beats_q <= beats_q - BeatsW'(beats);
    end
  end

  `TW_ASSERT(InPage_A, !burst_valid_o || (32'(burst_addr_o[PageLog-1:0]) + (32'(burst_beats_o) << Log) <= tw_isa_pkg::PageBytes))
  `TW_ASSERT(NotEmpty_A, !burst_valid_o || burst_beats_o != '0)

endmodule
