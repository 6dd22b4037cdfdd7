#pragma once

#include <optional>

#include "kernels/attention/rope.h"
#include "model/config/model_config.h"

namespace zerofleet {

template <class T>
T* pointer_to(std::optional<T>& part) {
  return part ? &*part : nullptr;
}

/// The angles of positions [0, num_positions), in models with rotary positions.
inline std::optional<RopeTable> rotations_of(const Context& context, const ModelConfig& config,
                                             std::int64_t num_positions,
                                             RopeTable::Lengths lengths = RopeTable::Lengths::kLongest) {
  if (config.positions != PositionType::kRope) return std::nullopt;
  return std::optional<RopeTable>(std::in_place, context, num_positions, config.rotated(), config.rope_theta,
                                  config.rope_scaling, lengths);
}

/// The same for layers with local_rope_theta, in models that have some.
inline std::optional<RopeTable> local_rotations_of(const Context& context, const ModelConfig& config,
                                                   std::int64_t num_positions) {
  if (config.positions != PositionType::kRope || !config.has_local_rope()) return std::nullopt;
  return std::optional<RopeTable>(std::in_place, context, num_positions, config.rotated(), config.local_rope_theta,
                                  RopeScaling{});
}

}  // namespace zerofleet
