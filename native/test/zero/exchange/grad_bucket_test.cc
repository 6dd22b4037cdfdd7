#include "zero/exchange/grad_bucket.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "test/zero/fake_job.h"
#include "test/zero/narrow_values.h"
#include "zero/exchange/bucket_order.h"
#include "zero/exchange/leaf_arrivals.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// Three parameters over six blocks and three buckets of two: c fills bucket 0, b and the end of a bucket 1, a
/// bucket 2.
struct Fixture {
  std::vector<ParamSpec> specs{{"a", {3 * kBlockNumel}}, {"b", {100}}, {"c", {kBlockNumel + 1}}};
  ShardLayout layout{specs, 1, 2};
  ThreadPool pool{1};
  StagingPool staging{Device{}, static_cast<std::size_t>(2 * kBlockNumel) * sizeof(float)};
  std::vector<std::pair<std::int64_t, std::vector<float>>> full;
  BucketOrder in_order{{{0, 0}, {0, 1}, {0, 2}}, [this](const BucketId& id, Buffer contents) {
                         const auto values = contents.as<float>();
                         full.emplace_back(id.bucket, std::vector<float>(values.begin(), values.end()));
                         staging.announce_sending();
                         staging.give_back(std::move(contents), Context{});
                       }};
  GradBuckets buckets{{Device{}, &pool, best_cpu_isa()},
                      layout,
                      {DType::kF32, 1.0F},
                      staging,
                      [this](std::int64_t bucket, Buffer contents) { in_order.add({0, bucket}, std::move(contents)); }};

  void begin() {
    in_order.begin();
    buckets.begin();
  }

  void add(std::size_t param) {
    std::vector<float> grad(static_cast<std::size_t>(specs[param].numel()), static_cast<float>(param + 1));
    buckets.add(param, GradView::of(grad));
  }
  std::vector<std::int64_t> order() const {
    std::vector<std::int64_t> ids;
    for (const auto& [bucket, values] : full) ids.push_back(bucket);
    return ids;
  }
};

}  // namespace

TEST_CASE("buckets are handed on in order as soon as they are full") {
  Fixture f;
  f.begin();
  f.add(2);
  CHECK(f.order() == std::vector<std::int64_t>{0});
  f.add(1);
  CHECK(f.order() == std::vector<std::int64_t>{0});
  f.add(0);
  CHECK(f.order() == std::vector<std::int64_t>{0, 1, 2});
  CHECK(f.staging.allocated_bytes() <= 2 * 2 * kBlockNumel * sizeof(float));
}

TEST_CASE("a bucket that is full early waits for those before it") {
  Fixture f;
  f.begin();
  f.add(0);
  f.add(1);
  CHECK(f.order().empty());
  f.add(2);
  CHECK(f.order() == std::vector<std::int64_t>{0, 1, 2});
}

TEST_CASE("a bucket holds the gradients at their offsets and zeros as padding, in reused buffers too") {
  Fixture f;
  for (int leaf = 0; leaf < 3; ++leaf) {
    f.full.clear();
    f.begin();
    for (const std::size_t param : {2U, 0U, 1U}) f.add(param);
    REQUIRE(f.full.size() == 3);
    std::vector<float> flat;
    for (const std::size_t bucket : {2U, 1U, 0U}) {
      flat.insert(flat.end(), f.full[bucket].second.begin(), f.full[bucket].second.end());
    }
    std::vector<float> expected(static_cast<std::size_t>(f.layout.padded_numel()), 0.0F);
    for (std::size_t param = 0; param < 3; ++param) {
      const auto begin = static_cast<std::size_t>(f.layout.param_blocks(param).begin * kBlockNumel);
      std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(begin), f.specs[param].numel(),
                  static_cast<float>(param + 1));
    }
    CHECK(flat == expected);
  }
}

TEST_CASE(
    "a gradient has room in the bucket where it lies in one, enters it as it is, and no second bucket is opened for "
    "it") {
  Fixture f;
  f.begin();
  CHECK(f.buckets.room_for(2, DType::kBF16) == nullptr);
  CHECK(f.buckets.room_for(0, DType::kF32) == nullptr);  // in two buckets
  std::byte* c = f.buckets.room_for(2, DType::kF32);
  REQUIRE(c != nullptr);
  CHECK(f.buckets.room_for(2, DType::kF32) == c);
  CHECK(f.buckets.room_for(1, DType::kF32) == nullptr);  // a second one
  f.add(2);
  CHECK(f.buckets.room_for(1, DType::kF32) != nullptr);

  ThreadPool pool(1);
  GradBuckets halved({Device{}, &pool, best_cpu_isa()}, f.layout, {DType::kF32, 0.5F}, f.staging, {});
  halved.begin();
  CHECK(halved.room_for(2, DType::kF32) == nullptr);
}

