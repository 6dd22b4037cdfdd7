#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/param_spec.h"

namespace zerofleet {

/// The parameters without a gradient; none at first.
class FrozenParams {
 public:
  FrozenParams() = default;
  /// `frozen`: by parameter, or empty.
  FrozenParams(std::span<const ParamSpec> specs, std::vector<bool> frozen);

  bool has(std::size_t param) const { return !frozen_.empty() && frozen_[param]; }
  /// Returns true if the parameter is frozen in every layer and expert: buffers that they share have no room for it.
  bool has_all_like(std::size_t param) const { return !frozen_.empty() && all_like_[param]; }

 private:
  std::vector<bool> frozen_, all_like_;  // by parameter, or empty
};

}  // namespace zerofleet
