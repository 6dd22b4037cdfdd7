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
#include "kernels/quantize/quantized_matrix.h"
#include "zero/optimizer/optimizer_rule.h"
#include "zero/optimizer/trust_ratios.h"
#include "zero/partition/digest.h"
#include "zero/step/loss_scaler.h"
#include "zero/step/zero_comms.h"
#include "zero/step/zero_memory.h"
#include "zero/step/zero_options.h"

namespace zerofleet {

/// Settings of one update, instead of those of the options.
struct UpdateSettings {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0;  // of groups with the general one
  double gradient_clipping = 0;
};

struct StepRequest {
  double lr = 0;  // for parameter groups with lr_scale 1
  std::uint32_t flags = 0;
  std::vector<std::optional<double>> rule_lrs = {};  // by rule with own_rate: rate that replaces lr; may be empty
  std::optional<UpdateSettings> update = {};         // with passes only
};

/// Summary of a step. Equal on every rank, except the seconds.
struct StepSummary {
  double loss = 0;        // mean over the targets of the global batch, folded in leaf order; NaN without targets
  double aux_loss = 0;    // mean over leaves; not part of `loss`. A step of passes has neither
  double grad_norm = 0;   // of the averaged and unscaled gradient, before clipping
  double loss_scale = 1;  // factor of this step's gradients
  std::vector<TrustRatios> trust_ratios;  // by group of parameters; empty for rules without them, and in skipped steps
  bool finite = true;                     // false: the update was skipped, and the state is unchanged
  std::uint32_t flags = 0;
  std::int64_t num_targets = 0;
  double exchange_seconds = 0;       // wait for gradients and statistics
  double exchange_busy_seconds = 0;  // duration of gradient exchanges, mostly during backward
  double optimizer_seconds = 0;
  double gather_seconds = 0;  // wait for parameters after the update
};

/// Progress of a training besides the states of the parameters.
struct ZeroProgress {
  std::int64_t optimizer_steps = 0;  // updates applied
  std::int64_t skipped_steps = 0;    // updates skipped because gradients were not finite
  LossScalerState loss_scaler;
};

/// Parts of a loaded state to restore.
enum class Restore : std::uint8_t {
  kFull,          // everything: training continues as if it had never ended
  kWeights,       // only the master; optimizer, counters and loss scaler start anew
  kWeights16Bit,  // everything, but the master is recomputed from the compute parameters
};

/// ZeRO-1 and 2 over a communicator. Every rank computes with all parameters, but keeps gradients, master weights and
/// moments only of the blocks that it owns. One step, on every rank:
///
///   for each of leaves(): begin_leaf, add_grad once per parameter in any order, end_leaf
///   step()
///
/// With ZeroOptions::has_passes a step has one or more passes, each with a number of leaves of its own. Its gradient is
/// the sum over all leaves, pass after pass, instead of a mean:
///
///   for each pass: begin_pass(), for each of leaves(): …, end_pass()
///   step(), or drop_passes()
///
/// The bits of the result depend on the leaves and lanes alone. They do not depend on the world size, bucket size,
/// thread count or the order in which gradients arrive. Calls come from one thread; add_grad must not be called inside
/// a task of the pool. After an error of a communicator ("comm_failed", "comm_timeout") the object can only be
/// destroyed.
class ZeroOptimizer {
 public:
  /// Throws Error{"invalid_argument"} for invalid options, Error{"too_many_ranks"} for more ranks than lanes unless
  /// passes may have fewer leaves than ranks, and Error{"all_parameters_frozen"}. Communicators and the context's pool
  /// must outlive the object.
  ZeroOptimizer(const Context& context, const ZeroComms& comms, std::vector<ParamSpec> params,
                const ZeroOptions& options);
  ~ZeroOptimizer();
  ZeroOptimizer(const ZeroOptimizer&) = delete;
  ZeroOptimizer& operator=(const ZeroOptimizer&) = delete;

  /// Parameters in compute dtype, one 64-byte aligned pointer per ParamSpec; null for experts of other ranks. Addresses
  /// never change; initialize(), step() and finish_load() change the contents.
  std::span<const std::byte* const> params() const;
  /// Quantized matrices of parameters with a ParamSpec::quantization, whose pointers above are null; null for all other
  /// parameters, and empty without any. They are quantized from the loaded elements in compute dtype, and cannot be
  /// copied back.
  std::span<const QuantizedMatrix* const> quantized_params() const;

