#include "data/mixture_order.h"

#include <string>

#include "core/error.h"

namespace zerofleet {
namespace {

/// floor(position * weight / total); the product may exceed 64 bits.
std::int64_t portion(std::int64_t position, std::int64_t weight, std::int64_t total) {
  return static_cast<std::int64_t>(static_cast<unsigned __int128>(position) * static_cast<unsigned __int128>(weight) /
                                   static_cast<unsigned __int128>(total));
}

}  // namespace

MixtureOrder::MixtureOrder(std::uint64_t seed, const std::vector<MixturePart>& parts) {
  require(!parts.empty(), "invalid_argument", "a training needs a dataset");
  std::int64_t first_unit = 0, weight_left = 0;
  for (const MixturePart& part : parts) {
    require(part.weight >= 1, "invalid_argument",
            "a weight of a dataset is " + std::to_string(part.weight) + "; it must be at least 1");
    weight_left += part.weight;
  }
  for (const MixturePart& part : parts) {
    const auto number = static_cast<std::uint32_t>(parts_.size());
    parts_.push_back({SamplePermutation(seed, part.num_units, number), first_unit, part.weight, weight_left});
    first_unit += part.num_units;
    weight_left -= part.weight;
  }
}

std::int64_t MixtureOrder::at(std::int64_t position) const {
  for (const auto& [permutation, first_unit, weight, weight_left] : parts_) {
    const std::int64_t before = portion(position, weight, weight_left);
    if (portion(position + 1, weight, weight_left) > before) {
      const std::int64_t num_units = permutation.num_samples();
      return first_unit + permutation.at(before / num_units, before % num_units);
    }
    position -= before;
  }
  throw Error("internal", "the last dataset has all positions that are left");
}

}  // namespace zerofleet
