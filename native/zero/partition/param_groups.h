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
  std::optional<double> weight_decay;  // unset: the general one for matrices, none for others
  bool frozen = false;
  bool own_rate = false;  // StepRequest::rule_lrs may set a rate for these parameters

  template <class Fields>
  void fields(Fields& field) {
    field("match", match);
    field("lr_scale", lr_scale);
    field("weight_decay", weight_decay);
    field("frozen", frozen);
  }
};

/// Hyper-parameters of a group.
struct GroupOptions {
  double lr_scale = 1;
  double weight_decay = 0;
  std::optional<std::size_t> rule = std::nullopt;  // rule whose own rate the group has
  bool general_decay = false;                      // weight_decay is the general one, which a step may replace

  friend bool operator==(const GroupOptions&, const GroupOptions&) = default;
};

struct ParamSettings {
  std::size_t group = 0;  // of ParamGroups::groups
  // By a rule, or as the base of an adapter. A frozen parameter keeps its value, rounded to the compute dtype, and has
  // no gradient or optimizer state.
  bool frozen = false;
  bool model_parallel = false;  // model-parallel ranks hold different elements
};

struct ParamGroups {
  std::vector<GroupOptions> groups;
  std::vector<ParamSettings> settings;  // one per parameter
};

/// True if `pattern` matches all of `name`.
bool glob_matches(std::string_view pattern, std::string_view name);

/// Each parameter uses the first rule that matches it; without a rule, lr_scale 1 and the default weight decay.
/// `decay_varies`: steps may replace that, so that parameters that have it are in groups of their own. Throws
/// Error{"param_group_unmatched"} for a rule that no parameter uses, Error{"all_parameters_frozen"}, and
/// Error{"invalid_argument"} for invalid values.
ParamGroups resolve_param_groups(std::span<const ParamSpec> specs, std::span<const ParamGroupRule> rules,
                                 double weight_decay, bool decay_varies = false);

}  // namespace zerofleet