  /// Initializes the state: the master with random numbers keyed by (seed, parameter, element), the other states with
  /// the optimizer's initial values, and counters with zero. The master of parameters before `first` is unchanged.
  /// If `first` is not 0, finish_load() must follow, and params() keep their contents until then.
  void initialize(std::uint64_t seed, std::size_t first = 0);
  /// Sets only the base of adapters to these values. finish_load() must follow.
  void initialize_base(std::uint64_t seed);

  /// Begins a pass of 1 to ZeroOptions::num_leaves leaves. Throws Error{"leaf_out_of_order"} within a pass, and
  /// Error{"invalid_argument"}.
  void begin_pass(std::int64_t num_leaves);
  /// Ends a pass: on return the sums of its gradients are with their owners. Must be called on every rank, also on
  /// those without a leaf. Throws Error{"leaf_out_of_order"} if leaves are missing.
  void end_pass();
  /// Drops the passes since the last step. Throws Error{"leaf_out_of_order"} within a pass.
  void drop_passes();

  /// Leaves that this rank computes in every step, or in the pass, in order.
  std::vector<std::int64_t> leaves() const;
  /// Factor that the caller must apply to the gradients of the next step.
  double loss_scale() const;
  /// Overrides the loss scale until nullopt ends the override. Must be called between steps.
  void override_loss_scale(std::optional<double> scale);

  /// Throws Error{"leaf_out_of_order"} unless `leaf` is the next of leaves().
  void begin_leaf(std::int64_t leaf);
  /// Adds a gradient, (numel of the parameter), which is copied before the call returns. Throws
  /// Error{"gradient_repeated"}, Error{"gradient_of_frozen"}, and Error{"leaf_out_of_order"} outside of a leaf. Throws
  /// Error{"invalid_argument"} for a wrong parameter or size, or an expert of other ranks.
  void add_grad(std::size_t param, std::span<const float> grad) { add_grad(param, GradView::of(grad)); }
  void add_grad(std::size_t param, const GradView& grad);
  /// As GradSink::room_for(), within a leaf. Null unless gradients_are_only_rounded(), and for some parameters.
  std::byte* room_for(std::size_t param, DType dtype);
  /// Ends a leaf. `num_targets`: number of items over which the loss is a mean. A step with passes has neither. Throws
  /// Error{"gradient_missing"} with the name of a parameter without a gradient.
  void end_leaf(double loss_sum, std::int64_t num_targets, double aux_loss = 0);

  /// Runs an exchange of other data, such as rows of experts, on the communication thread, and returns when it is done.
  /// It starts after all work that the rank has queued on its device, and after all exchanges that it has posted.
  ///
  /// A rank thus has one exchange in progress at a time, in the same order on all ranks. Ranks must call this at the
  /// same points of their backward. Throws what `exchange` throws, and errors of earlier exchanges.
  void run_exchange(const std::function<void()>& exchange);

  /// Completes a step. Throws Error{"leaf_out_of_order"} if leaves are missing, and Error{"no_gradients"} without a
  /// pass; then nothing changes. When the loss scaler gives up, throws Error{"diverged"}, or Error{"no_targets"} if
  /// steps had no targets, on every rank and after the step is done.
  StepSummary step(const StepRequest& request);

  /// Ranges of the state that this rank owns: state by state, each ascending in canonical parameter order. The base of
  /// adapters is not part of the state; its owned ranges are in base_ranges(), and can be copied and loaded, too.
  std::vector<StateRange> state_ranges() const;
  std::vector<StateRange> base_ranges() const;
  /// Copies or loads owned elements of a state from `begin` on, as fp32 (fp16 widens exactly). Throws
  /// Error{"slice_not_owned"} unless they lie in one of the ranges above.
  void copy_state(StateId state, std::size_t param, std::int64_t begin, std::span<float> values) const;
  void load_state(StateId state, std::size_t param, std::int64_t begin, std::span<const float> values);
  /// Ends a load; must be called on every rank at once. Applies `restore`, and computes the parameters from the master.
  void finish_load(const ZeroProgress& progress, Restore restore = Restore::kFull);
  /// Recomputes the owned master from the parameters in compute dtype, after weights were loaded in that dtype.
  void refresh_master();
  /// This rank's share of the state digest, which is the sum over all ranks.
  Digest128 digest_part() const;
  /// The same for the base of adapters, rounded to the compute dtype.
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
