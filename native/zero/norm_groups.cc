#include "zero/norm_groups.h"

#include <cmath>
#include <string>
#include <utility>

#include "core/error.h"

namespace zerofleet {

NormGroups::NormGroups(NormKind kind, std::vector<NormGroup> groups, int num_expert_sets)
    : kind_(kind), groups_(std::move(groups)), num_sets_(static_cast<std::size_t>(num_expert_sets)) {
  require(!groups_.empty(), "invalid_argument", "a norm needs at least one group of parameters");
  for (const NormGroup& group : groups_) {
    require(group.expert_set < num_expert_sets, "invalid_argument",
            "the norm group '" + group.name + "' is of expert set " + std::to_string(group.expert_set) + " of " +
                std::to_string(num_expert_sets));
  }
}

double NormGroups::block_value(double sum_squares, double max_abs) const {
  return kind_ == NormKind::kL2 || !std::isfinite(sum_squares) ? sum_squares : max_abs;
}

double NormGroups::fold(double sum, double value) const {
  if (kind_ == NormKind::kL2) return sum + value;
  // Whichever is NaN stays.
  return sum > value || std::isnan(sum) ? sum : value;
}

std::vector<double> NormGroups::over_model_parallel(std::span<const double> sums_of_ranks) const {
  require(!sums_of_ranks.empty() && sums_of_ranks.size() % size() == 0, "invalid_argument",
          "every model-parallel rank has one sum per group");
  std::vector<double> sums(sums_of_ranks.begin(), sums_of_ranks.begin() + static_cast<std::ptrdiff_t>(size()));
  for (std::size_t i = size(); i < sums_of_ranks.size(); ++i) {
    const std::size_t index = i % size();
    if (groups_[index].model_parallel || !std::isfinite(sums_of_ranks[i])) sums[index] = fold(sums[index], sums_of_ranks[i]);
  }
  return sums;
}

double NormGroups::norm(double sum) const { return kind_ == NormKind::kL2 ? std::sqrt(sum) : sum; }

double NormGroups::total(std::span<const double> sums) const {
  require(sums.size() == size(), "invalid_argument", "there must be one sum per group");
  double total = 0;
  std::vector<double> sets(num_sets_, 0.0);
  for (std::size_t i = 0; i < size(); ++i) {
    const bool apart = kind_ == NormKind::kL2 && groups_[i].expert_set >= 0;
    double& sum = apart ? sets[static_cast<std::size_t>(groups_[i].expert_set)] : total;
    sum = fold(sum, sums[i]);
  }
  if (kind_ == NormKind::kMax || sets.empty()) return norm(total);
  double mean = 0;
  for (const double sum : sets) mean += norm(sum);
  mean /= static_cast<double>(num_sets_);
  return std::sqrt(total + mean * mean);
}

}  // namespace zerofleet
