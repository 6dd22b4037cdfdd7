#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/device/context.h"
#include "core/dtype.h"
#include "kernels/optimizer/optimizer_segment.h"
#include "zero/optimizer/optimizer_options.h"

namespace zerofleet {

/// The optimizers' states. Values are part of the state digest: never renumber.
enum class StateId : std::uint8_t { kMaster = 0, kExpAvg = 1, kExpAvgSq = 2, kMomentumBuffer = 3, kSum = 4, kEma = 5 };

inline constexpr std::size_t kMaxStates = 6;

/// "master", "exp_avg", "exp_avg_sq", "momentum_buffer", "sum", "ema"
const char* name_of(StateId state);
/// Throws Error{"invalid_argument"} for another name.
StateId state_from_name(std::string_view name);

/// A run of owned elements of one parameter group, in all the arrays that an update touches, each (numel).
struct UpdateSegment {
  std::byte* master = nullptr;     // of OptimizerDTypes::master
  float* states[kMaxStates] = {};  // by StateId; entries that the rule does not keep, and the master's, are null
  const std::byte* grad = nullptr;
  std::byte* params = nullptr;     // null: not wanted
  std::int64_t numel = 0;
  std::size_t group = 0;           // index into UpdateScalars::groups
  float trust_ratio = 1;           // of the segment's parameter, for rules that need parameter norms
  std::int64_t first_stat = 0;     // place of its first block in the sums of prepare()
};

/// Values of a parameter group that change from step to step.
struct GroupScalars {
  double lr = 0;
  double weight_decay = 0;
};

struct UpdateScalars {
  std::span<const GroupScalars> groups;
  float grad_factor = 1;  // unscaling × averaging × clipping, applied to every gradient element
  std::int64_t step = 1;  // of the optimizer, counted from 1
  float ema_weight = 0;   // of the new master in the state kEma, for rules that keep one
};

/// Update rule of an element of state. It knows nothing of ranks, buckets or parameters. Arithmetic is fp32 whatever
/// the arrays' storage is, constants are computed in fp64 and rounded once.
class OptimizerRule {
 public:
  virtual ~OptimizerRule() = default;

  /// States that the rule keeps, the master first, ascending.
  virtual std::span<const StateId> states() const = 0;
  /// Returns a state's value before the first step; padding between parameters is 0 all the same.
  virtual float initial_value(StateId) const { return 0; }

  /// Returns true if update() must be preceded by prepare() and needs each segment's trust_ratio.
  virtual bool needs_param_norms() const { return false; }
  /// The first of two passes: moves the moments and writes, for every block of kBlockNumel elements of every segment, the
  /// sums of squares of the master and of the raw update to place `first_stat` + block of the two arrays. A segment then
  /// has whole blocks. Throws Error{"invalid_argument"} where the rule has no such pass, or a sum has no place.
  virtual void prepare(const Context& context, std::span<const UpdateSegment> segments, const OptimizerDTypes& dtypes,
                       const UpdateScalars& scalars, std::span<double> weight_sums, std::span<double> update_sums) const;
  /// The factor of a parameter's update from the norms (not squared) of its master and its raw update.
  virtual float trust_ratio(double /*weight_norm*/, double /*update_norm*/) const { return 1; }

  /// Moves the master, and the states unless prepare() did; writes the new parameters.
  virtual void update(const Context& context, std::span<const UpdateSegment> segments, const OptimizerDTypes& dtypes,
                      const UpdateScalars& scalars) const = 0;
};

/// Throws Error{"invalid_argument"} as validate(OptimizerOptions) does.
std::unique_ptr<OptimizerRule> make_optimizer_rule(const OptimizerOptions& options);

}  // namespace zerofleet
