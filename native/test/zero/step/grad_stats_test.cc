#include "zero/step/grad_stats.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "core/dtype.h"
#include "test/zero/fake_job.h"
#include "zero/partition/block_order.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// A model of parts: one that all ranks share and, with sets, one per expert set on every num_sets-th rank.
struct PartsJob {
  std::vector<ParamSpec> shared{{"embed", {5000}}, {"norm", {300}}, {"big", {3, 4096}}, {"one", {1}}};
  std::vector<ParamSpec> expert{{"up", {9000}}, {"down", {4097}}};
  int num_sets = 0;
  int num_leaves = 8;
  NormKind kind = NormKind::kL2;
  DType dtype = DType::kF32;
  double bad = 0;          // when not 0, the value of one element of the last part
  std::uint64_t seed = 7;  // of the elements that model-parallel ranks do not have in common

  float element(std::size_t part, std::size_t param, std::int64_t index) const {
    // Parameter 1 of the shared part ("norm") is the same on all model-parallel ranks.
    const std::uint64_t key = part == 0 && param == 1 ? 1 : seed;
    const auto bits = philox(key, {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(param),
                                   static_cast<std::uint32_t>(part), 0});
    const auto value = static_cast<float>(uniform_open(bits[0]) - 0.5);
    if (bad != 0 && part == static_cast<std::size_t>(num_sets) && param == 1 && index == 11) {
      return static_cast<float>(bad);
    }
    return dtype == DType::kF32 ? value : dtype == DType::kF16 ? to_float(to_f16(value)) : to_float(to_bf16(value));
  }

  const std::vector<ParamSpec>& specs(std::size_t part) const { return part == 0 ? shared : expert; }

  std::vector<ShardLayout> layouts(int world_size) const {
    std::vector<ShardLayout> all{ShardLayout(shared, world_size, 3)};
    for (int set = 0; set < num_sets; ++set) all.emplace_back(expert, world_size / num_sets, 2);
    return all;
  }

  std::vector<StatsPart> parts(const std::vector<ShardLayout>& layouts) const {
    std::vector<StatsPart> all{{&layouts[0], {}, {true, false, true, true}}};
    for (int rank = 0; rank < layouts[0].world_size(); ++rank) all[0].ranks.push_back(rank);
    for (int set = 0; set < num_sets; ++set) {
      all.push_back({&layouts[static_cast<std::size_t>(1 + set)], {}, {true, true}});
      for (int rank = set; rank < layouts[0].world_size(); rank += num_sets) all.back().ranks.push_back(rank);
    }
    return all;
  }

  std::vector<std::byte> shard(const ShardLayout& layout, std::size_t part, int shard) const {
    const auto numel = static_cast<std::size_t>(layout.shard_num_blocks(shard) * kBlockNumel);
    std::vector<std::byte> bytes(numel * size_of(dtype), std::byte{0});
    for (const ShardSlice& slice : layout.shard_slices(shard)) {
      for (std::int64_t i = 0; i < slice.elements.size(); ++i) {
        const float value = element(part, slice.param, slice.elements.begin + i);
        const auto index = static_cast<std::size_t>(slice.shard_offset + i) * size_of(dtype);
        const auto half = dtype == DType::kF16 ? to_f16(value).bits : to_bf16(value).bits;
        if (dtype == DType::kF32) {
          std::memcpy(&bytes[index], &value, 4);
        } else {
          std::memcpy(&bytes[index], &half, 2);
        }
      }
    }
    return bytes;
  }

  static double loss_of(std::int64_t leaf) { return leaf == 3 ? 1e17 : 0.1 * static_cast<double>(leaf); }

