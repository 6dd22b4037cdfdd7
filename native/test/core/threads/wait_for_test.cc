#include "core/threads/wait_for.h"

#include <doctest/doctest.h>

#include <atomic>

#include "core/threads/thread_pool.h"
#include "test/sanitized.h"

using namespace zerofleet;
using namespace zerofleet::test;

TEST_CASE("threads that wait for their turn, awake or asleep, all get it") {
  constexpr int kThreads = 5;
  const int rounds = kSanitized ? 100 : 2000;
  ThreadPool pool(kThreads);
  WaitFor wait_for;
  std::atomic<int> turn{0};
  pool.parallel_for(kThreads, [&](std::int64_t index, int) {
    for (int round = 0; round < rounds; ++round) {
      const int own = round * kThreads + static_cast<int>(index);
      wait_for([&] { return turn == own; });
      turn = own + 1;
      wait_for.changed();
    }
  });
  CHECK(turn == rounds * kThreads);
}
