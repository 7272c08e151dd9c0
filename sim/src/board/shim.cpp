// The bench around a board's Verilated design: its clock, and the other end of its link, a serial line or, with TW_SPI, SPI.
#include <cstdint>
#include <deque>
#include <string>

#include "Vtw_board.h"
#include "verilated.h"

#define TW_EXPORT extern "C" __attribute__((visibility("default")))

// What a chip of SDRAM does at a rising edge of its clock: gives the data that it then drives, `NOBODY` where it drives none, and
// `WRONG` where the design did something wrong.
typedef uint64_t (*SdramEdge)(void* chip, uint32_t command, uint32_t a, uint32_t ba, uint32_t dqm, uint64_t dq);

namespace {
thread_local std::string failure;
const uint64_t NOBODY = uint64_t(1) << 32, WRONG = uint64_t(1) << 33;
}

struct Board {
    VerilatedContext context;
    Vtw_board* top = nullptr;
    uint32_t clocks = 1;
    uint64_t cycle = 0;
    std::deque<uint8_t> to_board, from_board;
    // The frame that is sent, its next bit lowest; how many of its bits are left, and cycles of the one on the line.
    uint32_t sent_bits = 0, sent_left = 0, sent_cycles = 0;
    // What has come of a byte, how many of its bits are to be read, and cycles until the next is.
    uint32_t got_bits = 0, got_left = 0, got_cycles = 0;
    // The line has been high since the last byte.
    bool rested = false;
    void* sdram = nullptr;
    SdramEdge sdram_edge = nullptr;
    uint64_t sdram_dq = NOBODY;

#ifdef TW_SPI
    void ticks(uint32_t count) {
        for (; count > 0; count--) tick();
    }

    // A byte of the master's, and the slave's: each bit is put on the line half a bit before the clock rises, and taken where it does.
    uint8_t exchange(uint8_t byte) {
        const uint32_t half = clocks / 2;
        uint8_t got = 0;
        for (int bit = 7; bit >= 0; bit--) {
            top->spi_mosi = byte >> bit & 1;
            ticks(half);
            got = uint8_t(got << 1 | top->spi_miso);
            top->spi_sck = 1;
            ticks(clocks - half);
            top->spi_sck = 0;
        }
        return got;
    }

    void drive() {}

    void sample() {}
#else
    // The line to the board in the next cycle.
    void drive() {
        if (sent_cycles > 0) {
            sent_cycles--;
            return;
        }
        if (sent_left == 0) {
            if (to_board.empty()) return;
            // Start bit, data with the lowest first, stop bit.
            sent_bits = uint32_t(to_board.front()) << 1 | 0x200;
            sent_left = 10;
            to_board.pop_front();
        }
        top->uart_rx = sent_bits & 1;
        sent_bits >>= 1;
        sent_left--;
        sent_cycles = clocks - 1;
    }

    // Reads the line from the board: each bit in its middle.
    void sample() {
        const bool line = top->uart_tx;
        if (got_left == 0) {
            if (line) {
                rested = true;
            } else if (rested) {
                rested = false;
                got_left = 9;
                got_cycles = clocks + clocks / 2;
            }
            return;
        }
        if (--got_cycles > 0) return;
        got_cycles = clocks;
        if (--got_left > 0) {
            got_bits = got_bits >> 1 | uint32_t(line) << 7;
        } else {
            rested = line;
            from_board.push_back(uint8_t(got_bits));
            got_bits = 0;
        }
    }
#endif

#ifdef TW_SDRAM
    // The SDRAM's clock rises in the middle of a cycle, with the falling edge of the design's, at which the design takes what the
    // chip drove since the last one.
    void sdram_rises() {
        const uint64_t dq = top->sdram_dq_oe ? top->sdram_dq_o : NOBODY;
        const uint32_t command = top->sdram_ras_n << 2 | top->sdram_cas_n << 1 | top->sdram_we_n;
#ifdef TW_SDRAM_MASKS
        const uint32_t dqm = top->sdram_dqm;
#else
        const uint32_t dqm = 0;
#endif
        sdram_dq = sdram_edge(sdram, command, top->sdram_a, top->sdram_ba, dqm, dq);
        if (sdram_dq & WRONG) {
            if (failure.empty()) failure = "the SDRAM is used wrongly";
            sdram_dq &= ~WRONG;
        }
        // In the first half of the time the chip's data are not there yet.
        put_dq(sdram_dq == NOBODY ? 0x5a5a5a5a : ~sdram_dq);
    }