  GlobalStats run_rank(Communicator& world, Communicator* model_parallel, std::uint32_t flags) const {
    const auto all_layouts = layouts(world.world_size());
    const auto all_parts = parts(all_layouts);
    GradStats::LeavesOfRanks leaves(static_cast<std::size_t>(world.world_size()));
    for (int leaf = 0; leaf < num_leaves; ++leaf) {
      leaves[static_cast<std::size_t>(leaf % world.world_size())].push_back(leaf);
    }
    GradStats stats(kind, all_parts, leaves, world.rank());
    std::vector<LeafRecord> records;
    for (const std::int64_t leaf : leaves[static_cast<std::size_t>(world.rank())]) {
      records.push_back({loss_of(leaf), 10 + leaf});
    }
    ThreadPool pool(2);
    const Context context{Device{}, &pool, best_cpu_isa()};
    for (std::size_t part = 0; part < all_parts.size(); ++part) {
      for (std::size_t s = 0; s < all_parts[part].ranks.size(); ++s) {
        if (all_parts[part].ranks[s] != world.rank()) continue;
        stats.measure(context, part, shard(all_layouts[part], part, static_cast<int>(s)), dtype);
      }
    }
    return stats.exchange(world, model_parallel, records, flags);
  }

  /// The statistics of every rank.
  std::vector<GlobalStats> run(int world_size) const {
    std::vector<GlobalStats> all(static_cast<std::size_t>(world_size));
    rethrow_first(run_ranks(world_size, [&](Communicator& comm) {
      all[static_cast<std::size_t>(comm.rank())] = run_rank(comm, nullptr, 1U << comm.rank());
    }));
    return all;
  }

  double sum(std::size_t part, std::size_t param) const {
    double total = 0;
    for (std::int64_t i = 0; i < specs(part)[param].numel(); ++i) {
      const auto value = static_cast<double>(element(part, param, i));
      total = kind == NormKind::kL2 ? total + value * value : std::max(total, std::abs(value));
    }
    return total;
  }
};

bool equal_bits(const GlobalStats& a, const GlobalStats& b) {
  return a.norm == b.norm && a.loss_sum == b.loss_sum && a.num_targets == b.num_targets;
}

}  // namespace

TEST_CASE("blocks are met in ascending order, each with its parameter, shard and index") {
  const PartsJob job;
  for (const int world_size : {1, 2, 5}) {
    const ShardLayout layout(job.shared, world_size, 3);
    std::int64_t block = 0;
    for_each_block(layout, [&](std::size_t param, int shard, std::int64_t index) {
      CHECK(layout.param_of_block(block) == param);
      const std::int64_t bucket = layout.bucket_of_block(block);
      const Range owned = layout.owned_blocks(bucket, shard);
      CHECK(index == layout.shard_offset(bucket, shard) / kBlockNumel + block - owned.begin);
      CHECK((block >= owned.begin && block < owned.end));
      ++block;
    });
    CHECK(block == layout.num_blocks());
  }
}

TEST_CASE("statistics have the same bits on every rank and for every world size") {
  for (const NormKind kind : {NormKind::kL2, NormKind::kMax}) {
    for (const int num_sets : {0, 2}) {
      for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
        PartsJob job;
        job.kind = kind;
        job.num_sets = num_sets;
        job.dtype = dtype;
        const auto expected = job.run(num_sets == 0 ? 1 : 2).front();
        CHECK(expected.loss_sum == ((0.1 + 0.2 + 1e17 + 0.4) + 0.5) + 0.6 + 0.7);  // folded by leaf
        CHECK(expected.num_targets == 8 * 10 + 28);
        for (const int world_size : {2, 4, 6, 8}) {
          const auto all = job.run(world_size);
          for (const GlobalStats& stats : all) {
            CHECK(equal_bits(stats, expected));
            CHECK(stats.flags == (1U << world_size) - 1);
          }
        }
      }
    }
  }
}

TEST_CASE("statistics: the norm is that of all elements, those of every expert set too") {
  for (const NormKind kind : {NormKind::kL2, NormKind::kMax}) {
    PartsJob job;
    job.kind = kind;
    job.num_sets = 2;
    double sum = 0;
    for (std::size_t part = 0; part < 3; ++part) {
      for (std::size_t param = 0; param < job.specs(part).size(); ++param) {
        sum = kind == NormKind::kL2 ? sum + job.sum(part, param) : std::max(sum, job.sum(part, param));
      }
    }
    const double norm = kind == NormKind::kL2 ? std::sqrt(sum) : sum;
    CHECK(job.run(4).front().norm == doctest::Approx(norm).epsilon(1e-13));
  }
}

