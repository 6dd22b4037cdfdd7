#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/param_spec.h"

namespace zerofleet {

/// Role of a parameter: states if a rank expects gradients for it.
enum class GradRole : std::uint8_t {
  kTrained,
  kFrozen,
  kElsewhere,  // an expert of a set that other ranks hold
};

/// Gradients of a leaf that have arrived. A refused gradient changes nothing.
class LeafArrivals {
 public:
  /// `specs` must outlive the object; `roles` has one entry for each.
  LeafArrivals(std::span<const ParamSpec> specs, std::vector<GradRole> roles);

  /// Begins a leaf: every trained parameter is expected once.
  void begin();
  /// Throws Error{"invalid_argument"} for a parameter that is not there or not on this rank or another number of elements,
  /// Error{"gradient_of_frozen"}, Error{"gradient_repeated"}.
  void add(std::size_t param, std::size_t numel);
  /// Throws Error{"gradient_missing"} with the name of the first trained parameter whose gradient has not come.
  void require_all() const;

 private:
  std::span<const ParamSpec> specs_;
  std::vector<GradRole> roles_;
  std::vector<bool> arrived_;
};

}  // namespace zerofleet
