#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/context.h"
#include "core/dtype.h"

namespace zerofleet {

/// The optimizer's states. Values are part of the state digest: never renumber.
enum class StateId : std::uint8_t { kMaster = 0, kExpAvg = 1, kExpAvgSq = 2 };

inline constexpr std::size_t kMaxStates = 3;

/// Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019).
struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
};

/// A run of owned elements that share one weight-decay setting, in all the arrays that an update touches.
/// `states` is indexed by StateId; entries that the rule does not use are null.
struct UpdateSegment {
  float* states[kMaxStates] = {};
  const float* grad = nullptr;
  std::byte* params = nullptr;  // compute dtype
  std::int64_t numel = 0;
  bool decay = true;
};

/// What changes from step to step.
struct UpdateScalars {
  double lr = 0;
  float grad_factor = 1;   // averaging × clipping, applied to every gradient element
  std::int64_t step = 1;   // of the optimizer, counted from 1
};

/// How one element of state moves. Element-wise, so it knows nothing of ranks, buckets or parameters.
class OptimizerRule {
 public:
  virtual ~OptimizerRule() = default;
  /// States that the rule keeps, the master first, ascending.
  virtual std::span<const StateId> states() const = 0;
  /// Updates the states and writes the new parameters, rounded to `param_dtype`.
  virtual void update(const Context& context, std::span<const UpdateSegment> segments, DType param_dtype,
                      const UpdateScalars& scalars) const = 0;
};

/// Throws Error{"invalid_argument"} for betas outside [0, 1), eps <= 0 or a negative weight decay.
std::unique_ptr<OptimizerRule> make_adamw(const AdamWOptions& options);

}  // namespace zerofleet