    void put_dq(uint64_t word) { top->sdram_dq_i = word; }
#endif

    void tick() {
        drive();
        top->clk = 0;
        top->eval();
#ifdef TW_SDRAM
        sdram_rises();
#endif
        top->clk = 1;
        top->eval();
#ifdef TW_SDRAM
        if (sdram_dq != NOBODY) put_dq(sdram_dq);
#endif
        cycle++;
        sample();
    }
};

// The simulation's own ways to end are turned into a message for the caller.
void vl_finish(const char*, int, const char*) VL_MT_UNSAFE {}
void vl_stop(const char* file, int line, const char*) VL_MT_UNSAFE {
    if (failure.empty()) failure = std::string("assertion failed at ") + file + ":" + std::to_string(line);
}
void vl_fatal(const char* file, int line, const char*, const char* message) VL_MT_UNSAFE {
    if (failure.empty()) failure = std::string(message) + " at " + file + ":" + std::to_string(line);
}

TW_EXPORT Board* tw_board_new(uint32_t clocks_per_bit, void* sdram, SdramEdge sdram_edge) {
    Board* b = new Board;
    b->clocks = clocks_per_bit;
    b->sdram = sdram;
    b->sdram_edge = sdram_edge;
    // Otherwise each context keeps a thread for every processor.
    b->context.threads(1);
    b->top = new Vtw_board(&b->context);
    b->top->clk = 0;
#ifdef TW_SPI
    b->top->spi_cs_n = 1;
#else
    b->top->uart_rx = 1;
#endif
    b->top->eval();
    return b;
}

TW_EXPORT void tw_board_free(Board* b) {
    // Verilator's own code looks for its context through the thread, where another bench may have left one.
    Verilated::threadContextp(&b->context);
    b->top->final();
    delete b->top;
    delete b;
    Verilated::threadContextp(nullptr);
}

TW_EXPORT void tw_board_send(Board* b, const uint8_t* bytes, uint64_t count) {
    b->to_board.insert(b->to_board.end(), bytes, bytes + count);
}

// Runs until a byte has come from the board, or `cycles` have passed since the last byte to the board has gone.
TW_EXPORT uint64_t tw_board_run(Board* b, uint64_t cycles, uint8_t* to, uint64_t room) {
    Verilated::threadContextp(&b->context);
    failure.clear();
    for (uint64_t quiet = 0; b->from_board.empty() && quiet < cycles && failure.empty(); quiet++) {
        if (!b->to_board.empty()) quiet = 0;
        b->tick();
    }
    uint64_t count = 0;
    for (; count < room && !b->from_board.empty(); count++) {
        to[count] = b->from_board.front();
        b->from_board.pop_front();
    }
    return count;
}

// Exchanges bytes over SPI, where that is the link.
TW_EXPORT void tw_board_exchange(Board* b, uint8_t* bytes, uint64_t count) {
#ifdef TW_SPI
    Verilated::threadContextp(&b->context);
    failure.clear();
    b->top->spi_cs_n = 0;
    b->ticks(b->clocks / 2);
    for (uint64_t at = 0; at < count && failure.empty(); at++) bytes[at] = b->exchange(bytes[at]);
    b->ticks(b->clocks / 2);
    b->top->spi_cs_n = 1;
    b->ticks(b->clocks);
#endif
}

TW_EXPORT void tw_board_clear(Board* b) { b->from_board.clear(); }

TW_EXPORT uint64_t tw_board_cycles(const Board* b) { return b->cycle; }

TW_EXPORT const char* tw_board_failure(const Board*) { return failure.c_str(); }
