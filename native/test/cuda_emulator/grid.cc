// Runs the blocks of a grid, one after another, and the threads of a block in turns.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "test/cuda_emulator/emulator.h"
#include "test/cuda_emulator/fiber.h"

constinit thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace zerofleet::emulator {
namespace {

enum class State : std::uint8_t { kReady, kAtBlockBarrier, kAtWarpBarrier, kEnded };

struct Thread {
  Fiber fiber;
  dim3 index;
  State state = State::kReady;
  std::size_t num_bytes = 0;
  std::array<std::byte, kLaneBytes> value;  // its value for the warp barrier
  const std::byte* lanes = nullptr;         // values of all lanes
  unsigned parity = 0;                      // of the exchanges of which it is the lowest lane
};

/// Values of an exchange between lanes, by its lowest lane. There are two: a lane takes part in one exchange per pass
/// over the threads, and reads its result in the pass after, before the exchange after that is written.
using Lanes = std::array<std::array<std::array<std::byte, 32 * kLaneBytes>, 2>, 32>;

/// Lanes that have come to an exchange; the next ones are to bring the same mask.
struct Meeting {
  unsigned mask = 0, arrived = 0;
};
using Meetings = std::array<Meeting, 32>;  // by the lowest lane of the mask

/// State of a host thread that runs blocks; kept, because stacks are large.
struct Machine {
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<Lanes> lanes;        // by warp
  std::vector<Meetings> meetings;  // by warp
  std::vector<std::byte> shared;
  std::vector<std::size_t> order;
  std::size_t num_threads = 0, current = 0;
  std::mt19937 random{20261122};
};

Machine& machine() {
  static thread_local Machine here;
  return here;
}

constexpr unsigned kAllBlocks = std::numeric_limits<unsigned>::max();
std::atomic<unsigned> last_blocks{kAllBlocks};  // of the first dimension, that run

[[noreturn]] void give_up(const Machine& m, const std::string& what) {
  const Thread& thread = *m.threads[m.current];
  std::fprintf(stderr, "emulated CUDA device: %s (block %u,%u,%u, thread %u,%u,%u)\n", what.c_str(), blockIdx.x,
               blockIdx.y, blockIdx.z, thread.index.x, thread.index.y, thread.index.z);
  std::abort();
}

/// Returns true if the lane is the last one of its mask.
bool last_of_mask(Machine& m, std::size_t warp, std::size_t lane, unsigned mask) {
  Meeting& meeting = m.meetings[warp][static_cast<std::size_t>(std::countr_zero(mask))];
  if (meeting.arrived != 0 && meeting.mask != mask)
    give_up(m, "lanes of a warp wait for each other with different masks");
  meeting.mask = mask;
  meeting.arrived |= 1U << lane;
  if (meeting.arrived != mask) return false;
  meeting.arrived = 0;
  return true;
}

void release_warp(Machine& m, std::size_t warp, unsigned mask) {
  const std::size_t num_bytes = m.threads[m.current]->num_bytes;
  const auto lowest = static_cast<std::size_t>(std::countr_zero(mask));
  unsigned& parity = m.threads[warp * 32 + lowest]->parity;
  std::byte* lanes = m.lanes[warp][lowest][parity].data();
  parity ^= 1U;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1U) == 0) continue;
    Thread& thread = *m.threads[warp * 32 + lane];
    if (thread.num_bytes != num_bytes) give_up(m, "lanes of a warp meet at different operations");
    std::memcpy(lanes + lane * kLaneBytes, thread.value.data(),
                kLaneBytes);  // all of it: of a size that the compiler knows
    thread.lanes = lanes;
    thread.state = State::kReady;
  }
}

/// A pass over all threads that can run, in an order that differs from pass to pass.
bool run_ready_threads(Machine& m) {
  bool ran = false;
  for (std::size_t i = 0; i < m.num_threads; ++i) {
    const std::size_t index = m.order[i];
    if (i + 1 < m.num_threads) m.threads[m.order[i + 1]]->fiber.prefetch();
    Thread& thread = *m.threads[index];
    if (thread.state != State::kReady) continue;
    ran = true;
    m.current = index;
    threadIdx = thread.index;
    if (thread.fiber.resume()) thread.state = State::kEnded;
  }
  return ran;
}

