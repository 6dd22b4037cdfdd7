#pragma once

#include <cstdint>

#include "model/objective/objective.h"

namespace zerofleet {

/// Reference model of a preference objective.
enum class ReferenceKind : std::uint8_t {
  kNone,     // ORPO and SimPO need none
  kBase,     // the model without its adapter
  kInitial,  // the model at the start of the training
};

struct PreferenceConfig {
  ObjectiveOptions objective;
  ReferenceKind reference = ReferenceKind::kNone;

  /// Number of sequences in a unit.
  std::int64_t unit_sequences() const { return objective.has_pairs() ? 2 : 1; }
};

}  // namespace zerofleet
