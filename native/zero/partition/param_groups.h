#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/param_spec.h"

namespace zerofleet {

/// Settings for all parameters whose names match a pattern.
struct ParamGroupRule {
  std::string match;                   // * stands for any characters, ? for one
  double lr_scale = 1;                 // × the learning rate of the step
  std::optional<double> weight_decay;  // as by default where not set: of matrices the general one, of others none
  bool frozen = false;
  bool own_rate = false;  // a rate for its parameters alone may be set, see StepRequest::rule_lrs
};

/// Hyper-parameters that parameters have in common.
struct GroupOptions {
  double lr_scale = 1;
  double weight_decay = 0;
  std::optional<std::size_t> rule = std::nullopt;  // whose own rate the group has

  friend bool operator==(const GroupOptions&, const GroupOptions&) = default;
};

struct ParamSettings {
  std::size_t group = 0;        // of ParamGroups::groups
  bool frozen = false;          // by a rule or as the base of an adapter: keeps its value, rounded to the compute dtype; no gradient, no optimizer state
  bool model_parallel = false;  // each model-parallel rank holds other elements; else all hold the same
};

struct ParamGroups {
  std::vector<GroupOptions> groups;
  std::vector<ParamSettings> settings;  // one per parameter
};

/// Returns true if all of `name` matches `pattern`.
bool glob_matches(std::string_view pattern, std::string_view name);

/// The first rule that matches a parameter counts for it; without one it has lr_scale 1 and the default weight decay.
/// Throws Error{"param_group_unmatched"} for a rule that counts for no parameter, Error{"all_parameters_frozen"},
/// Error{"invalid_argument"} for values that cannot be.
ParamGroups resolve_param_groups(std::span<const ParamSpec> specs, std::span<const ParamGroupRule> rules,
                                 double weight_decay);

}  // namespace zerofleet
