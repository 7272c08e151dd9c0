// The bench around the core as an AXI peripheral: a host that accesses registers, a memory that answers with random
// delays, and protocol checks of the core's side of each channel.
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "Vtw_axi.h"
#include "verilated.h"

#define TW_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr uint32_t kBeatBytes = TW_BUS_BYTES;
// The longest burst of load and store, and of fetch. Fetch reads have identifier 0.
constexpr uint32_t kMostBeats = TW_MAX_BURST_BEATS, kMostFetchBeats = 16;
constexpr uint64_t kPageBytes = 4096;
constexpr uint32_t kBeatLog = kBeatBytes == 1    ? 0
                              : kBeatBytes == 2  ? 1
                              : kBeatBytes == 4  ? 2
                              : kBeatBytes == 8  ? 3
                              : kBeatBytes == 16 ? 4
                              : kBeatBytes == 32 ? 5
                                                 : 6;
// Responses.
constexpr uint8_t kOkay = 0, kSlaveError = 2;
// Cycles after which a register access counts as not answered.
constexpr uint32_t kMostCycles = 10000;
constexpr uint32_t kResetCycles = 16;
// Limits of the memory's queues. A full queue takes nothing more.
constexpr size_t kMostReads = 64, kMostWrites = 16, kMostEarlyBeats = 256;

thread_local std::string failure;

template <typename T>
uint64_t low_bits(const T& value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T) < 8 ? sizeof(T) : 8);
    return bits;
}

struct Burst {
    uint64_t addr;
    uint32_t beats, done;
    uint64_t ready_at;
    bool error;
};

struct Beat {
    uint8_t data[kBeatBytes];
    uint64_t strobe;
    bool last;

    bool operator==(const Beat& other) const {
        return std::memcmp(data, other.data, kBeatBytes) == 0 && strobe == other.strobe && last == other.last;
    }
};

struct Write {
    Burst burst;
    std::vector<Beat> beats;
};

// A channel whose source is the core. Keeps what the core offered in the previous cycle if it was not taken.
template <typename Payload>
struct Source {
    bool stands = false;
    Payload payload{};

    // Checks the channel in this cycle.
    void check(const char* channel, bool valid, bool ready, const Payload& now) {
        if (stands && !valid) failure = std::string(channel) + "VALID falls before READY";
        if (stands && valid && !(now == payload)) failure = std::string(channel) + " changes before READY";
        stands = valid && !ready;
        payload = now;
    }
};

struct Address {
    uint64_t addr;
    uint32_t len, size, burst, id, rest;

    bool operator==(const Address& other) const {
        return addr == other.addr && len == other.len && size == other.size && burst == other.burst && id == other.id &&
               rest == other.rest;
    }
};

}  // namespace

// Counts of what passed, so that callers can check that a case really occurred.
struct Traffic {
    uint64_t read_bursts, write_bursts;
    // Cycles in which an offer of the core was not taken, summed over channels.
    uint64_t held;
    // Beats of a read that arrived between beats of another read.
    uint64_t interleaved;
    // Beats of a write taken before its address.
    uint64_t early;
    // Bursts answered with an error.
    uint64_t errors;
};

struct Peripheral {
    VerilatedContext context;
    Vtw_axi* top = nullptr;
    // The buffer, its bus address, its size, and how many of its bytes answer without an error.
    uint8_t* memory = nullptr;
    uint64_t from = 0, bytes = 0, answering = 0;
    // In how many of sixteen cycles a possible transfer is held back.
    uint32_t pressure = 0;
    uint64_t random = 1;
    uint64_t cycle = 0;
    Traffic traffic{};

    Source<Address> ar, aw;
    Source<Beat> w;
    Source<uint32_t> host_r, host_b;

    std::deque<Burst> reads[2];
    // The read whose beat is offered, and the read whose burst is not finished; -1 for none.
    int r_stands = -1, r_open = -1;
    std::deque<Burst> addresses;
    std::deque<Beat> beats;
    std::deque<Write> writes, answers;
    bool b_stands = false;
    // Whether the next address is taken only once its data are there, and whether data are taken before their address.
    bool waits_for_data = false, takes_early = false;

    // What passed between the host and the registers in the last cycle.
    bool host_aw = false, host_w = false, host_b_taken = false, host_ar = false, host_r_taken = false;
    uint32_t host_data = 0;
    // Accesses that are not answered yet.
    int host_addresses = 0, host_words = 0, host_reads = 0;

