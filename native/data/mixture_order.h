#pragma once

#include <cstdint>
#include <vector>

#include "data/sample_permutation.h"

namespace zerofleet {

/// A dataset of a training.
struct MixturePart {
  std::int64_t num_units = 0;
  std::int64_t weight = 1;  // share of the training, relative to the weights of the other datasets
};

/// The endless series of units that a training reads from one or more datasets, computed point by point. The unit at a
/// position depends on (seed, datasets, weights) alone, so no cursor is saved.
///
/// Method: of the first p positions, floor(p * weight / W) belong to the first dataset, where W is the sum of all
/// weights. The other positions, numbered anew, are divided among the other datasets in the same way. So W consecutive
/// positions from a multiple of W on have exactly `weight` units of each dataset, spread evenly. The k-th unit of a
/// dataset with n units is at position k % n of epoch k / n of the dataset's own permutation. So a dataset repeats no
/// unit before all of its units were read. A single dataset is read by its permutation alone.
class MixtureOrder {
 public:
  /// Throws Error{"invalid_argument"} without parts, for an empty part, and for a weight below 1.
  MixtureOrder(std::uint64_t seed, const std::vector<MixturePart>& parts);

  /// Number of the unit at `position` >= 0. Units are numbered through all datasets, in their order.
  std::int64_t at(std::int64_t position) const;

 private:
  struct Part {
    SamplePermutation permutation;
    std::int64_t first_unit;
    std::int64_t weight, weight_left;  // of this dataset; of it and all datasets after it
  };

  std::vector<Part> parts_;
};

}  // namespace zerofleet
