#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace zerofleet {

/// The norm that gradients are clipped by: the root of the sum of squares, or the largest magnitude.
enum class NormKind : std::uint8_t { kL2, kMax };

/// Parameters whose norm is taken together.
struct NormGroup {
  std::string name;
  int expert_set = -1;          // the expert set that holds these parameters, -1 for parameters that all ranks share
  bool model_parallel = false;  // each model-parallel rank holds other elements; otherwise all of them hold the same
};

/// Norms of groups of parameters, and how they make the norm of the whole gradient. Pure arithmetic in fp64.
///
/// A group's *sum* is what its blocks fold to: the sum of their sums of squares, or their largest magnitude. The total:
///   L2:  sqrt(Σ sums of shared groups + m²), where m is the mean over the expert sets of the norm of each set, as
///        DeepSpeed's ZeRO optimizers have it (`_average_expert_grad_norms`, runtime/zero/stage_1_and_2.py), so that
///        the norm does not grow with the number of sets;
///   max: the largest magnitude of all groups, expert or not (`get_norm_with_moe_layers`, runtime/utils.py).
/// What is not finite in any block makes its group's norm and the total not finite.
class NormGroups {
 public:
  /// A set of the `num_expert_sets` that has no group (all of its parameters are frozen) counts as one of norm 0.
  /// Throws Error{"invalid_argument"} for no groups, or a group of a set that is not there.
  NormGroups(NormKind kind, std::vector<NormGroup> groups, int num_expert_sets = 0);

  NormKind kind() const { return kind_; }
  std::size_t size() const { return groups_.size(); }
  const NormGroup& group(std::size_t index) const { return groups_[index]; }

  /// What a block brings to the sum of its group. `sum_squares` must show what is not finite, `max_abs` need not.
  double block_value(double sum_squares, double max_abs) const;
  /// The sum with one more value; for the same bits everywhere, values come in the same order.
  double fold(double sum, double value) const;

  /// Sums of each model-parallel rank (num_ranks × size) → sums of all (size): those of model-parallel groups are
  /// folded over the ranks in rank order, the others are counted once, as rank 0 has them. A sum that is not finite on
  /// any rank is not finite afterwards, whatever its group.
  std::vector<double> over_model_parallel(std::span<const double> sums_of_ranks) const;

  double norm(double sum) const;
  /// The norm of everything from the sums of all groups (size).
  double total(std::span<const double> sums) const;

 private:
  NormKind kind_;
  std::vector<NormGroup> groups_;
  std::size_t num_sets_;
};

}  // namespace zerofleet
