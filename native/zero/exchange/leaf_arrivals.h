#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/param_spec.h"

namespace zerofleet {

/// Role of a parameter: whether a rank expects gradients for it.
enum class GradRole : std::uint8_t {
  kTrained,
  kFrozen,
  kElsewhere,  // an expert of a set that other ranks hold
};

/// Tracks which gradients of a leaf have arrived. A refused gradient changes nothing.
class LeafArrivals {
 public:
  /// `specs` must outlive the object. `roles`: one per spec.
  LeafArrivals(std::span<const ParamSpec> specs, std::vector<GradRole> roles);

  /// Begins a leaf, in which every trained parameter is expected once.
  void begin();
  /// Throws Error{"invalid_argument"} for an unknown parameter, one of other ranks, or a wrong number of elements. Also
  /// throws Error{"gradient_of_frozen"} and Error{"gradient_repeated"}.
  void add(std::size_t param, std::size_t numel);
  /// Throws Error{"gradient_missing"} with the name of the first trained parameter without a gradient.
  void require_all() const;

 private:
  std::span<const ParamSpec> specs_;
  std::vector<GradRole> roles_;
  std::vector<bool> arrived_;
};

}  // namespace zerofleet
