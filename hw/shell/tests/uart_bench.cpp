// Runs the shell with a UART of `argv[1]` cycles per bit: sends the bytes of standard input, prints those that come
// back.
#include "Vtw_shell.h"
#include "verilated.h"
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

int main(int argc, char **argv) {
  const int bit = argc > 1 ? std::atoi(argv[1]) : 4;
  std::string send;
  for (int c; (c = std::getchar()) != EOF;) send.push_back(static_cast<char>(c));

  VerilatedContext context;
  auto top = std::make_unique<Vtw_shell>(&context);
  size_t byte = 0;
  // The board considers its clock steady after 4,095 cycles; earlier bytes can be lost.
  int tx_at = 0, rx_at = -1, quiet = 0, before = 5000;
  unsigned char got = 0;
  while (quiet < 100 * bit) {
    // To the board: a start bit, eight data bits, a stop bit.
    const int place = tx_at / bit;
    const bool sends = before == 0 && byte < send.size();
    const unsigned char out = sends ? static_cast<unsigned char>(send[byte]) : 0;
    top->uart_rx = !sends || (place == 0 ? 0 : place == 9 ? 1 : out >> (place - 1) & 1);
    before -= before > 0;
    if (sends && ++tx_at == 10 * bit) {
      tx_at = 0;
      ++byte;
    }
    top->clk = 0;
    top->eval();
    top->clk = 1;
    top->eval();
    // From the board: each bit is sampled in its middle.
    if (rx_at < 0 && !top->uart_tx) {
      rx_at = 0;
      got = 0;
    }
    if (rx_at >= 0) {
      const int bits = rx_at / bit;
      if (rx_at % bit == bit / 2 && bits >= 1 && bits <= 8) got |= top->uart_tx << (bits - 1);
      if (++rx_at == 10 * bit) {
        std::putchar(got);
        rx_at = -1;
      }
    }
    quiet = byte < send.size() || rx_at >= 0 ? 0 : quiet + 1;
  }
  top->final();
  return 0;
}
