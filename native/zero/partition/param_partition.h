#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/param_spec.h"
#include "zero/partition/param_groups.h"

namespace zerofleet {

/// Parameters that are exchanged among the same ranks and treated alike. Entries of the lists belong together; places in
/// them are called *local*, in contrast to the canonical numbers of all parameters of the model.
struct ParamSubset {
  std::string name;                        // for messages and reports
  int expert_set = -1;                     // of the ranks that hold it; -1: all ranks
  bool frozen = false;
  bool base = false;                       // the frozen base under an adapter: no part of the state
  std::vector<std::size_t> params;         // canonical numbers, ascending
  std::vector<ParamSpec> specs;
  std::vector<ParamSettings> settings;
  std::vector<std::int64_t> first_blocks;  // canonical numbers of the first blocks, counted through the whole model
};

/// The model in subsets, none of them empty, in one order on every rank: what is trained before what is
/// frozen before the base of adapters, what all ranks share before expert sets 0, 1, …
///
/// With `num_sets` sets of experts, expert e of E belongs to set e / (E / num_sets). With one set, experts are shared
/// like all other parameters. Throws Error{"invalid_argument"} unless the sets divide the experts.
std::vector<ParamSubset> partition_params(std::span<const ParamSpec> specs, std::span<const ParamSettings> settings,
                                          int num_sets);

}  // namespace zerofleet
