#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/context.h"
#include "core/dtype.h"
#include "core/param_spec.h"
#include "core/range.h"
#include "zero/digest.h"
#include "zero/optimizer_rule.h"

namespace zerofleet {

struct ZeroOptions {
  DType param_dtype = DType::kBF16;   // of the parameters that the model computes with
  DType reduce_dtype = DType::kBF16;  // of gradients on their way to their owner; the fold is always fp32
  std::int64_t bucket_bytes = 4 << 20;
  OptimizerOptions optimizer;
  float gradient_clipping = 1.0F;  // largest global norm; 0 = off
  std::int64_t num_leaves = 1;     // V, leaves of one step over all ranks
  std::int64_t num_lanes = 0;      // L, see LeafSchedule: 0 = num_leaves (stage 2), else stage 1
  double grad_unit = 1.0;          // the gradients handed in are those of loss_sum × grad_unit
};

struct StepRequest {
  double lr = 0;
  std::uint32_t flags = 0;
};

/// What one step found; the same on every rank, apart from the seconds.
struct StepSummary {
  double loss = 0;       // mean over the targets of the global batch, folded in leaf order; NaN without targets
  double grad_norm = 0;  // of the averaged gradient, before clipping
  bool finite = true;    // false: the update was skipped, the state is as before
  std::uint32_t flags = 0;
  std::int64_t num_targets = 0;
  double exchange_seconds = 0;       // that this rank's step waited for gradients and statistics to arrive
  double exchange_busy_seconds = 0;  // that the communication thread worked, mostly hidden behind backward
  double optimizer_seconds = 0;
  double gather_seconds = 0;  // that the step waited for parameters after the last update
};

/// An owned, unbroken stretch of one parameter in one state; padding is not part of it.
struct StateSlice {
  StateId state = StateId::kMaster;
  std::size_t param = 0;
  Range elements;
  std::span<float> data;
};

struct ZeroMemory {
  std::size_t param_bytes = 0;       // whole model, compute dtype
  std::size_t grad_shard_bytes = 0;  // owned, fp32
  std::size_t state_bytes = 0;       // owned, fp32: master and moments
  std::size_t staging_bytes = 0;     // buckets on their way, both directions
};

/// ZeRO-1 and 2 over a communicator: every rank computes with all parameters, but keeps gradients, master weights and moments
/// only of the blocks it owns. One step, on every rank:
///
///   for each of leaves(): begin_leaf, add_grad once per parameter in any order, end_leaf
///   step()
///
/// The bits of the result depend on the leaves alone: not on the world size, bucket size, thread count or the order in
/// which gradients arrive. Calls come from one thread, and add_grad never from inside a task of the pool.
/// Errors of the communicator ("comm_failed", "comm_timeout") leave the object fit for destruction only.
class ZeroOptimizer {
 public:
  /// Throws Error{"invalid_argument"} for options that cannot work, "too_many_ranks" for more ranks than leaves.
  /// The communicator and the context's pool must outlive the object.
  ZeroOptimizer(const Context& context, Communicator& communicator, std::vector<ParamSpec> params,
                const ZeroOptions& options);
  ~ZeroOptimizer();
  ZeroOptimizer(const ZeroOptimizer&) = delete;
  ZeroOptimizer& operator=(const ZeroOptimizer&) = delete;

  /// Parameters in compute dtype, one pointer per ParamSpec, each 64-byte aligned. Addresses stay, contents change in
  /// initialize(), step() and finish_load().
  std::span<const std::byte* const> params() const;

  /// Fresh state: the master from counter-based random numbers keyed by (seed, parameter, element), moments zero.
  void initialize(std::uint64_t seed);

  /// The leaves that this rank computes in every step, in order.
  std::vector<std::int64_t> leaves() const;
  /// Throws Error{"leaf_out_of_order"} unless `leaf` is the next of leaves().
  void begin_leaf(std::int64_t leaf);
  /// `grad` (numel of the parameter) is copied before the call returns. Throws Error{"gradient_repeated"},
  /// Error{"leaf_out_of_order"} outside of a leaf, Error{"invalid_argument"} for a wrong parameter or size.
  void add_grad(std::size_t param, std::span<const float> grad);
  /// Throws Error{"gradient_missing"} with the name of a parameter whose gradient has not come.
  void end_leaf(double loss_sum, std::int64_t num_targets);

  /// Throws Error{"leaf_out_of_order"} if leaves of this step are missing.
  StepSummary step(const StepRequest& request);

  /// State by state, each in canonical parameter order and ascending; writable for loading.
  std::vector<StateSlice> state_slices();
  /// After a load: sets the counters and rebuilds the parameters from the master, on every rank at once.
  void finish_load(std::int64_t optimizer_steps, std::int64_t skipped_steps);
  /// This rank's share; the sum over all ranks is the state digest.
  Digest128 digest_part() const;

  std::int64_t optimizer_steps() const;  // updates applied
  std::int64_t skipped_steps() const;    // updates left out because gradients were not finite
  ZeroMemory memory() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace zerofleet
