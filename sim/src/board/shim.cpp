// The bench around a board's Verilated design: its clock and the other end of its link, a serial line or, with TW_SPI,
// SPI.
#include <cstdint>
#include <deque>
#include <string>

#include "Vtw_board.h"
#include "verilated.h"

#define TW_EXPORT extern "C" __attribute__((visibility("default")))

// Levels at an SDRAM's pins; must match `Levels` in Rust.
struct Levels {
    bool clk, cke, cs_n;
    uint8_t command;
    uint32_t a, ba, dqm, dq, driven;
};

// Called when the levels at the SDRAM's pins can have changed. Returns the levels on its data pins, with `WRONG` set if
// the design used the chip incorrectly.
typedef uint64_t (*SdramFollow)(void* chip, const Levels* levels);

namespace {
thread_local std::string failure;
const uint64_t WRONG = uint64_t(1) << 32;
}

struct Board {
    VerilatedContext context;
    Vtw_board* top = nullptr;
    uint32_t clocks = 1;
    uint64_t cycle = 0;
    std::deque<uint8_t> to_board, from_board;
    // The frame being sent with its next bit lowest, its remaining bits, and the remaining cycles of the current bit.
    uint32_t sent_bits = 0, sent_left = 0, sent_cycles = 0;
    // The bits received of a byte, the bits still to read, and the cycles until the next one is read.
    uint32_t got_bits = 0, got_left = 0, got_cycles = 0;
    // Whether the line has been high since the last byte.
    bool rested = false;
    void* sdram = nullptr;
    SdramFollow sdram_follow = nullptr;

#ifdef TW_SPI
    void ticks(uint32_t count) {
        for (; count > 0; count--) tick();
    }

    // Exchanges a byte as the master. Each bit is put on the line half a bit before the clock rises, and sampled where
    // it rises.
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
    // Drives the line to the board for the next cycle.
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

    // Samples the line from the board, each bit in its middle.
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

    // Evaluates the design, then passes the pins to the SDRAM.
    void eval() {
        top->eval();
#ifdef TW_SDRAM
        Levels levels = {};
        levels.clk = top->sdram_clk;
#ifdef TW_SDRAM_CKE
        levels.cke = top->sdram_cke;
#else
        levels.cke = true;
#endif
#ifdef TW_SDRAM_CS
        levels.cs_n = top->sdram_cs_n;
#endif
        levels.command = uint8_t(top->sdram_ras_n << 2 | top->sdram_cas_n << 1 | top->sdram_we_n);
        levels.a = top->sdram_a;
        levels.ba = top->sdram_ba;
#ifdef TW_SDRAM_MASKS
        levels.dqm = top->sdram_dqm;
#endif
        levels.dq = top->sdram_dq_o;
        levels.driven = top->sdram_dq_oe;
        const uint64_t dq = sdram_follow(sdram, &levels);
        if (dq & WRONG && failure.empty()) failure = "the SDRAM is used incorrectly";
        // The design sees it at its next evaluation.
        top->sdram_dq_i = uint32_t(dq);
#endif
    }

    void tick() {
        drive();
        top->clk = 0;
        eval();
        top->clk = 1;
        eval();
        cycle++;
        sample();
    }
};

// Verilator's ways to end the simulation become messages for the caller.
void vl_finish(const char*, int, const char*) VL_MT_UNSAFE {}
void vl_stop(const char* file, int line, const char*) VL_MT_UNSAFE {
    if (failure.empty()) failure = std::string("assertion failed at ") + file + ":" + std::to_string(line);
}
void vl_fatal(const char* file, int line, const char*, const char* message) VL_MT_UNSAFE {
    if (failure.empty()) failure = std::string(message) + " at " + file + ":" + std::to_string(line);
}

TW_EXPORT Board* tw_board_new(uint32_t clocks_per_bit, void* sdram, SdramFollow sdram_follow) {
    Board* b = new Board;
    b->clocks = clocks_per_bit;
    b->sdram = sdram;
    b->sdram_follow = sdram_follow;
    // By default, each context starts one thread per processor.
    b->context.threads(1);
    b->top = new Vtw_board(&b->context);
    b->top->clk = 0;
#ifdef TW_SPI
    b->top->spi_cs_n = 1;
#else
    b->top->uart_rx = 1;
#endif
    b->eval();
    return b;
}

TW_EXPORT void tw_board_free(Board* b) {
    // Verilator looks up its context through the thread, where another bench can have left its own.
    Verilated::threadContextp(&b->context);
    b->top->final();
    delete b->top;
    delete b;
    Verilated::threadContextp(nullptr);
}

TW_EXPORT void tw_board_send(Board* b, const uint8_t* bytes, uint64_t count) {
    b->to_board.insert(b->to_board.end(), bytes, bytes + count);
}

// Runs until a byte has arrived from the board, or until `cycles` have passed since the last byte to the board was
// sent.
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

// Exchanges bytes over SPI. Does nothing on a serial line.
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
