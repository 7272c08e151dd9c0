`include "tw_assert.svh"

// Splits rows into bursts of at most MaxBeats beats (a power of two). No burst crosses a page.
module tw_bursts #(
  parameter int unsigned AddrW = 40,
  parameter int unsigned BusBytes = 8,
  parameter int unsigned MaxBeats = 32,
  parameter int unsigned BytesW = 16,
  // Every row begins and ends with a whole beat
  parameter bit          Whole = 1'b0
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

  logic              valid_q, last_q, ends_q, enters, goes_on;
  logic [AddrW-1:0]  addr_q, addr;
  logic [BeatsW-1:0] beats_q, rest;
  logic [BurstW-1:0] now_q, page;
  logic [BytesW:0]   total;
  logic              many;

  // Beats of a row: from its first byte's beat to its last byte's.
  always_comb begin
    total = 'x;
    if (row_valid_i && Whole) total = (BytesW+1)'(row_bytes_i);
    else if (row_valid_i) total = (BytesW+1)'(row_bytes_i) + (BytesW+1)'(row_addr_i[Log-1:0]) + (BytesW+1)'(LastByte);
  end
  // The next burst: what is left of the row and of the page. It is computed a cycle ahead, because the length of a
  // burst decides whether it is granted.
  assign enters  = row_valid_i && row_ready_o;
  assign goes_on = valid_q && !ends_q;
  always_comb begin
    addr = 'x;
    rest = 'x;
    page = BurstW'(MaxBeats);
    if (goes_on) begin
      addr = addr_q + (AddrW'(now_q) << Log);
      rest = beats_q - BeatsW'(now_q);
    end else if (row_valid_i) begin
      addr = {row_addr_i[AddrW-1:Log], Log'(0)};
      rest = BeatsW'(total >> Log);
    end
    // The end of the page limits a burst only in the page's last MaxBeats beats, which can be the whole page: hence the
    // one bit more, so that the shift stays inside the operand.
    if (({1'b0, addr[PageLog-1:0]} >> BurstLog) == (PageLog+1)'((tw_isa_pkg::PageBytes - 1) >> BurstLog)) begin
      page = BurstW'(MaxBeats) - BurstW'((addr[PageLog-1:0] >> Log) & PageLog'(MaxBeats - 1));
    end
  end
  // More beats are left than the longest burst has.
  assign many = (rest >> BurstW) != '0;
  assign burst_valid_o = valid_q;
  assign burst_addr_o  = addr_q;
  assign burst_beats_o = 9'(now_q);
  assign burst_last_o  = last_q && ends_q;
  assign row_ready_o   = !valid_q || (burst_take_i && ends_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (enters) valid_q <= 1'b1;
    else if (burst_take_i && ends_q) valid_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (enters || (burst_take_i && goes_on)) begin
      addr_q  <= addr;
      beats_q <= rest;
      now_q   <= !many && BurstW'(rest) < page ? BurstW'(rest) : page;
      ends_q  <= !many && BurstW'(rest) <= page;
    end
    if (enters) last_q <= row_last_i;
  end

  `TW_ASSERT(InPage_A, !burst_valid_o || (32'(burst_addr_o[PageLog-1:0]) + (32'(burst_beats_o) << Log) <= tw_isa_pkg::PageBytes))
  `TW_ASSERT(NotEmpty_A, !burst_valid_o || burst_beats_o != '0)

endmodule
