#include "zero/partition/leaf_schedule.h"

#include <doctest/doctest.h>

#include <vector>

#include "test/zero/fake_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

TEST_CASE(
    "schedule: every leaf once, lanes whole, on one rank and in ascending order, for every world size, also with more "
    "ranks than lanes") {
  for (std::int64_t num_leaves = 1; num_leaves <= 12; ++num_leaves) {
    for (std::int64_t num_lanes = 1; num_lanes <= num_leaves; ++num_lanes) {
      for (int world_size = 1; world_size <= num_lanes + 2; ++world_size) {
        const LeafSchedule schedule(num_leaves, num_lanes, world_size);
        std::vector<int> seen(static_cast<std::size_t>(num_leaves), 0);
        std::int64_t num_lanes_met = 0;
        for (int rank = 0; rank < world_size; ++rank) {
          std::int64_t expected = -1;  // the next leaf of the lane
          for (const ScheduledLeaf& scheduled : schedule.schedule_of(rank)) {
            ++seen[static_cast<std::size_t>(scheduled.leaf)];
            REQUIRE(scheduled.leaf % num_lanes == scheduled.round * world_size + rank);
            REQUIRE(rank < schedule.num_senders(scheduled.round));
            REQUIRE(scheduled.first_of_lane == (scheduled.leaf < num_lanes));
            REQUIRE(scheduled.first_of_lane == (expected < 0));
            if (!scheduled.first_of_lane) REQUIRE(scheduled.leaf == expected);
            expected = scheduled.last_of_lane ? -1 : scheduled.leaf + num_lanes;
            num_lanes_met += scheduled.last_of_lane ? 1 : 0;
          }
          REQUIRE(expected == -1);
        }
        REQUIRE(std::ranges::all_of(seen, [](int count) { return count == 1; }));
        REQUIRE(num_lanes_met == num_lanes);
        std::int64_t num_sent = 0;
        for (std::int64_t round = 0; round < schedule.num_rounds(); ++round) {
          REQUIRE(schedule.num_senders(round) >= 1);
          num_sent += schedule.num_senders(round);
        }
        REQUIRE(num_sent == num_lanes);
      }
    }
  }
}

TEST_CASE("schedule: invalid arguments are refused") {
  CHECK(code_of([] { LeafSchedule(0, 0, 1); }) == "invalid_argument");
  CHECK(code_of([] { LeafSchedule(4, 0, 1); }) == "invalid_argument");
  CHECK(code_of([] { LeafSchedule(4, 5, 1); }) == "invalid_argument");
  CHECK(code_of([] { LeafSchedule(4, 2, 0); }) == "invalid_argument");
  CHECK(code_of([] { LeafSchedule(4, 2, 2); }) == "none");
}
