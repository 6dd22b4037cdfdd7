#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/param_spec.h"
#include "zero/partition/param_groups.h"

namespace zerofleet {

/// Parameters that are treated alike and exchanged among the same ranks. The lists are parallel. Indices of them are
/// *local* numbers, in contrast to the canonical numbers of all parameters of the model.
struct ParamSubset {
  std::string name;     // for messages and reports
  int expert_set = -1;  // set that the subset belongs to; -1: held by all ranks
  bool frozen = false;
  bool base = false;                // frozen base of an adapter, not part of the state
  bool quantized = false;           // quantized matrices of the base
  std::vector<std::size_t> params;  // canonical numbers, ascending
  std::vector<ParamSpec> specs;
  std::vector<ParamSettings> settings;
  std::vector<std::int64_t> first_blocks;  // first block of each parameter, numbered over the whole model
};

/// Divides the model into non-empty subsets, in one order on every rank. Trained parameters come before frozen ones,
/// then the base of adapters, then its quantized matrices. In each of these, shared parameters come before expert sets
/// 0, 1, …
///
/// With `num_sets` sets of experts, expert e of E belongs to set e / (E / num_sets). With one set, experts are shared
/// like all other parameters. Throws Error{"invalid_argument"} unless the sets divide the experts.
std::vector<ParamSubset> partition_params(std::span<const ParamSpec> specs, std::span<const ParamSettings> settings,
                                          int num_sets);

}  // namespace zerofleet