TEST_CASE(
    "gradients that were computed in the bucket's type, in their room or elsewhere, make the buckets of rounded ones") {
  Fixture f;
  const GradBuckets::Format format{DType::kBF16, 1.0F};
  std::vector<std::vector<bf16>> contents;
  ThreadPool pool(1);
  GradBuckets buckets({Device{}, &pool, best_cpu_isa()}, f.layout, format, f.staging, [&](std::int64_t, Buffer bucket) {
    const auto values = bucket.as<bf16>().first(2 * kBlockNumel);
    contents.emplace_back(values.begin(), values.end());
    f.staging.announce_sending();
    f.staging.give_back(std::move(bucket), Context{});
  });
  const auto run = [&](bool rounds_itself) {
    contents.clear();
    buckets.begin();
    int in_room = 0;
    for (const std::size_t param : {2U, 1U, 0U}) {
      std::vector<float> grad(static_cast<std::size_t>(f.specs[param].numel()));
      for (std::size_t i = 0; i < grad.size(); ++i) grad[i] = 1.0F / static_cast<float>(i + param + 1);
      std::vector<std::byte> narrow = stored(grad, DType::kBF16);
      std::byte* room = buckets.room_for(param, DType::kBF16);
      if (!rounds_itself) {
        buckets.add(param, GradView::of(grad));
        continue;
      }
      if (room != nullptr) std::ranges::copy(narrow, room);
      in_room += room != nullptr ? 1 : 0;
      buckets.add(param, {room != nullptr ? room : narrow.data(), DType::kBF16, grad.size()});
    }
    CHECK(in_room == (rounds_itself ? 2 : 0));
    std::vector<std::uint16_t> bits;
    for (const auto& bucket : contents) {
      for (const bf16 value : bucket) bits.push_back(value.bits);
    }
    return bits;
  };
  const auto expected = run(false);
  CHECK(expected.size() == 6 * kBlockNumel);
  CHECK(run(true) == expected);
  CHECK(buckets.scratch_bytes() == 0);
}

TEST_CASE("arrivals: a second one, a wrong size, an unknown, a frozen and an absent parameter are refused") {
  const std::vector<ParamSpec> specs{{"a", {8}}, {"b", {4}}, {"c", {2}}, {"d", {1}}};
  LeafArrivals arrivals(specs, {GradRole::kTrained, GradRole::kTrained, GradRole::kFrozen, GradRole::kElsewhere});
  for (int leaf = 0; leaf < 2; ++leaf) {
    arrivals.begin();
    CHECK(code_of([&] { arrivals.require_all(); }) == "gradient_missing");
    CHECK(code_of([&] { arrivals.add(1, 3); }) == "invalid_argument");
    arrivals.add(1, 4);
    CHECK(code_of([&] { arrivals.add(1, 4); }) == "gradient_repeated");
    CHECK(code_of([&] { arrivals.add(2, 2); }) == "gradient_of_frozen");
    CHECK(code_of([&] { arrivals.add(3, 1); }) == "invalid_argument");
    CHECK(code_of([&] { arrivals.add(4, 1); }) == "invalid_argument");
    CHECK(code_of([&] { arrivals.require_all(); }) == "gradient_missing");
    arrivals.add(0, 8);
    CHECK(code_of([&] { arrivals.require_all(); }) == "none");
  }
}

TEST_CASE("staging: a third buffer is waited for while one is being sent, and made when none will come back") {
  StagingPool pool(Device{}, 64);
  Buffer first = pool.take(Context{});
  const Buffer second = pool.take(Context{});
  pool.announce_sending();
  std::thread sender([&] { pool.give_back(std::move(first), Context{}); });
  const Buffer third = pool.take(Context{});
  sender.join();
  CHECK(pool.allocated_bytes() == 128);
  const Buffer fourth = pool.take(Context{});
  CHECK(pool.allocated_bytes() == 192);
}
