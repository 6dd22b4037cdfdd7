// Sums by the transport (for `numerics: fast`) and worlds within a world (for expert groups).
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>

#include "comm/solo_comm.h"
#include "core/philox.h"
#include "test/comm/nccl_world.h"
#include "test/comm/worlds.h"

using namespace zerofleet;
using namespace zerofleet::test;
using namespace std::chrono_literals;

namespace {

void add_floats(std::span<std::byte> sum, std::span<const std::byte> addend) {
  for (std::size_t at = 0; at < sum.size(); at += sizeof(float)) {
    float a = 0, b = 0;
    std::memcpy(&a, sum.data() + at, sizeof a);
    std::memcpy(&b, addend.data() + at, sizeof b);
    a += b;
    std::memcpy(sum.data() + at, &a, sizeof a);
  }
}

/// Uneven pieces after a gap of 3 floats; every fourth is empty. In floats.
std::vector<Range> uneven_pieces(int world_size) {
  std::vector<Range> pieces;
  std::int64_t end = 3;
  for (int rank = 0; rank < world_size; ++rank) {
    pieces.push_back({end, end + (rank % 4 == 3 ? 0 : 500 * (rank + 1) + 1)});
    end = pieces.back().end;
  }
  return pieces;
}

float value_of(int rank, std::int64_t place) {
  const auto bits = philox(9, {static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(place), 0, 0});
  return static_cast<float>((uniform_open(bits[0]) - 0.5) * std::exp2(static_cast<double>(place % 20)));
}

/// In the order that the ring states: from the rank after the owner on, the owner last.
float ring_sum(int owner, int world_size, std::int64_t place) {
  float sum = value_of((owner + 1) % world_size, place);
  for (int hop = 2; hop <= world_size; ++hop) sum = value_of((owner + hop) % world_size, place) + sum;
  return sum;
}

void check_reduce_scatter(Communicator& comm) {
  const auto pieces = uneven_pieces(comm.world_size());
  std::vector<Range> pieces_bytes;
  for (const Range& piece : pieces) pieces_bytes.push_back({piece.begin * 4, piece.end * 4});
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::vector<float> data(static_cast<std::size_t>(pieces.back().end));
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = value_of(comm.rank(), static_cast<std::int64_t>(i) + repeat);
    comm.reduce_scatter(std::as_writable_bytes(std::span(data)), pieces_bytes, add_floats);
    const Range own = pieces[static_cast<std::size_t>(comm.rank())];
    bool equal = true;
    for (std::int64_t i = own.begin; i < own.end; ++i) {
      equal &= data[static_cast<std::size_t>(i)] == ring_sum(comm.rank(), comm.world_size(), i + repeat);
    }
    CHECK(equal);
    comm.barrier();
  }
  const std::vector<Range> nothing(static_cast<std::size_t>(comm.world_size()));
  comm.reduce_scatter({}, nothing, add_floats);
  CHECK(code_of([&] { comm.reduce_scatter({}, {}, add_floats); }) == "invalid_argument");
}

std::vector<std::string> all_well(int world_size) {
  return std::vector<std::string>(static_cast<std::size_t>(world_size), "none");
}

/// What the ranks of the world learn from a gather within their groups: the world's ranks of each.
void check_members(Communicator& group, int world_rank, const std::function<int(int)>& world_rank_of) {
  std::vector<std::byte> ranks(static_cast<std::size_t>(group.world_size()));
  std::vector<Range> pieces;
  for (std::int64_t r = 0; r < group.world_size(); ++r) pieces.push_back({r, r + 1});
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::ranges::fill(ranks, std::byte{0xFF});
    ranks[static_cast<std::size_t>(group.rank())] = static_cast<std::byte>(world_rank);
    group.all_gather(ranks, pieces);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      CHECK(std::to_integer<int>(ranks[r]) == world_rank_of(static_cast<int>(r)));
    }
  }
}

void check_group(Communicator& group, int world_rank, int num_groups) {
  check_members(group, world_rank, [&](int r) { return world_rank % num_groups + r * num_groups; });
}

void check_neighbours(Communicator& group, int world_rank, int group_size) {
  CHECK(group.world_size() == group_size);
  check_members(group, world_rank, [&](int r) { return world_rank / group_size * group_size + r; });
}

}  // namespace