void release_block(Machine& m) {
  std::size_t waiting = 0, ended = 0;
  for (std::size_t i = 0; i < m.num_threads; ++i) {
    waiting += m.threads[i]->state == State::kAtBlockBarrier ? 1 : 0;
    ended += m.threads[i]->state == State::kEnded ? 1 : 0;
  }
  if (waiting != m.num_threads) {
    for (std::size_t i = 0; i < m.num_threads; ++i) {
      if (m.threads[i]->state != State::kEnded) m.current = i;
    }
    give_up(m, std::to_string(waiting) + " of " + std::to_string(m.num_threads) + " threads wait for the block, " +
                   std::to_string(ended) + " have ended, the others wait for lanes that don't come");
  }
  for (std::size_t i = 0; i < m.num_threads; ++i) m.threads[i]->state = State::kReady;
}

void run_block(Machine& m, const std::function<void()>& thread) {
  std::ranges::fill(m.shared, std::byte{0xff});
  std::ranges::fill(m.meetings, Meetings{});
  for (std::size_t i = 0; i < m.num_threads; ++i) {
    m.threads[i]->state = State::kReady;
    m.threads[i]->parity = 0;
    m.threads[i]->fiber.start(thread);
  }
  std::ranges::shuffle(m.order, m.random);
  for (;;) {
    while (run_ready_threads(m)) {
    }
    const auto has_ended = [&](std::size_t i) { return m.threads[i]->state == State::kEnded; };
    if (std::ranges::all_of(m.order, has_ended)) return;
    release_block(m);
  }
}

void make_room(Machine& m, const dim3& block, std::size_t shared_bytes) {
  m.num_threads = std::size_t{block.x} * block.y * block.z;
  while (m.threads.size() < m.num_threads) m.threads.push_back(std::make_unique<Thread>());
  m.lanes.resize((m.num_threads + 31) / 32);
  m.meetings.resize(m.lanes.size());
  m.shared = std::vector<std::byte>(shared_bytes);  // new each time: its end is known to AddressSanitizer
  m.order.resize(m.num_threads);
  for (std::size_t i = 0; i < m.num_threads; ++i) {
    m.order[i] = i;
    const auto index = static_cast<unsigned>(i);
    m.threads[i]->index = dim3(index % block.x, index / block.x % block.y, index / block.x / block.y);
  }
}

}  // namespace

void run_grid(const dim3& grid, const dim3& block, std::size_t shared_bytes, const std::function<void()>& thread) {
  Machine& m = machine();
  make_room(m, block, shared_bytes);
  gridDim = grid;
  blockDim = block;
  const unsigned first = grid.x - std::min(grid.x, last_blocks.load());
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = first; x < grid.x; ++x) {
        blockIdx = dim3(x, y, z);
        run_block(m, thread);
      }
    }
  }
}

LastBlocks::LastBlocks(unsigned count) { last_blocks = count; }
LastBlocks::~LastBlocks() { last_blocks = kAllBlocks; }

const std::byte* exchange(unsigned mask, const void* value, std::size_t num_bytes) {
  Machine& m = machine();
  const std::size_t index = m.current, warp = index / 32, lane = index % 32;
  Thread& self = *m.threads[index];
  if ((mask >> lane & 1U) == 0) give_up(m, "a lane is not in the mask with which it comes");
  if (num_bytes > 0) std::memcpy(self.value.data(), value, num_bytes);
  self.num_bytes = num_bytes;
  self.state = State::kAtWarpBarrier;
  if (last_of_mask(m, warp, lane, mask)) release_warp(m, warp, mask);
  Fiber::pause();
  return self.lanes;
}

void wait_for_block() {
  machine().threads[machine().current]->state = State::kAtBlockBarrier;
  Fiber::pause();
}

int lane_id() { return static_cast<int>(machine().current % 32); }
std::byte* dynamic_shared_memory() { return machine().shared.data(); }

}  // namespace zerofleet::emulator
