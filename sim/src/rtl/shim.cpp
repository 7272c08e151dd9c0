// The bench around the Verilated design: registers, AXI queues, and runs of many cycles per call. It asks the memory
// model for timing at address handshakes, and moves data in the cycle in which their beat transfers.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "Vtw_bench.h"
#include "Vtw_bench___024root.h"
#include "verilated.h"
// Generated for the configuration: `tw_entry` finds an entry of a memory in the design.
#include "scratchpads.h"
#ifdef TW_WAVES
#include "verilated_fst_c.h"
#endif

#define TW_EXPORT extern "C" __attribute__((visibility("default")))

#define TW_CORE(name) tw_bench__DOT__u_core__DOT__##name
#define TW_ISSUED(root, unit) root->TW_CORE(gen_issued__BRA__##unit##__KET____DOT__issued_q)
#define TW_STATES(root) root->TW_CORE(states)
#define TW_COUNTING(root) root->TW_CORE(u_regs__DOT__counting)
#define TW_RUNNING(root) root->TW_CORE(u_regs__DOT__running_q)
#define TW_RETIRED(root, unit) root->TW_CORE(u_regs__DOT__gen_retired__BRA__##unit##__KET____DOT__count_q)

// Verilator's function for everything that follows a clock edge, in versions that use this name.
void Vtw_bench___024root___eval_nba(Vtw_bench___024root*) __attribute__((weak));

namespace {

struct Burst {
    uint64_t first, slot, step, response;
    uint32_t error;
};

// The memory model is in Rust: it schedules a burst, and tells the cycle of a beat.
using Beat = uint64_t (*)(const Burst* burst, uint64_t n);
using Request = void (*)(void* context, uint64_t cycle, uint64_t addr, uint32_t beats, uint32_t write, Burst* burst);

struct Transfer {
    Burst burst;
    uint64_t addr;
    uint32_t beats, done;
    uint8_t id;
    uint64_t next;  // Cycle of the next beat, or of the response.
};

thread_local std::string failure;

// Sets whether the clock rose. The overloads cover the forms of Verilator 5.006 (the first one) to 5.048 (the last
// one). Returns false for other versions.
template <typename Root>
auto set_rose(Root* root, bool rose, int, int, int) -> decltype(root->__VnbaTriggered.at(0U) = rose, bool()) {
    root->__VnbaTriggered.at(0U) = rose;
    return true;
}
template <typename Root>
auto set_rose(Root* root, bool rose, int, int, long) -> decltype(root->__VnbaTriggered.set(0U, rose), bool()) {
    root->__VnbaTriggered.set(0U, rose);
    return true;
}
template <typename Root>
auto set_rose(Root* root, bool rose, int, long, long) -> decltype(root->__VnbaTriggered.setBit(0U, rose), bool()) {
    root->__VnbaTriggered.setBit(0U, rose);
    return true;
}
template <typename Root>
auto set_rose(Root* root, bool rose, long, long, long) -> decltype(root->__VnbaTriggered[0U] = uint64_t(rose), bool()) {
    root->__VnbaTriggered[0U] = uint64_t(rose);
    return true;
}
template <typename Root>
bool set_rose(Root*, bool, ...) {
    return false;
}

// Evaluates a rising clock edge when no input of the design has changed: runs the registers without checking which
// clocks rose, a check that takes a surprisingly long time. Returns false if this version of Verilator uses other
// names.
bool edge(Vtw_bench___024root* root) {
    if (!Vtw_bench___024root___eval_nba || !set_rose(root, true, 0, 0, 0)) return false;
    Vtw_bench___024root___eval_nba(root);
    // Newer versions keep the flag until they have seen it.
    set_rose(root, false, 0, 0, 0);
    return true;
}

template <typename T>
uint64_t low_bits(const T& value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T) < 8 ? sizeof(T) : 8);
    return bits;
}

}  // namespace