TEST_CASE("reduce_scatter sums uneven pieces in the order of the ring, on every communicator") {
  check_reduce_scatter(*make_solo_comm());
  for (const int world_size : {1, 2, 3, 5}) {
    CHECK(run_thread_world(world_size, check_reduce_scatter, 30s) == all_well(world_size));
  }
  for (const int world_size : {1, 2, 3, 4}) {
    for (const RunWorld run : built_in({run_gloo_world})) CHECK(run(world_size, check_reduce_scatter, 30s) == all_well(world_size));
    CHECK(run_fake_nccl_world(world_size, check_reduce_scatter, 30s) == all_well(world_size));
    CHECK(run_staged_fake_nccl_world(world_size, check_reduce_scatter, 30s) == all_well(world_size));
  }
}

TEST_CASE("reduce_scatter with a rank that leaves or stays silent is a typed error") {
  for (const RunWorld run : built_in({run_thread_world, run_gloo_world, run_fake_nccl_world})) {
    const auto reduce = [](Communicator& comm) {
      std::vector<std::byte> data(400);
      comm.reduce_scatter(data, std::vector<Range>{{0, 200}, {200, 400}}, add_floats);
    };
    const auto left = run(2, [&](Communicator& comm) {
      if (comm.rank() == 0) reduce(comm);
    }, 30s);
    CHECK(left == std::vector<std::string>{"comm_failed", "none"});
    std::atomic<bool> over{false};
    const auto silent = run(2, [&](Communicator& comm) {
      if (comm.rank() == 1) return over.wait(false);
      const std::string code = code_of([&] { reduce(comm); });
      over = true;
      over.notify_all();
      throw Error(code, "as it came");
    }, 300ms);
    CHECK(silent == std::vector<std::string>{"comm_timeout", "none"});
  }
}

TEST_CASE("groups of ranks are worlds of their own, beside the whole one") {
  constexpr int kWorldSize = 4;
  for (const int num_groups : {1, 2, 4}) {
    auto worlds = make_thread_comms(kWorldSize, 30s);
    auto groups = make_thread_groups(kWorldSize, num_groups, 30s);
    auto neighbours = make_thread_neighbours(kWorldSize, num_groups, 30s);
    const auto threads = run_threads(kWorldSize, [&](int rank) {
      const auto world = std::move(worlds[static_cast<std::size_t>(rank)]);
      const auto group = std::move(groups[static_cast<std::size_t>(rank)]);
      const auto beside = std::move(neighbours[static_cast<std::size_t>(rank)]);
      check_group(*group, rank, num_groups);
      check_neighbours(*beside, rank, num_groups);
      world->barrier();
    });
    CHECK(threads == all_well(kWorldSize));
  }
}

GLOO_TEST_CASE("groups of ranks over Gloo are worlds of their own, beside the whole one") {
  constexpr int kWorldSize = 4;
  for (const int num_groups : {1, 2, 4}) {
    RelayedStores stores(kWorldSize);
    const auto gloo = run_threads(kWorldSize, [&](int rank) {
      const GlooOptions options{rank, kWorldSize, "127.0.0.1", 30s};
      const auto world = connect_gloo(options, stores.of(rank));
      const auto group = connect_gloo_group(options, num_groups, stores.of(rank));
      const auto beside = connect_gloo_neighbours(options, num_groups, stores.of(rank));
      CHECK(group->world_size() == kWorldSize / num_groups);
      check_group(*group, rank, num_groups);
      check_neighbours(*beside, rank, num_groups);
      world->barrier();
    });
    CHECK(gloo == all_well(kWorldSize));
  }
}

TEST_CASE("a group fails without the others") {
  auto groups = make_thread_groups(4, 2, 30s);
  const auto codes = run_threads(4, [&](int rank) {
    const auto group = std::move(groups[static_cast<std::size_t>(rank)]);
    if (rank != 3) group->barrier();
  });
  CHECK(codes == std::vector<std::string>{"none", "comm_failed", "none", "none"});
}

TEST_CASE("groups that cannot be are refused") {
  CHECK(code_of([] { make_thread_groups(4, 3, 1s); }) == "invalid_argument");
  CHECK(code_of([] { make_thread_groups(4, 0, 1s); }) == "invalid_argument");
  CHECK(code_of([] { make_thread_groups(0, 1, 1s); }) == "invalid_argument");
}

GLOO_TEST_CASE("groups over Gloo that cannot be are refused") {
  KvStore store([](const std::string&, const KvStore::Bytes&) {});
  CHECK(code_of([&] { connect_gloo_group({0, 3, "127.0.0.1", 1s}, 2, store); }) == "invalid_argument");
}
