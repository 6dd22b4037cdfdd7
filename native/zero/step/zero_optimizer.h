#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "core/grad_view.h"
#include "core/param_spec.h"
#include "core/range.h"
#include "kernels/quantize/quantized_matrix.h"
#include "zero/optimizer/optimizer_rule.h"
#include "zero/optimizer/trust_ratios.h"
#include "zero/partition/digest.h"
#include "zero/step/loss_scaler.h"
#include "zero/step/zero_comms.h"
#include "zero/step/zero_memory.h"
#include "zero/step/zero_options.h"

namespace zerofleet {

struct StepRequest {
  double lr = 0;  // of parameter groups with lr_scale 1
  std::uint32_t flags = 0;
  std::vector<std::optional<double>> rule_lrs = {};  // by rule with own_rate: the rate of its parameters, whatever lr is; may be empty
};

/// Summary of a step; the same on every rank, apart from the seconds.
struct StepSummary {
  double loss = 0;        // mean over the targets of the global batch, folded in leaf order; NaN without targets
  double aux_loss = 0;    // mean over leaves, which is not in `loss`
  double grad_norm = 0;   // of the averaged and unscaled gradient, before clipping
  double loss_scale = 1;  // that the gradients of this step were multiplied with
  std::vector<TrustRatios> trust_ratios;  // by group of parameters; empty for rules without, and in skipped steps
  bool finite = true;     // false: the update was skipped, the state is as before
  std::uint32_t flags = 0;
  std::int64_t num_targets = 0;
  double exchange_seconds = 0;       // that this rank's step waited for gradients and statistics to arrive
  double exchange_busy_seconds = 0;  // that exchanges of gradients took, mostly hidden behind backward
  double optimizer_seconds = 0;
  double gather_seconds = 0;  // that the step waited for parameters after the last update
};

/// An owned, unbroken stretch of one parameter in one state; padding is not part of it.
struct StateRange {
  StateId state = StateId::kMaster;
  std::size_t param = 0;
  Range elements;
};

/// Saved state of a training besides the states of the parameters.
struct ZeroProgress {
  std::int64_t optimizer_steps = 0;  // updates applied
  std::int64_t skipped_steps = 0;    // updates left out because gradients were not finite
  LossScalerState loss_scaler;
};

/// Parts of a loaded state that are restored.
enum class Restore : std::uint8_t {
  kFull,          // all of it: training goes on as if it had never ended
  kWeights,       // the master; the optimizer, the counters and the loss scaler start afresh
  kWeights16Bit,  // all of it, but the master is made anew from the parameters that the model computes with
};

/// ZeRO-1 and 2 over a communicator: every rank computes with all parameters, but keeps gradients, master weights and
/// moments only of the blocks it owns. One step, on every rank:
///
///   for each of leaves(): begin_leaf, add_grad once per parameter in any order, end_leaf
///   step()
///
/// The bits of the result depend on the leaves and lanes alone: not on the world size, bucket size, thread count or the
/// order in which gradients arrive. Calls come from one thread, and add_grad never from inside a
/// task of the pool. Errors of a communicator ("comm_failed", "comm_timeout") leave the object fit for destruction only.
class ZeroOptimizer {
 public:
  /// Throws Error{"invalid_argument"} for options that cannot work, "too_many_ranks" for more ranks than lanes,
  /// "all_parameters_frozen". Communicators and the context's pool must outlive the object.
  ZeroOptimizer(const Context& context, const ZeroComms& comms, std::vector<ParamSpec> params,
                const ZeroOptions& options);
  ~ZeroOptimizer();
  ZeroOptimizer(const ZeroOptimizer&) = delete;
  ZeroOptimizer& operator=(const ZeroOptimizer&) = delete;

  /// Parameters in compute dtype, one pointer per ParamSpec, each 64-byte aligned; null for experts that other ranks hold.
  /// Addresses stay, contents change in initialize(), step() and finish_load().
  std::span<const std::byte* const> params() const;
  /// The matrices of parameters with a ParamSpec::quantization, whose pointers above are null; null for all others, and empty where there
  /// are none. They are quantized from the loaded elements in compute dtype, and cannot be copied back.
  std::span<const QuantizedMatrix* const> quantized_params() const;

