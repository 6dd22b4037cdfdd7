#include "zero/exchange/param_norms.h"

#include <doctest/doctest.h>

#include <cmath>
#include <mutex>
#include <vector>

#include "test/zero/fake_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

const std::vector<ParamSpec> kNormedSpecs{{"a", {5000}}, {"b", {10}}, {"c", {40000}}, {"d", {4096}}};

/// A sum for a block, so uneven in size that every other order of addition gives other bits.
double sum_of_block(std::int64_t block, bool update) {
  const auto bits = philox(3, {static_cast<std::uint32_t>(block), update ? 1U : 0U, 0, 0});
  return std::ldexp(uniform_open(bits[0]), static_cast<int>(bits[1] % 40));
}

std::vector<ParamNorm> norms_of_rank(Communicator& comm, std::int64_t bucket_blocks) {
  const ShardLayout layout(kNormedSpecs, comm.world_size(), bucket_blocks);
  ParamNorms norms(layout, comm.rank());
  for (std::int64_t bucket = 0; bucket < layout.num_buckets(); ++bucket) {
    const Range owned = layout.owned_blocks(bucket, comm.rank());
    auto index = static_cast<std::size_t>(layout.shard_offset(bucket, comm.rank()) / kBlockNumel);
    for (std::int64_t block = owned.begin; block < owned.end; ++block, ++index) {
      norms.weight_sums()[index] = sum_of_block(block, false);
      norms.update_sums()[index] = sum_of_block(block, true);
    }
  }
  return norms.exchange(comm);
}

}  // namespace

TEST_CASE("a parameter's norms fold its blocks in block order, equal on every rank, world and bucket size") {
  std::vector<ParamNorm> expected;
  const ShardLayout layout(kNormedSpecs, 1, 1);
  for (std::size_t param = 0; param < kNormedSpecs.size(); ++param) {
    ParamNorm sum;
    const Range blocks = layout.param_blocks(param);
    for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
      sum.weight += sum_of_block(block, false);
      sum.update += sum_of_block(block, true);
    }
    expected.push_back({std::sqrt(sum.weight), std::sqrt(sum.update)});
  }
  std::mutex mutex;
  for (const int world_size : {1, 2, 3, 7}) {
    for (const std::int64_t bucket_blocks : {1, 3, 100}) {
      rethrow_first(run_ranks(world_size, [&](Communicator& comm) {
        const auto norms = norms_of_rank(comm, bucket_blocks);
        const std::lock_guard lock(mutex);
        CAPTURE(world_size);
        CAPTURE(bucket_blocks);
        REQUIRE(norms.size() == expected.size());
        for (std::size_t param = 0; param < norms.size(); ++param) {
          CHECK(norms[param].weight == expected[param].weight);
          CHECK(norms[param].update == expected[param].update);
        }
      }));
    }
  }
}
