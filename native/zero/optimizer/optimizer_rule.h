#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/device/context.h"
#include "core/dtype.h"
#include "core/range.h"
#include "kernels/optimizer/optimizer_segment.h"
#include "zero/optimizer/optimizer_options.h"

namespace zerofleet {

/// States of the optimizers, and their names. Their order is part of the state digest: append only.
#define ZF_STATES(X)                    \
  X(kMaster, "master")                  \
  X(kExpAvg, "exp_avg")                 \
  X(kExpAvgSq, "exp_avg_sq")            \
  X(kMomentumBuffer, "momentum_buffer") \
  X(kSum, "sum")                        \
  X(kEma, "ema")

enum class StateId : std::uint8_t {
#define ZF_ID(id, name) id,
  ZF_STATES(ZF_ID)
#undef ZF_ID
};

#define ZF_COUNT(id, name) +1
inline constexpr std::size_t kMaxStates = 0 ZF_STATES(ZF_COUNT);
#undef ZF_COUNT

const char* name_of(StateId state);
/// Throws Error{"invalid_argument"} for another name.
StateId state_from_name(std::string_view name);

/// An owned range of one parameter in one state, without padding.
struct StateRange {
  StateId state = StateId::kMaster;
  std::size_t param = 0;
  Range elements;
};

/// Consecutive owned elements of one parameter group, in all arrays that an update touches; each array is (numel).
struct UpdateSegment {
  std::byte* master = nullptr;     // of OptimizerDTypes::master
  float* states[kMaxStates] = {};  // by StateId; null for the master and for states that the rule lacks
  const std::byte* grad = nullptr;
  std::byte* params = nullptr;  // null: not written
  std::int64_t numel = 0;
  std::size_t group = 0;        // index into UpdateScalars::groups
  float trust_ratio = 1;        // of the parameter, for rules that need parameter norms
  std::int64_t first_stat = 0;  // index of the first block in the sums of prepare()
};

/// Settings of a parameter group that change from step to step.
struct GroupScalars {
  double lr = 0;
  double weight_decay = 0;
};

struct UpdateScalars {
  std::span<const GroupScalars> groups;
  float grad_factor = 1;  // unscaling × averaging × clipping, applied to every gradient element
  std::int64_t step = 1;  // of the optimizer, counted from 1
  float ema_weight = 0;   // weight of the new master in kEma, for rules that have this state
};

/// Update rule of an optimizer, element by element. It knows nothing of ranks, buckets or parameters. Arithmetic is
/// fp32 for any storage dtype. Constants are computed in fp64 and rounded once.
class OptimizerRule {
 public:
  virtual ~OptimizerRule() = default;

  /// States of the rule in ascending order, the master first.
  virtual std::span<const StateId> states() const = 0;
  /// Value of a state before the first step. Padding between parameters is always 0.
  virtual float initial_value(StateId) const { return 0; }

  /// Replaces the betas and eps. Throws Error{"invalid_argument"} for rules whose constants stay.
  virtual void set_constants(const OptimizerOptions& options);

  /// True if update() requires prepare() before it, and each segment's trust_ratio.
  virtual bool needs_param_norms() const { return false; }
  /// First of two passes: updates the moments, and computes sums of squares of the master and of the raw update for
  /// every block of kBlockNumel elements. The sums of a segment's n-th block go to index first_stat + n of the two
  /// arrays. Segments must consist of whole blocks. Throws Error{"invalid_argument"} if the rule has no such pass, or
  /// if the arrays are too short.
  virtual void prepare(const Context& context, std::span<const UpdateSegment> segments, const OptimizerDTypes& dtypes,
                       const UpdateScalars& scalars, std::span<double> weight_sums,
                       std::span<double> update_sums) const;
  /// Returns the factor of a parameter's update, from the norms (not squared) of its master and of its raw update.
  virtual float trust_ratio(double /*weight_norm*/, double /*update_norm*/) const { return 1; }

  /// Updates the master, and the states unless prepare() has updated them. Writes the new parameters.
  virtual void update(const Context& context, std::span<const UpdateSegment> segments, const OptimizerDTypes& dtypes,
                      const UpdateScalars& scalars) const = 0;
};

/// Throws Error{"invalid_argument"} as validate(OptimizerOptions) does.
std::unique_ptr<OptimizerRule> make_optimizer_rule(const OptimizerOptions& options);

}  // namespace zerofleet