    uint64_t draw(uint64_t below) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return (random >> 20) % below;
    }
    bool hold() { return draw(16) < pressure; }

    bool idle() const {
        return reads[0].empty() && reads[1].empty() && addresses.empty() && beats.empty() && writes.empty() &&
               answers.empty() && !top->m_axi_arvalid && !top->m_axi_awvalid && !top->m_axi_wvalid;
    }

    // Verilator looks up its context through the thread, where another bench can have left its own.
    void enter() { Verilated::threadContextp(&context); }

    uint64_t later() { return cycle + 2 + (pressure ? draw(24) : 0); }

    // Drives the memory's side of the bus for the cycle that begins.
    void drive() {
        top->m_axi_arready = reads[0].size() + reads[1].size() < kMostReads && !hold();
        const bool data_there = w.stands || (addresses.empty() && !beats.empty());
        top->m_axi_awready = addresses.size() < kMostWrites && !hold() && (!waits_for_data || data_there);
        top->m_axi_wready = beats.size() < kMostEarlyBeats && !hold() && (!addresses.empty() || takes_early);

        if (r_stands < 0 && !hold()) {
            int found[2], count = 0;
            for (int id = 0; id < 2; id++) {
                if (!reads[id].empty() && reads[id].front().ready_at <= cycle) found[count++] = id;
            }
            if (count > 0) r_stands = found[pressure ? draw(count) : 0];
            // Without pressure, finish each burst before the next, and take the older one first.
            if (!pressure && count > 1) r_stands = r_open >= 0 ? r_open : reads[1].front().ready_at < reads[0].front().ready_at;
        }
        top->m_axi_rvalid = r_stands >= 0;
        if (r_stands >= 0) {
            const Burst& burst = reads[r_stands].front();
            top->m_axi_rid = r_stands;
            top->m_axi_rlast = burst.done + 1 == burst.beats;
            top->m_axi_rresp = burst.error ? kSlaveError : kOkay;
            std::memset(&top->m_axi_rdata, 0xee, kBeatBytes);
            if (!burst.error) {
                const uint64_t at = burst.addr - from + uint64_t(burst.done) * kBeatBytes;
                std::memcpy(&top->m_axi_rdata, memory + at, kBeatBytes);
            }
        }
        if (!b_stands && !answers.empty() && answers.front().burst.ready_at <= cycle && !hold()) {
            b_stands = true;
            commit(answers.front());
        }
        top->m_axi_bvalid = b_stands;
        if (b_stands) {
            top->m_axi_bid = 0;
            top->m_axi_bresp = answers.front().burst.error ? kSlaveError : kOkay;
        }
    }

    // Writes to memory. A write must take effect exactly when it is answered.
    void commit(const Write& write) {
        if (write.burst.error) return;
        uint64_t at = write.burst.addr - from;
        for (const Beat& beat : write.beats) {
            for (uint32_t i = 0; i < kBeatBytes; i++) {
                if (beat.strobe >> i & 1) memory[at + i] = beat.data[i];
            }
            at += kBeatBytes;
        }
    }

    // Checks the rules that the core's side must follow, whatever is taken.
    void check() {
        const Address read{low_bits(top->m_axi_araddr), top->m_axi_arlen,  top->m_axi_arsize,
                           top->m_axi_arburst,          top->m_axi_arid,   uint32_t(top->m_axi_arcache << 3 | top->m_axi_arprot)};
        const Address write{low_bits(top->m_axi_awaddr), top->m_axi_awlen, top->m_axi_awsize,
                            top->m_axi_awburst,          top->m_axi_awid,  uint32_t(top->m_axi_awcache << 3 | top->m_axi_awprot)};
        traffic.held += (top->m_axi_arvalid && !top->m_axi_arready) + (top->m_axi_awvalid && !top->m_axi_awready) +
                        (top->m_axi_wvalid && !top->m_axi_wready);
        ar.check("AR", top->m_axi_arvalid, top->m_axi_arready, read);
        aw.check("AW", top->m_axi_awvalid, top->m_axi_awready, write);
        w.check("W", top->m_axi_wvalid, top->m_axi_wready, beat());
        host_r.check("the registers' R", top->s_axi_rvalid, top->s_axi_rready, top->s_axi_rdata);
        host_b.check("the registers' B", top->s_axi_bvalid, top->s_axi_bready, top->s_axi_bresp);
        if (top->s_axi_rvalid && host_reads == 0) failure = "the registers raise RVALID without a read";
        if (top->s_axi_bvalid && (host_addresses == 0 || host_words == 0)) failure = "the registers raise BVALID without a write";
        if (top->s_axi_rvalid && top->s_axi_rresp != kOkay) failure = "a register read is answered with an error";
        if (top->s_axi_bvalid && top->s_axi_bresp != kOkay) failure = "a register write is answered with an error";
    }

    Beat beat() const {
        Beat now;
        std::memcpy(now.data, &top->m_axi_wdata, kBeatBytes);
        now.strobe = low_bits(top->m_axi_wstrb);
        now.last = top->m_axi_wlast;
        return now;
    }

    // Accepts a burst into the memory's queues.
    Burst accept(const char* channel, const Address& address, uint32_t most) {
        auto fail = [&](const char* what) { failure = std::string(channel) + ": " + what; };
        const uint32_t beats = address.len + 1;
        const uint64_t size = uint64_t(beats) * kBeatBytes;
        if (address.burst != 1) fail("the burst is not incrementing");
        if (address.size != kBeatLog) fail("beats do not have the full bus width");
        if (beats > most) fail("the burst is too long");
        if (address.addr % kBeatBytes != 0) fail("the address is not aligned to a beat");
        if (address.addr % kPageBytes + size > kPageBytes) fail("the burst crosses 4 KiB");
        if (address.addr < from || address.addr + size > from + bytes) fail("the burst is outside the buffer");
        const bool error = address.addr + size > from + answering;
        traffic.errors += error;
        return Burst{address.addr, beats, 0, later(), error};
    }

    // Handles what transfers at the end of the cycle.
    void sample() {
        if (top->m_axi_arvalid && top->m_axi_arready) {
            reads[top->m_axi_arid & 1].push_back(accept("AR", ar.payload, top->m_axi_arid & 1 ? kMostBeats : kMostFetchBeats));
            traffic.read_bursts++;
        }
        if (top->m_axi_awvalid && top->m_axi_awready) {
            addresses.push_back(accept("AW", aw.payload, kMostBeats));
            traffic.write_bursts++;
            waits_for_data = pressure && draw(4) == 0;
            takes_early = pressure && draw(2) == 0;
        }
        if (top->m_axi_wvalid && top->m_axi_wready) {
            traffic.early += addresses.empty();
            beats.push_back(w.payload);
        }
        while (!addresses.empty() && !beats.empty()) {
            if (writes.empty()) writes.push_back(Write{addresses.front(), {}});
            Write& write = writes.back();
            write.beats.push_back(beats.front());
            const bool whole = write.beats.size() == write.burst.beats;
            if (beats.front().last != whole) failure = "WLAST does not mark the last beat of a burst";
            beats.pop_front();
            if (whole) {
                write.burst.ready_at = later();
                answers.push_back(write);
                writes.pop_front();
                addresses.pop_front();
            }
        }
        if (r_stands >= 0 && top->m_axi_rready) {
            traffic.interleaved += r_open >= 0 && r_open != r_stands;
            Burst& burst = reads[r_stands].front();
            burst.done++;
            r_open = r_stands;
            if (burst.done == burst.beats) {
                reads[r_stands].pop_front();
                r_open = -1;
            }
            r_stands = -1;
        }
        if (b_stands && top->m_axi_bready) {
            answers.pop_front();
            b_stands = false;
        }
        host_aw = top->s_axi_awvalid && top->s_axi_awready;
        host_w = top->s_axi_wvalid && top->s_axi_wready;
        host_ar = top->s_axi_arvalid && top->s_axi_arready;
        host_b_taken = top->s_axi_bvalid && top->s_axi_bready;
        host_r_taken = top->s_axi_rvalid && top->s_axi_rready;
        host_addresses += host_aw - host_b_taken;
        host_words += host_w - host_b_taken;
        host_reads += host_ar - host_r_taken;
        if (host_r_taken) host_data = top->s_axi_rdata;
    }

    void tick() {
        drive();
        top->aclk = 0;
        top->eval();
        check();
        sample();
        top->aclk = 1;
        top->eval();
        cycle++;
    }

    void reset() {
        top->aresetn = 0;
        for (uint32_t i = 0; i < kResetCycles; i++) {
            top->aclk = 0;
            top->eval();
            // From the first edge on, nothing may be offered.
            if (i > 0 && (top->m_axi_arvalid || top->m_axi_awvalid || top->m_axi_wvalid || top->s_axi_bvalid || top->s_axi_rvalid)) {
                failure = "VALID is high in reset";
            }
            top->aclk = 1;
            top->eval();
        }
        top->aresetn = 1;
    }

    uint32_t delay() { return pressure ? draw(4) : 0; }

    void write_reg(uint32_t addr, uint32_t value) {
        const uint32_t address_at = delay(), word_at = delay(), answer_at = delay();
        bool address = false, word = false, done = false;
        top->s_axi_awaddr = addr;
        top->s_axi_wdata = value;
        top->s_axi_wstrb = 0xf;
        for (uint32_t i = 0; i < kMostCycles && !done && failure.empty(); i++) {
            top->s_axi_awvalid = !address && i >= address_at;
            top->s_axi_wvalid = !word && i >= word_at;
            top->s_axi_bready = i >= answer_at;
            tick();
            address |= host_aw;
            word |= host_w;
            done = host_b_taken;
        }
        top->s_axi_awvalid = top->s_axi_wvalid = top->s_axi_bready = 0;
        if (!done && failure.empty()) failure = "a register write is not answered";
    }

    uint32_t read_reg(uint32_t addr) {
        const uint32_t address_at = delay(), answer_at = delay();
        bool address = false, done = false;
        top->s_axi_araddr = addr;
        for (uint32_t i = 0; i < kMostCycles && !done && failure.empty(); i++) {
            top->s_axi_arvalid = !address && i >= address_at;
            top->s_axi_rready = i >= answer_at;
            tick();
            address |= host_ar;
            done = host_r_taken;
        }
        top->s_axi_arvalid = top->s_axi_rready = 0;
        if (!done && failure.empty()) failure = "a register read is not answered";
        return host_data;
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

TW_EXPORT Peripheral* tw_axi_new(uint8_t* memory, uint64_t from, uint64_t bytes, uint64_t answering, uint32_t pressure,
                                 uint64_t seed) {
    failure.clear();
    Peripheral* p = new Peripheral;
    p->memory = memory;
    p->from = from;
    p->bytes = bytes;
    p->answering = answering;
    p->pressure = pressure;
    p->random = seed * 0x9e3779b97f4a7c15 | 1;
    // By default, each context starts one thread per processor.
    p->context.threads(1);
    p->top = new Vtw_axi(&p->context);
    p->reset();
    return p;
}

TW_EXPORT void tw_axi_free(Peripheral* p) {
    p->enter();
    p->top->final();
    delete p->top;
    delete p;
    Verilated::threadContextp(nullptr);
}

TW_EXPORT void tw_axi_write_reg(Peripheral* p, uint32_t addr, uint32_t value) {
    p->enter();
    p->write_reg(addr, value);
}

TW_EXPORT uint32_t tw_axi_read_reg(Peripheral* p, uint32_t addr) {
    p->enter();
    return p->read_reg(addr);
}

// Runs until the interrupt is high, for at most `cycles`. Returns whether it is high.
TW_EXPORT bool tw_axi_run(Peripheral* p, uint64_t cycles) {
    p->enter();
    for (uint64_t i = 0; i < cycles && !p->top->irq && failure.empty(); i++) p->tick();
    return p->top->irq;
}

TW_EXPORT void tw_axi_set_pressure(Peripheral* p, uint32_t pressure) { p->pressure = pressure; }

TW_EXPORT uint64_t tw_axi_cycles(const Peripheral* p) { return p->cycle; }

TW_EXPORT bool tw_axi_idle(const Peripheral* p) { return p->idle(); }

TW_EXPORT void tw_axi_traffic(const Peripheral* p, Traffic* to) { *to = p->traffic; }

// Returns the error that the core caused on this thread since the last call, and clears it.
TW_EXPORT uint64_t tw_axi_failure(char* to, uint64_t room) {
    const uint64_t count = failure.size() < room ? failure.size() : room;
    std::memcpy(to, failure.data(), count);
    failure.clear();
    return count;
}
