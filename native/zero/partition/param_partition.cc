#include "zero/partition/param_partition.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "zero/partition/shard_layout.h"

namespace zerofleet {
namespace {

int experts_per_set(std::span<const ParamSpec> specs, int num_sets) {
  int num_experts = 0;
  for (const ParamSpec& spec : specs) num_experts = std::max(num_experts, spec.expert + 1);
  require(num_sets == 1 || (num_experts > 0 && num_experts % num_sets == 0), "invalid_argument",
          "expert_parallel_size " + std::to_string(num_sets) + " does not divide the model's " +
              std::to_string(num_experts) + " experts");
  return num_experts / num_sets;
}

struct Kind {
  const char* prefix;
  bool frozen, base, quantized;
};

constexpr Kind kKinds[] = {{"", false, false, false},
                           {"frozen ", true, false, false},
                           {"base ", true, true, false},
                           {"quantized base ", true, true, true}};

std::string name_of(int expert_set, const Kind& kind) {
  return kind.prefix + (expert_set < 0 ? "shared" : "expert set " + std::to_string(expert_set));
}

}  // namespace

std::vector<ParamSubset> partition_params(std::span<const ParamSpec> specs, std::span<const ParamSettings> settings,
                                          int num_sets) {
  require(settings.size() == specs.size(), "invalid_argument", "there must be settings for each parameter");
  const int per_set = experts_per_set(specs, num_sets);
  std::vector<ParamSubset> subsets;
  for (const Kind& kind : kKinds) {
    for (int set = -1; set < (num_sets > 1 ? num_sets : 0); ++set) {
      subsets.push_back({name_of(set, kind), set, kind.frozen, kind.base, kind.quantized, {}, {}, {}, {}});
    }
  }
  std::int64_t next_block = 0;
  for (std::size_t param = 0; param < specs.size(); ++param) {
    const ParamSpec& spec = specs[param];
    const int set = num_sets > 1 && spec.expert >= 0 ? spec.expert / per_set : -1;
    const auto home = std::ranges::find_if(subsets, [&](const ParamSubset& subset) {
      return subset.expert_set == set && subset.frozen == settings[param].frozen && subset.base == spec.base &&
             subset.quantized == spec.quantization.has_value();
    });
    home->params.push_back(param);
    home->specs.push_back(spec);
    home->settings.push_back(settings[param]);
    home->first_blocks.push_back(next_block);
    next_block += num_blocks_of(spec.numel());
  }
  std::erase_if(subsets, [](const ParamSubset& subset) { return subset.params.empty(); });
  return subsets;
}

}  // namespace zerofleet
