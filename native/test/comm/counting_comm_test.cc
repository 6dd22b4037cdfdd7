#include "comm/counting_comm.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "comm/thread_comm.h"

using namespace zerofleet;

TEST_CASE("sent bytes: every piece that leaves its rank counts once per receiver, own pieces don't") {
  constexpr int kWorld = 3;
  auto comms = make_thread_comms(kWorld, std::chrono::seconds(30));
  std::vector<std::thread> threads;
  std::vector<SentBytes> exchanged(kWorld), gathered(kWorld), after(kWorld);
  for (std::size_t rank = 0; rank < kWorld; ++rank) {
    threads.emplace_back([&, rank, comm = std::move(comms[rank])]() mutable {
      CountingComm counting(std::move(comm));
      // Piece d has 10 (d + 1) bytes on every rank.
      const std::vector<Range> pieces{{0, 10}, {10, 30}, {30, 60}};
      std::vector<std::byte> data(60), recv(90);
      const auto own = static_cast<std::int64_t>(10 * (rank + 1));
      const std::vector<Range> recv_pieces{{0, own}, {own, 2 * own}, {2 * own, 3 * own}};
      counting.all_to_all(data, one_per_rank(pieces), recv, one_per_rank(recv_pieces));
      exchanged[rank] = counting.take();
      counting.all_gather(data, pieces);
      gathered[rank] = counting.take();
      counting.barrier();
      after[rank] = counting.take();
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::size_t rank = 0; rank < kWorld; ++rank) {
    const auto own = static_cast<std::int64_t>(10 * (rank + 1));
    CHECK(exchanged[rank].reduced == 60 - own);
    CHECK(gathered[rank].gathered == 2 * own);
    CHECK(exchanged[rank].gathered + gathered[rank].reduced == 0);
    CHECK(after[rank].reduced + after[rank].gathered == 0);
  }
}
