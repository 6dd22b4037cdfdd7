#include "zero/partition/param_groups.h"

#include <doctest/doctest.h>

#include <vector>

#include "test/zero/fake_job.h"
#include "zero/partition/param_partition.h"
#include "zero/step/model_plan.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

const std::vector<ParamSpec> kSpecs{{"embed.weight", {9000}},
                                    {"layers.0.norm.weight", {64}, ParamGroup::kNoDecay},
                                    {"layers.0.mlp.weight", {4096}},
                                    {"layers.10.mlp.weight", {5000}},
                                    {"head.weight", {100}}};

ParamGroups resolve(const std::vector<ParamGroupRule>& rules) { return resolve_param_groups(kSpecs, rules, 0.1); }

}  // namespace

TEST_CASE("glob: * is any characters, ? is one, all else is itself") {
  CHECK(glob_matches("*", ""));
  CHECK(glob_matches("*", "a.b"));
  CHECK(glob_matches("a*b*c", "abbbcbc"));
  CHECK(glob_matches("layers.?.mlp.*", "layers.0.mlp.weight"));
  CHECK(glob_matches("**weight", "weight"));
  CHECK(!glob_matches("layers.?.mlp.*", "layers.10.mlp.weight"));
  CHECK(!glob_matches("weight", "weights"));
  CHECK(!glob_matches("?", ""));
  CHECK(!glob_matches("a*b", "abc"));
  CHECK(!glob_matches("a.b", "axb"));
}

TEST_CASE("param groups: by default matrices decay and norms don't") {
  const ParamGroups groups = resolve({});
  CHECK(groups.groups == std::vector<GroupOptions>{{1, 0.1}, {1, 0}});
  CHECK(groups.settings[0].group == 0);
  CHECK(groups.settings[1].group == 1);
  CHECK(groups.settings[4].group == 0);
}

TEST_CASE("param groups: the first match counts, and a decay that is not set stays as by default") {
  const ParamGroups groups =
      resolve({{"layers.0.*", 0.5, {}, false}, {"layers.*", 2, 0.25, false}, {"embed*", 1, {}, true}});
  const auto group_of = [&](std::size_t param) { return groups.groups[groups.settings[param].group]; };
  CHECK(group_of(1) == GroupOptions{0.5, 0});
  CHECK(group_of(2) == GroupOptions{0.5, 0.1});
  CHECK(group_of(3) == GroupOptions{2, 0.25});
  CHECK(group_of(4) == GroupOptions{1, 0.1});
  CHECK(groups.settings[0].frozen);
  CHECK(!groups.settings[1].frozen);
}

TEST_CASE("param groups: rules that do nothing, freeze everything or cannot be are refused") {
  CHECK(code_of([] { resolve({{"no.such*", 1, {}, false}}); }) == "param_group_unmatched");
  CHECK(code_of([] { resolve({{"*", 2, {}, false}, {"head*", 1, {}, false}}); }) == "param_group_unmatched");
  CHECK(code_of([] { resolve({{"*", 1, {}, true}}); }) == "all_parameters_frozen");
  CHECK(code_of([] { resolve({{"*", -1, {}, false}}); }) == "invalid_argument");
  CHECK(code_of([] { resolve({{"*", 1, -0.1, false}}); }) == "invalid_argument");
}

TEST_CASE("partition: every parameter in one subset, in canonical order, with canonical block numbers") {
  std::vector<ParamSpec> specs = kSpecs;
  for (int expert = 0; expert < 4; ++expert) {
    specs.insert(specs.begin() + 2 + expert, {"expert", {5000}});
    specs[static_cast<std::size_t>(2 + expert)].expert = expert;
  }
  for (const int num_sets : {1, 2, 4}) {
    std::vector<ParamSettings> settings(specs.size());
    settings[0].frozen = settings[3].frozen = true;
    const auto subsets = partition_params(specs, settings, num_sets);
    std::vector<int> seen(specs.size(), 0);
    std::vector<std::int64_t> first_blocks{0};
    for (const ParamSpec& spec : specs) first_blocks.push_back(first_blocks.back() + num_blocks_of(spec.numel()));
    for (const ParamSubset& subset : subsets) {
      REQUIRE(!subset.params.empty());
      CHECK(std::ranges::is_sorted(subset.params));
      for (std::size_t local = 0; local < subset.params.size(); ++local) {
        const std::size_t param = subset.params[local];
        ++seen[param];
        CHECK(subset.specs[local].name == specs[param].name);
        CHECK(subset.frozen == settings[param].frozen);
        CHECK(subset.settings[local].frozen == settings[param].frozen);
        CHECK(subset.first_blocks[local] == first_blocks[param]);
        CHECK(subset.expert_set ==
              (num_sets > 1 && specs[param].expert >= 0 ? specs[param].expert * num_sets / 4 : -1));
      }
    }
    CHECK(seen == std::vector<int>(specs.size(), 1));
  }
  CHECK(code_of([&] { partition_params(specs, std::vector<ParamSettings>(specs.size()), 3); }) == "invalid_argument");
  CHECK(code_of([&] { partition_params(kSpecs, std::vector<ParamSettings>(5), 2); }) == "invalid_argument");
}