  /// Fresh state: the master from counter-based random numbers keyed by (seed, parameter, element), the other states at
  /// the optimizer's initial values, counters at zero. The master of parameters before `first` stays as it is.
  void initialize(std::uint64_t seed, std::size_t first = 0);
  /// The same values of the base of adapters alone; finish_load() must follow.
  void initialize_base(std::uint64_t seed);

  /// The leaves that this rank computes in every step, in order.
  std::vector<std::int64_t> leaves() const;
  /// Factor that the caller applies to the gradients of the next step.
  double loss_scale() const;
  /// Puts a scale from outside in force until nullopt takes it back. Between steps.
  void override_loss_scale(std::optional<double> scale);

  /// Throws Error{"leaf_out_of_order"} unless `leaf` is the next of leaves().
  void begin_leaf(std::int64_t leaf);
  /// `grad` (numel of the parameter) is copied before the call returns. Throws Error{"gradient_repeated"},
  /// Error{"gradient_of_frozen"}, Error{"leaf_out_of_order"} outside of a leaf, Error{"invalid_argument"} for a wrong
  /// parameter or size, or an expert that other ranks hold.
  void add_grad(std::size_t param, std::span<const float> grad) { add_grad(param, GradView::of(grad)); }
  void add_grad(std::size_t param, const GradView& grad);
  /// Within a leaf, as GradSink::room_for(): null unless gradients_are_only_rounded(), and for some parameters.
  std::byte* room_for(std::size_t param, DType dtype);
  /// Targets are whatever the loss is a mean over. Throws Error{"gradient_missing"} with the name of a
  /// parameter whose gradient has not come.
  void end_leaf(double loss_sum, std::int64_t num_targets, double aux_loss = 0);

  /// Runs an exchange that is not of gradients or parameters (rows of experts, for one) on the communication thread,
  /// after all that the rank has queued on its device and all that it has posted, and returns when it is done. So a
  /// rank has one exchange at a time in progress, and exchanges that wait for each other have the same order on all
  /// ranks: ranks call this at the same places of their backward. Throws what `exchange` throws, or what an exchange
  /// before it has thrown.
  void run_exchange(const std::function<void()>& exchange);

  /// Throws Error{"leaf_out_of_order"} if leaves of this step are missing; Error{"diverged"} or, where
  /// steps had no targets, Error{"no_targets"}, on every rank and with the step done, when the loss scaler has nowhere left
  /// to go.
  StepSummary step(const StepRequest& request);

  /// Ranges of the state that this rank owns: state by state, each in canonical parameter order and ascending. The base of
  /// adapters is no part of the state; base_ranges() has its share, which can be copied and loaded as well.
  std::vector<StateRange> state_ranges() const;
  std::vector<StateRange> base_ranges() const;
  /// Elements from `begin` on of a state that this rank owns, in fp32 whatever the storage is (fp16 widens exactly).
  /// Throw Error{"slice_not_owned"} where they are in no such range.
  void copy_state(StateId state, std::size_t param, std::int64_t begin, std::span<float> values) const;
  void load_state(StateId state, std::size_t param, std::int64_t begin, std::span<const float> values);
  /// After a load, on every rank at once: what `restore` leaves of it counts, and parameters are made from the master.
  void finish_load(const ZeroProgress& progress, Restore restore = Restore::kFull);
  /// The owned master anew from the parameters in compute dtype, for weights that came in that dtype.
  void refresh_master();
  /// This rank's share; the sum over all ranks is the state digest.
  Digest128 digest_part() const;
  /// Likewise of the base of adapters, rounded to the compute dtype.
  Digest128 base_digest_part() const;

  ZeroProgress progress() const;
  std::int64_t optimizer_steps() const;
  std::int64_t skipped_steps() const;
  ZeroMemory memory() const;

 private:
  struct Rank;
  std::unique_ptr<Rank> rank_;
};

}  // namespace zerofleet
