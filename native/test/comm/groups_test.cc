// Worlds within a world, for expert groups.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "test/comm/worlds.h"

using namespace zerofleet;
using namespace zerofleet::test;
using namespace std::chrono_literals;

namespace {

std::vector<std::string> all_well(int world_size) {
  return std::vector<std::string>(static_cast<std::size_t>(world_size), "none");
}

/// Checks that a gather within each group returns the world ranks of its members.
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
      const GlooOptions options{rank, kWorldSize, kRanksAddress, 30s};
      const auto world = connect_gloo(options, stores.store(rank));
      const auto group = connect_gloo_group(options, num_groups, stores.store(rank));
      const auto beside = connect_gloo_neighbours(options, num_groups, stores.store(rank));
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
