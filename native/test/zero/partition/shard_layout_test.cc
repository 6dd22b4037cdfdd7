#include "zero/partition/shard_layout.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"

using namespace zerofleet;

namespace {

std::vector<ParamSpec> random_params(std::mt19937& random) {
  std::vector<ParamSpec> params(1 + random() % 12);
  for (ParamSpec& param : params) {
    // Many sizes at the edges of blocks, some of many blocks.
    const std::int64_t blocks = random() % 9, edge = static_cast<std::int64_t>(random() % 3) - 1;
    param.shape = {std::max<std::int64_t>(1, blocks * kBlockNumel + edge)};
  }
  return params;
}

/// Every block of every bucket belongs to exactly one rank, in rank order, and no rank has two more than another.
void check_ownership(const ShardLayout& layout) {
  std::vector<std::int64_t> totals(static_cast<std::size_t>(layout.world_size()), 0);
  std::int64_t next_end = layout.num_blocks();
  for (std::int64_t bucket = 0; bucket < layout.num_buckets(); ++bucket) {
    const Range blocks = layout.bucket_blocks(bucket);
    REQUIRE(blocks.end == next_end);
    REQUIRE(!blocks.empty());
    next_end = blocks.begin;
    REQUIRE(layout.bucket_of_block(blocks.begin) == bucket);
    REQUIRE(layout.bucket_of_block(blocks.end - 1) == bucket);
    std::int64_t next = blocks.begin, least = layout.num_blocks(), most = 0;
    for (int rank = 0; rank < layout.world_size(); ++rank) {
      const Range owned = layout.owned_blocks(bucket, rank);
      REQUIRE(owned.begin == next);
      REQUIRE(owned.end >= owned.begin);
      next = owned.end;
      least = std::min(least, owned.size());
      most = std::max(most, owned.size());
      totals[static_cast<std::size_t>(rank)] += owned.size();
    }
    REQUIRE(next == blocks.end);
    REQUIRE(most - least <= 1);
  }
  REQUIRE(next_end == 0);
  const auto [fewest, most] = std::ranges::minmax(totals);
  REQUIRE(most - fewest <= 1);
  for (int rank = 0; rank < layout.world_size(); ++rank) {
    REQUIRE(layout.shard_num_blocks(rank) == totals[static_cast<std::size_t>(rank)]);
  }
}

/// The slices of all ranks cover every element of every parameter once. The slices of one rank ascend, do not touch
/// within a parameter, and have the offsets of their blocks in the shard.
void check_slices(const ShardLayout& layout) {
  std::vector<std::vector<int>> covered;
  for (std::size_t param = 0; param < layout.num_params(); ++param) {
    covered.emplace_back(static_cast<std::size_t>(layout.numel(param)), 0);
  }
  for (int rank = 0; rank < layout.world_size(); ++rank) {
    const ShardSlice* before = nullptr;
    const auto slices = layout.shard_slices(rank);
    for (const ShardSlice& slice : slices) {
      REQUIRE(!slice.elements.empty());
      REQUIRE(slice.elements.begin % kBlockNumel == 0);
      for (std::int64_t e = slice.elements.begin; e < slice.elements.end; ++e) {
        ++covered[slice.param][static_cast<std::size_t>(e)];
      }
      if (before != nullptr) {
        REQUIRE(slice.param >= before->param);
        if (slice.param == before->param) REQUIRE(slice.elements.begin > before->elements.end);
      }
      const std::int64_t block = layout.param_blocks(slice.param).begin + slice.elements.begin / kBlockNumel;
      const std::int64_t bucket = layout.bucket_of_block(block);
      const std::int64_t in_bucket = (block - layout.owned_blocks(bucket, rank).begin) * kBlockNumel;
      REQUIRE(slice.shard_offset == layout.shard_offset(bucket, rank) + in_bucket);
      before = &slice;
    }
  }
  for (const auto& counts : covered) REQUIRE(std::ranges::all_of(counts, [](int count) { return count == 1; }));
}

}  // namespace

TEST_CASE("layout: every block has one owner, ranks are balanced, slices cover everything once") {
  std::mt19937 random(1);
  for (int i = 0; i < 150; ++i) {
    const auto params = random_params(random);
    const ShardLayout layout(params, 1 + static_cast<int>(random() % 9), 1 + static_cast<std::int64_t>(random() % 20));
    check_ownership(layout);
    check_slices(layout);
  }
}

TEST_CASE("layout: blocks and buckets don't depend on the world size") {
  std::mt19937 random(2);
  for (int i = 0; i < 20; ++i) {
    const auto params = random_params(random);
    const ShardLayout one(params, 1, 5), many(params, 7, 5);
    REQUIRE(one.num_blocks() == many.num_blocks());
    REQUIRE(one.num_buckets() == many.num_buckets());
    for (std::int64_t bucket = 0; bucket < one.num_buckets(); ++bucket) {
      CHECK(one.bucket_blocks(bucket) == many.bucket_blocks(bucket));
    }
    for (std::int64_t block = 0; block < one.num_blocks(); ++block) {
      const std::size_t param = one.param_of_block(block);
      CHECK(intersect(one.param_blocks(param), {block, block + 1}).size() == 1);
    }
  }
}

TEST_CASE("layout: one rank has one slice per parameter") {
  const std::vector<ParamSpec> params{{"a", {5000}}, {"b", {100000}}, {"c", {1}}};
  const auto slices = ShardLayout(params, 1, 3).shard_slices(0);
  REQUIRE(slices.size() == 3);
  CHECK(slices[1].elements == Range{0, 100000});
  CHECK(slices[1].shard_offset == 2 * kBlockNumel);
}

TEST_CASE("layout: invalid arguments are refused") {
  const std::vector<ParamSpec> params{{"a", {8}}}, empty{{"a", {8, 0}}};
  CHECK_THROWS_AS(ShardLayout({}, 1, 1), Error);
  CHECK_THROWS_AS(ShardLayout(empty, 1, 1), Error);
  CHECK_THROWS_AS(ShardLayout(params, 0, 1), Error);
  CHECK_THROWS_AS(ShardLayout(params, 1, 0), Error);
  CHECK_THROWS_AS(bucket_capacity_blocks(16383, DType::kBF16), Error);
  CHECK(bucket_capacity_blocks(16384, DType::kBF16) == 2);
  CHECK(bucket_capacity_blocks(16384, DType::kF32) == 1);
}