struct Bench {
    VerilatedContext context;
    Vtw_bench* top = nullptr;
    uint8_t* memory = nullptr;
    uint64_t memory_bytes = 0;
    Request request = nullptr;
    void* request_context = nullptr;
    Beat beat = nullptr;
    // Whether an input other than the memory's has changed since the last evaluation.
    bool changed = true;
    uint64_t cycle = 0;
    uint64_t bytes_read = 0, bytes_written = 0;
    std::deque<Transfer> reads, writes, responses;
    // Starts and retirements, if recorded. Each is the cycle shifted left by 3, plus twice the unit's number, plus 1
    // for a retirement.
    bool recording = false;
    uint32_t counts[8] = {};
    std::vector<uint64_t> events;
    // For each unit: cycles by instruction and state.
    std::vector<uint64_t> shares[4];
#ifdef TW_WAVES
    VerilatedFstC waves;
#endif

#if defined(TW_WAVES) || defined(TW_ASSERTIONS)
    static constexpr bool kBothEdges = true;
#else
    static constexpr bool kBothEdges = false;
#endif
    static constexpr uint32_t kBeatBytes = TW_BUS_BYTES;
    // Codes of states.
    static constexpr uint32_t kStates = 16, kEmpty = TW_STATE_EMPTY, kBusy = TW_STATE_BUSY;
    // Units whose instructions overlap. Their cycles belong to the oldest instruction.
    static constexpr bool kMoves[4] = {true, false, false, true};

    bool idle() const { return reads.empty() && writes.empty() && responses.empty(); }

    void dump(uint64_t half) {
#ifdef TW_WAVES
        waves.dump(cycle * 2 + half);
#else
        (void)half;
#endif
    }

    // Verilator looks up its context through the thread, where another bench can have left its own.
    void enter() { Verilated::threadContextp(&context); }

    // What the memory does in this cycle.
    bool reads_now = false, writes_now = false, answers_now = false;

    // Drives the memory's answers of the next cycle.
    void drive() {
        const uint64_t next = cycle + 1;
        reads_now = !reads.empty() && reads.front().next == next;
        writes_now = !writes.empty() && writes.front().next <= next;
        answers_now = !responses.empty() && responses.front().next <= next;
        top->next_r_valid_i = reads_now;
        top->next_w_ready_i = writes_now;
        top->next_b_valid_i = answers_now;
        if (reads_now) {
            const Transfer& t = reads.front();
            top->next_r_id_i = t.id;
            top->next_r_resp_i = t.burst.error ? 2 : 0;
            top->next_r_last_i = t.done + 1 == t.beats;
            if (t.burst.error) {
                std::memset(&top->next_r_data_i, 0, kBeatBytes);
            } else {
                std::memcpy(&top->next_r_data_i, memory + t.addr + uint64_t(t.done) * kBeatBytes, kBeatBytes);
            }
        }
        if (answers_now) top->next_b_resp_i = responses.front().burst.error ? 2 : 0;
    }

    // Handles what transfers in this cycle.
    void sample() {
        if (reads_now) {
            Transfer& t = reads.front();
            bytes_read += kBeatBytes;
            t.done++;
            if (t.done == t.beats) {
                reads.pop_front();
            } else {
                t.next = beat(&t.burst, t.done);
            }
        }
        if (answers_now) responses.pop_front();
        if (writes_now && top->w_valid_o) write_beat();
        if (top->ar_valid_o) {
            reads.push_back(accept(low_bits(top->ar_addr_o), top->ar_len_o + 1u, low_bits(top->ar_id_o), false));
        }
        if (top->aw_valid_o) writes.push_back(accept(low_bits(top->aw_addr_o), top->aw_len_o + 1u, 0, true));
    }

    Transfer accept(uint64_t addr, uint32_t beats, uint64_t id, bool write) {
        Transfer t{};
        request(request_context, cycle, addr, beats, write, &t.burst);
        t.addr = addr / kBeatBytes * kBeatBytes;
        t.beats = beats;
        t.id = uint8_t(id);
        t.next = beat(&t.burst, 0);
        return t;
    }

