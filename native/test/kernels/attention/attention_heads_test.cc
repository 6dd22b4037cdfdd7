#include "kernels/attention/cpu/attention_heads.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>

#include "test/sanitized.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

AttentionShape shape_of(std::int64_t batch, std::int64_t length, std::int64_t heads, std::int64_t kv_heads) {
  return {batch, length, heads, kv_heads, 128};
}

}  // namespace

TEST_CASE("attention has work for many threads in few long heads, and memory for no more heads than threads") {
  const AttentionShape few = shape_of(1, 4096, 8, 8);
  CHECK(few.num_kv_heads * (cpu::key_blocks(few) + cpu::row_steps(few)) == 384);
  CHECK(cpu::heads_at_once(few, 96) == 8);
  CHECK(cpu::heads_at_once(shape_of(4, 4096, 32, 8), 96) == 25);
  CHECK(cpu::heads_at_once(shape_of(4, 4096, 32, 8), 2) == 2);
  CHECK(cpu::heads_at_once(shape_of(4, 32'768, 32, 8), 8) == 2);
  CHECK(cpu::heads_at_once(shape_of(4, 256, 32, 8), 8) == 8);
  CHECK(cpu::heads_at_once(shape_of(4, 32'768, 32, 8), 1) == 1);
  CHECK(cpu::row_steps(shape_of(1, 1, 6, 2)) == 3);
  CHECK(cpu::row_steps(shape_of(1, 300, 6, 2)) == 9);
}

TEST_CASE("threads share a head where there is no other one, after its keys were packed") {
  cpu::HeadQueue queue({1, 2, 4}, 1, 3);
  const auto first = queue.take(0), second = queue.take(2);
  CHECK(first->numbers == Range{0, 1});
  CHECK(second->numbers == Range{1, 2});
  queue.finish(*second);
  queue.finish(*first);
  for (const int worker : {1, 0, 2}) CHECK(queue.take(worker)->head == 0);
  CHECK(queue.take(1)->numbers == Range{5, 6});
  CHECK(!queue.take(0));
}

TEST_CASE("a thread gets whole heads while every one has another to begin") {
  cpu::HeadQueue queue({5, 1, 3}, 2, 2);
  const auto first = queue.take(0), second = queue.take(1);
  CHECK(first->numbers == Range{0, 4});
  CHECK(second->numbers == Range{0, 4});
  CHECK(first->head != second->head);
  queue.finish(*second);
  const auto third = queue.take(1);  // in the slot that is free again
  CHECK(third->slot == second->slot);
  CHECK(third->head == 2);
  CHECK(third->numbers == Range{0, 4});
  queue.finish(*third);
  CHECK(queue.take(1)->numbers == Range{0, 1});  // one head is left for two threads
}

TEST_CASE("threads get every step of every head once, and a head begins where all of another one has ended") {
  constexpr cpu::HeadQueue::Size kSize{37, 3, 10};
  constexpr std::int64_t kSteps = kSize.packs + kSize.rows;
  constexpr int kThreads = 6, kSlots = 3;
  const int rounds = kSanitized ? 5 : 50;
  ThreadPool pool(kThreads);
  for (int round = 0; round < rounds; ++round) {
    cpu::HeadQueue queue(kSize, kSlots, kThreads);
    std::array<std::atomic<int>, kSize.heads * kSteps> seen{};
    std::array<std::atomic<std::int64_t>, kSize.heads> done{};
    std::array<std::atomic<std::int64_t>, kSlots> head_in{-1, -1, -1};
    std::atomic<int> early{0};
    pool.parallel_for(kThreads, [&](std::int64_t, int worker) {
      while (const auto steps = queue.take(worker)) {
        if (steps->numbers.begin == 0) {
          const std::int64_t before = head_in[static_cast<std::size_t>(steps->slot)].exchange(steps->head);
          if (before >= 0 && done[static_cast<std::size_t>(before)] != kSteps) ++early;
        }
        for (std::int64_t number = steps->numbers.begin; number < steps->numbers.end; ++number) {
          ++seen[static_cast<std::size_t>(steps->head * kSteps + number)];
        }
        done[static_cast<std::size_t>(steps->head)] += steps->numbers.size();
        queue.finish(*steps);
      }
    });
    CHECK(early == 0);
    for (const std::atomic<int>& count : seen) REQUIRE(count == 1);
  }
}
