#include "zero/partition/param_groups.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace zerofleet {
namespace {

void check(const ParamGroupRule& rule) {
  const std::string group = "the parameter group '" + rule.match + "' has ";
  require(std::isfinite(rule.lr_scale) && rule.lr_scale >= 0, "invalid_argument",
          group + "a learning rate that is negative or not finite");
  const double decay = rule.weight_decay.value_or(0);
  require(std::isfinite(decay) && decay >= 0, "invalid_argument",
          group + "a weight decay that is negative or not finite");
}

std::size_t index_of(std::vector<GroupOptions>& groups, const GroupOptions& wanted) {
  const auto found = std::ranges::find(groups, wanted);
  if (found == groups.end()) {
    groups.push_back(wanted);
    return groups.size() - 1;
  }
  return static_cast<std::size_t>(found - groups.begin());
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view name) {
  // On a mismatch, the last * takes one character more: going back to an earlier one cannot help.
  std::size_t p = 0, n = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

ParamGroups resolve_param_groups(std::span<const ParamSpec> specs, std::span<const ParamGroupRule> rules,
                                 double weight_decay, bool decay_varies) {
  for (const ParamGroupRule& rule : rules) check(rule);
  ParamGroups resolved;
  std::vector<bool> counts(rules.size(), false);
  bool all_frozen = true;
  for (const ParamSpec& spec : specs) {
    const double usual_decay = spec.group == ParamGroup::kDecay ? weight_decay : 0;
    GroupOptions group{1, usual_decay};
    bool has_usual_decay = true;
    ParamSettings settings;
    settings.frozen = spec.base;
    const auto rule = std::ranges::find_if(rules, [&](const auto& r) { return glob_matches(r.match, spec.name); });
    if (rule != rules.end()) {
      const auto index = static_cast<std::size_t>(rule - rules.begin());
      counts[index] = true;
      group = {rule->lr_scale, rule->weight_decay.value_or(usual_decay)};
      if (rule->own_rate) group.rule = index;
      has_usual_decay = !rule->weight_decay;
      settings.frozen = settings.frozen || rule->frozen;
    }
    group.general_decay = decay_varies && has_usual_decay && spec.group == ParamGroup::kDecay;
    settings.group = index_of(resolved.groups, group);
    resolved.settings.push_back(settings);
    all_frozen = all_frozen && settings.frozen;
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    require(counts[i], "param_group_unmatched",
            "the pattern '" + rules[i].match + "' matches no parameter, or only those that a group before it takes");
  }
  require(!all_frozen, "all_parameters_frozen", "every parameter is frozen, so there is nothing to train");
  return resolved;
}

}  // namespace zerofleet