    void write_beat() {
        Transfer& t = writes.front();
        const uint64_t strobe = low_bits(top->w_strb_o);
        const uint8_t* data = reinterpret_cast<const uint8_t*>(&top->w_data_o);
        for (uint32_t i = 0; i < kBeatBytes; i++) {
            if (!(strobe >> i & 1)) continue;
            bytes_written++;
            if (!t.burst.error) memory[t.addr + uint64_t(t.done) * kBeatBytes + i] = data[i];
        }
        t.done++;
        if (bool(top->w_last_o) != (t.done == t.beats)) failure = "WLAST does not mark the last beat of a write burst";
        if (t.done < t.beats) {
            const uint64_t planned = beat(&t.burst, t.done);
            t.next = planned > cycle ? planned : cycle + 1;
            return;
        }
        t.next = t.burst.response > cycle ? t.burst.response : cycle + 1;
        responses.push_back(t);
        writes.pop_front();
    }

    // Runs a clock cycle. The design's outputs depend only on its registers, so they are valid since the last edge.
    // Waves show both edges, and assertions see the values before the edge.
    void tick() {
        sample();
        drive();
        if (kBothEdges || changed || !edge(top->rootp)) {
            top->clk_i = 0;
            top->eval();
            dump(0);
            top->clk_i = 1;
            top->eval();
            dump(1);
        }
        changed = false;
        cycle++;
    }

    // Returns whether the design has trapped and waits for its bursts.
    bool trapped() const { return TW_RUNNING(top->rootp) && !TW_COUNTING(top->rootp); }

    // Attributes the cycle that begins to an instruction. The design's registers still hold the counts of earlier
    // cycles.
    void share() {
        const auto* r = top->rootp;
        if (!TW_COUNTING(r)) return;
        for (uint32_t u = 0; u < 4; u++) {
            const uint32_t state = TW_STATES(r) >> (4 * u) & 0xf;
            if (state == kEmpty) continue;
            // Gemm and vector issue for the last instruction that started, and wait for the head of the queue.
            const uint32_t insn = kMoves[u] ? counts[2 * u + 1] : counts[2 * u] - (state == kBusy);
            if (shares[u].size() < (size_t(insn) + 1) * kStates) shares[u].resize((size_t(insn) + 1) * kStates);
            shares[u][size_t(insn) * kStates + state]++;
        }
    }

    // Records what started and retired in the cycle that just ended, from the design's counts.
    void record(uint64_t of) {
        const auto* r = top->rootp;
        const uint32_t now[8] = {
            TW_ISSUED(r, 0), TW_RETIRED(r, 0), TW_ISSUED(r, 1), TW_RETIRED(r, 1),
            TW_ISSUED(r, 2), TW_RETIRED(r, 2), TW_ISSUED(r, 3), TW_RETIRED(r, 3),
        };
        for (uint32_t k = 0; k < 8; k++) {
            if (now[k] != counts[k]) events.push_back(of << 3 | k);
            counts[k] = now[k];
        }
    }