TEST_CASE("plan: the layouts of all parts cover every block of the model once, on ranks that hold the part") {
  std::vector<ParamSpec> specs = kSpecs;
  for (int expert = 0; expert < 6; ++expert) {
    specs.push_back({"expert", {2000 + expert * 3000}});
    specs.back().expert = expert;
  }
  for (const int num_sets : {1, 2, 3}) {
    for (const int num_groups : {1, 2, 4}) {
      ZeroOptions options;
      options.expert_parallel_size = num_sets;
      options.num_leaves = options.num_lanes = 24;
      options.bucket_bytes = 16384;
      options.param_groups = resolve_param_groups(specs, std::vector<ParamGroupRule>{{"embed*", 1, {}, true}}, 0.1);
      const int world_size = num_sets * num_groups;
      std::vector<int> owners;
      for (const PlannedPart& part : plan_model(specs, options, world_size)) {
        CHECK(part.layout.world_size() == (part.subset.expert_set < 0 ? world_size : num_groups));
        for (std::size_t shard = 0; shard < part.ranks.size(); ++shard) {
          const int rank = part.ranks[shard];
          CHECK(part.shard_of(rank) == static_cast<int>(shard));
          if (part.subset.expert_set >= 0) CHECK(rank % num_sets == part.subset.expert_set);
          for (std::int64_t bucket = 0; bucket < part.layout.num_buckets(); ++bucket) {
            const Range owned = part.layout.owned_blocks(bucket, static_cast<int>(shard));
            for (std::int64_t block = owned.begin; block < owned.end; ++block) {
              const std::size_t local = part.layout.param_of_block(block);
              const auto canonical = static_cast<std::size_t>(part.subset.first_blocks[local] + block -
                                                              part.layout.param_blocks(local).begin);
              owners.resize(std::max(owners.size(), canonical + 1), 0);
              ++owners[canonical];
            }
          }
        }
      }
      std::int64_t num_blocks = 0;
      for (const ParamSpec& spec : specs) num_blocks += num_blocks_of(spec.numel());
      CHECK(owners == std::vector<int>(static_cast<std::size_t>(num_blocks), 1));
    }
  }
}

TEST_CASE("plan: inconsistent settings are refused") {
  std::vector<ParamSpec> specs{{"shared", {10}}, {"e0", {10}}, {"e1", {10}}};
  specs[1].expert = 0;
  specs[2].expert = 1;
  const auto code = [&](int num_sets, std::int64_t leaves, std::int64_t lanes, int world_size) {
    ZeroOptions options;
    options.expert_parallel_size = num_sets;
    options.num_leaves = leaves;
    options.num_lanes = lanes;
    options.param_groups = resolve_param_groups(specs, {}, 0);
    return code_of([&] { plan_model(specs, options, world_size); });
  };
  CHECK(code(2, 4, 4, 2) == "none");
  CHECK(code(2, 4, 4, 3) == "invalid_argument");
  CHECK(code(2, 3, 2, 2) == "invalid_argument");
  CHECK(code(2, 4, 3, 2) == "invalid_argument");
  CHECK(code(4, 4, 4, 4) == "invalid_argument");
  ZeroOptions options;
  options.num_leaves = options.num_lanes = 1;
  CHECK(code_of([&] { plan_model(specs, options, 1); }) == "invalid_argument");
}
