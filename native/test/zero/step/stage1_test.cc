// ZeRO stage 1: lanes of several leaves, added up locally and exchanged once.
#include <doctest/doctest.h>

#include <mutex>

#include "test/zero/fake_job.h"
#include "zero/exchange/lane_accumulator.h"

using namespace zerofleet;
using namespace zerofleet::test;

TEST_CASE("stage 1: digests are equal for every world size up to the number of lanes") {
  for (const DType reduce_dtype : {DType::kBF16, DType::kF32}) {
    for (const std::int64_t num_lanes : {1, 3, 5, 7}) {
      FakeJob job;
      job.options.reduce_dtype = reduce_dtype;
      job.options.num_leaves = 7;
      job.options.num_lanes = num_lanes;
      const auto expected = job.digests(1, 3);
      for (int world_size = 2; world_size <= num_lanes; ++world_size) {
        CAPTURE(num_lanes);
        CAPTURE(world_size);
        CHECK(job.digests(world_size, 3) == expected);
      }
    }
  }
}

TEST_CASE("stage 1 with a lane for each leaf is stage 2, bit for bit; with fewer lanes it is not") {
  for (const DType reduce_dtype : {DType::kBF16, DType::kF32}) {
    FakeJob job;
    job.options.reduce_dtype = reduce_dtype;
    const auto expected = job.digests(2, 3);
    job.options.num_lanes = job.options.num_leaves;
    CHECK(job.digests(3, 3) == expected);
    job.options.num_lanes = 4;
    CHECK(job.digests(3, 3) != expected);
  }
}

TEST_CASE("stage 1: thread count, bucket size and the order of arrival don't change a bit") {
  FakeJob job;
  job.options.num_lanes = 3;
  const auto expected = job.digests(1, 3);
  job.num_threads = 3;
  job.options.bucket_bytes = 16384;
  job.reversed_arrival = false;
  CHECK(job.digests(2, 3) == expected);
  job.options.bucket_bytes = 1 << 22;
  CHECK(job.digests(3, 3) == expected);
}

TEST_CASE("stage 1 takes more ranks than lanes for an error") {
  FakeJob job;
  job.options.num_lanes = 2;
  CHECK(code_of([&] { job.on_ranks(3, [](ZeroOptimizer&, Communicator&) {}); }) == "too_many_ranks");
  job.options.num_lanes = 9;
  CHECK(code_of([&] { job.on_ranks(1, [](ZeroOptimizer&, Communicator&) {}); }) == "invalid_argument");
}

TEST_CASE("lanes: the sum goes on with the last leaf; single leaves pass through") {
  const std::vector<ParamSpec> specs{{"a", {5000}}, {"b", {3}}};
  const ShardLayout layout(specs, 1, 2);
  const LeafSchedule schedule(5, 2, 1);  // lanes 0, 2, 4 and 1, 3
  ThreadPool pool(2);
  LaneAccumulator lanes({Device{}, &pool, best_cpu_isa()}, layout, schedule, DType::kF32);
  CHECK(lanes.num_bytes() == static_cast<std::size_t>(layout.padded_numel()) * 4);
  for (int step = 0; step < 2; ++step) {
    for (const ScheduledLeaf& scheduled : schedule.schedule_of(0)) {
      lanes.begin_leaf(scheduled);
      const float one = scheduled.first_of_lane ? 1e8F : 1.5F;
      const std::vector<float> a(5000, one), b(3, 2.0F);
      const auto sum_a = lanes.add(0, GradView::of(a));
      const auto sum_b = lanes.add(1, GradView::of(b));
      REQUIRE(sum_a.has_value() == scheduled.last_of_lane);
      if (!sum_a) continue;
      const auto* values_a = reinterpret_cast<const float*>(sum_a->data);
      const auto* values_b = reinterpret_cast<const float*>(sum_b->data);
      const float expected_a = scheduled.leaf == 4 ? (1e8F + 1.5F) + 1.5F : 1e8F + 1.5F;
      for (int i = 0; i < 5000; ++i) REQUIRE(values_a[i] == expected_a);
      for (int i = 0; i < 3; ++i) REQUIRE(values_b[i] == (scheduled.leaf == 4 ? 6.0F : 4.0F));
    }
  }
  LaneAccumulator single({Device{}, &pool, best_cpu_isa()}, layout, LeafSchedule(3, 3, 1), DType::kF32);
  CHECK(single.num_bytes() == 0);
  const std::vector<float> b{1, 2, 3};
  single.begin_leaf({});
  CHECK(single.add(1, GradView::of(b))->data == reinterpret_cast<const std::byte*>(b.data()));
}