    void reset() {
        top->rst_ni = 0;
        top->reg_valid_i = 0;
        // The design can still request a burst in the cycle whose edge takes the reset.
        for (int i = 0; i < 4; i++) {
            reads.clear();
            writes.clear();
            responses.clear();
            reads_now = writes_now = answers_now = false;
            changed = true;
            tick();
        }
        top->rst_ni = 1;
        changed = true;
        tick();
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

TW_EXPORT Bench* tw_new(uint8_t* memory, uint64_t memory_bytes, Request request, void* context, Beat beat, const char* waves) {
    Bench* b = new Bench;
    b->memory = memory;
    b->memory_bytes = memory_bytes;
    b->request = request;
    b->request_context = context;
    b->beat = beat;
#ifdef TW_WAVES
    b->context.traceEverOn(true);
#endif
    // By default, each context starts one thread per processor.
    b->context.threads(1);
    b->top = new Vtw_bench(&b->context);
#ifdef TW_WAVES
    b->top->trace(&b->waves, 99);
    b->waves.open(waves);
#else
    (void)waves;
#endif
    b->top->clk_i = 1;
    b->reset();
    return b;
}

TW_EXPORT void tw_free(Bench* b) {
    b->enter();
#ifdef TW_WAVES
    b->waves.close();
#endif
    b->top->final();
    delete b->top;
    delete b;
    Verilated::threadContextp(nullptr);
}

TW_EXPORT void tw_reset(Bench* b) {
    b->enter();
    b->reset();
}

TW_EXPORT void tw_write_reg(Bench* b, uint32_t addr, uint32_t value) {
    b->enter();
    b->top->reg_valid_i = 1;
    b->top->reg_write_i = 1;
    b->top->reg_addr_i = addr;
    b->top->reg_wdata_i = value;
    b->changed = true;
    b->tick();
    b->top->reg_valid_i = 0;
    b->top->reg_write_i = 0;
    b->changed = true;
}

// Takes no cycle, because reads are combinational.
TW_EXPORT uint32_t tw_read_reg(Bench* b, uint32_t addr) {
    b->enter();
    b->top->reg_valid_i = 1;
    b->top->reg_write_i = 0;
    b->top->reg_addr_i = addr;
    b->top->eval();
    const uint32_t value = b->top->reg_rdata_o;
    b->top->reg_valid_i = 0;
    b->changed = true;
    return value;
}

// Cycles from one question whether a run goes on to the next: a few milliseconds.
constexpr uint64_t kAsk = 4096;

// Runs until the interrupt is raised and no burst is in flight. Returns 0 then, 1 if `limit` cycles pass first without
// a trap, 2 if an assertion fails, and 3 once `goes_on`, which may be null, returns 0. It is called from time to time.
// Reads no registers meanwhile, which would cost time in each cycle.
TW_EXPORT int tw_run(Bench* b, uint64_t limit, int (*goes_on)()) {
    b->enter();
    failure.clear();
    int end = 1;
    b->events.clear();
    std::memset(b->counts, 0, sizeof(b->counts));
    for (auto& of : b->shares) of.clear();
    bool trapped = false;
    for (uint64_t i = 0; i < limit || trapped; i++) {
        if (goes_on && i % kAsk == 0 && !goes_on()) {
            end = 3;
            break;
        }
        // Check from one cycle before the limit, because a trap shows first in the cycle after it.
        if (i + 1 >= limit) trapped = b->trapped();
        if (b->recording) b->share();
        b->tick();
        // The doorbell write was cycle 0.
        if (b->recording) b->record(i + 1);
        if (b->top->irq_o && b->idle()) {
            end = 0;
            break;
        }
    }
#ifdef TW_WAVES
    b->waves.flush();
#endif
    return failure.empty() ? end : 2;
}

// Returns whether a cycle is a single call of the model's function for clock edges.
TW_EXPORT bool tw_has_direct_edges(Bench* b) {
    return !Bench::kBothEdges && Vtw_bench___024root___eval_nba && set_rose(b->top->rootp, false, 0, 0, 0);
}

TW_EXPORT void tw_record(Bench* b, bool on) { b->recording = on; }

// Returns what `record` recorded in the last run.
TW_EXPORT const uint64_t* tw_events(Bench* b, uint64_t* count) {
    *count = b->events.size();
    return b->events.data();
}

// Returns the cycles of a unit's instructions in the last run, by state: sixteen numbers per instruction.
TW_EXPORT const uint64_t* tw_shares(Bench* b, uint32_t unit, uint64_t* count) {
    *count = b->shares[unit].size();
    return b->shares[unit].data();
}

TW_EXPORT const char* tw_failure(Bench*) { return failure.c_str(); }

// Copies some entries of a memory. A param entry has nine rows.
TW_EXPORT void tw_read_entries(Bench* b, uint32_t mem, uint32_t first, uint32_t count, uint32_t bytes, uint8_t* to) {
    for (uint32_t i = 0; i < count; i++) {
        std::memcpy(to + size_t(i) * bytes, tw_entry(b->top->rootp, mem, first + i), bytes);
    }
}

TW_EXPORT void tw_take_bytes(Bench* b, uint64_t* read, uint64_t* written) {
    *read = b->bytes_read;
    *written = b->bytes_written;
    b->bytes_read = b->bytes_written = 0;
}

#ifdef TW_TRAINING
extern "C" void __gcov_dump(void);

// Writes the branch profile of the model.
TW_EXPORT void tw_dump_profile() { __gcov_dump(); }
#endif