TEST_CASE("statistics: an element that is not finite anywhere shows on every rank") {
  for (const NormKind kind : {NormKind::kL2, NormKind::kMax}) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      for (const double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
        PartsJob job;
        job.kind = kind;
        job.dtype = dtype;
        job.num_sets = 2;
        job.bad = bad;
        for (const GlobalStats& stats : job.run(4)) {
          CHECK(!std::isfinite(stats.norm));
        }
      }
    }
  }
}

TEST_CASE("statistics over model-parallel ranks: spread parameters are added, equal ones counted once, flags united") {
  constexpr int kModelParallel = 3, kDataParallel = 2;
  for (const NormKind kind : {NormKind::kL2, NormKind::kMax}) {
    const auto run = [&](double bad) {
      auto columns = std::vector<std::vector<std::unique_ptr<Communicator>>>();
      for (int d = 0; d < kDataParallel; ++d) {
        columns.push_back(make_thread_comms(kModelParallel, std::chrono::seconds(60)));
      }
      std::vector<GlobalStats> all(kModelParallel * kDataParallel);
      std::vector<std::thread> worlds;
      for (int m = 0; m < kModelParallel; ++m) {
        worlds.emplace_back([&, m] {
          PartsJob job;
          job.kind = kind;
          job.seed = static_cast<std::uint64_t>(10 + m);
          if (m == 1) job.bad = bad;
          run_ranks(kDataParallel, [&, job](Communicator& world) {
            const auto d = static_cast<std::size_t>(world.rank());
            const std::uint32_t flags = m == 2 && d == 1 ? 4 : 0;
            all[static_cast<std::size_t>(m * kDataParallel) + d] =
                job.run_rank(world, columns[d][static_cast<std::size_t>(m)].get(), flags);
          });
        });
      }
      for (auto& world : worlds) world.join();
      return all;
    };
    const auto all = run(0);
    double spread = 0;
    PartsJob job;
    job.kind = kind;
    for (int m = 0; m < kModelParallel; ++m) {
      job.seed = static_cast<std::uint64_t>(10 + m);
      for (const std::size_t param : {std::size_t{0}, std::size_t{2}, std::size_t{3}}) {
        spread = kind == NormKind::kL2 ? spread + job.sum(0, param) : std::max(spread, job.sum(0, param));
      }
    }
    const double norm = job.sum(0, 1);
    const double total = kind == NormKind::kL2 ? std::sqrt(spread + norm) : std::max(spread, norm);
    for (const GlobalStats& stats : all) {
      CHECK(equal_bits(stats, all.front()));
      CHECK(stats.flags == 4);
      CHECK(stats.norm == doctest::Approx(total).epsilon(1e-13));
    }
    for (const GlobalStats& stats : run(std::numeric_limits<double>::infinity())) CHECK(!std::isfinite(stats.norm));
  }
}

TEST_CASE("statistics refuse parts, groups and leaves that don't fit together") {
  const PartsJob job;
  const auto layouts = job.layouts(2);
  const auto code = [&](auto&& change, GradStats::LeavesOfRanks leaves = {{0, 2}, {1}}) {
    auto parts = job.parts(layouts);
    change(parts);
    return code_of([&] { GradStats(job.kind, parts, leaves, 0); });
  };
  const auto nothing = [](auto&) {};
  CHECK(code(nothing) == "none");
  CHECK(code([](auto& parts) { parts.clear(); }) == "invalid_argument");
  CHECK(code([](auto& parts) { parts[0].ranks[1] = 2; }) == "invalid_argument");
  CHECK(code([](auto& parts) { parts[0].ranks.pop_back(); }) == "invalid_argument");
  CHECK(code([](auto& parts) { parts[0].spread.pop_back(); }) == "invalid_argument");
  CHECK(code(nothing, {{0, 2}, {2}}) == "invalid_argument");
  CHECK(code(nothing, {{0, 3}, {1}}) == "invalid_argument");
}
