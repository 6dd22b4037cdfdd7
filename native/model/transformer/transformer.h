#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "core/dtype.h"
#include "core/grad_sink.h"
#include "kernels/quantize/quantized_matrix.h"
#include "model/common/leaf_input.h"
#include "model/common/weight_use.h"
#include "model/config/model_config.h"
#include "model/config/param_table.h"
#include "model/mlp/expert_exchange.h"
#include "model/objective/sequence_score.h"

namespace zerofleet {

struct SharedOperands;

/// Takes one finished gradient in fp32: index into param_specs() and its elements, which are valid during the call
/// only.
using GradCallback = std::function<void(std::size_t param, std::span<const float> grad)>;

/// Factors of the losses before their gradients are taken: sums over targets, and the leaf's auxiliary loss.
struct GradScale {
  GradScale(float of_loss, float of_aux_loss = 0)
      : loss(of_loss), aux_loss(of_aux_loss) {}  // NOLINT: mostly one number
  float loss;
  float aux_loss;
};

struct LeafResult {
  double loss_sum = 0;           // sum of -log p(target) over the targets that count, added in token order
  std::int64_t num_targets = 0;  // targets other than -100
  double aux_loss = 0;  // router_aux_loss_coef · the routers' load balancing loss over all layers; not in loss_sum
};

/// Execution options of a model.
struct TransformerOptions {
  /// Keep each layer's input only and run the layer again before its backward. The same bits; on a CUDA device only if
  /// all rows are computed at once.
  bool checkpoint_activations = false;
  /// Use of weights; experts always have packed copies, for the few rows of each.
  WeightUse weights = WeightUse::kPackedCopies;
  /// Exchange with the ranks that hold the other sets of experts. Each of these ranks runs its own leaf, and all call
  /// the same methods in the same order. Gradients of an expert arrive on the rank that holds it, for the sum of the
  /// losses of these leaves; the bits depend on the number of sets. Null: all experts are here. It must outlive the
  /// model.
  ExpertExchange* experts = nullptr;
  /// Type of the gradients of weights that one product computes: fp32, or the compute dtype for a sink that would only
  /// round them to it. Those of embeddings, heads, norms and biases are in fp32.
  DType weight_gradients = DType::kF32;
  /// By parameter: it has no gradient. The backward ends at the lowest layer that has one. Empty: none is frozen.
  std::vector<bool> frozen = {};
  /// The most rows that are computed at once (ModelContext), a multiple of 64; 0: all, or with checkpointed activations
  /// the device's.
  std::int64_t max_rows_at_once = 0;
};

/// A decoder-only transformer with explicit forward and backward for micro-batches of one shape (B, T).
///
/// Every result is a function of parameters, tokens and instruction-set path alone. Tiles depend on shapes only, and
/// threads never split a sum. In bf16 and fp16 the activations and the residual stream, and their gradients, are stored
/// in that type. Products accumulate in fp32; norms, softmax and loss compute in fp32. Parameter gradients leave in
/// fp32, or rounded once. What overflows fp16 becomes infinite and stays visible as Inf or NaN in the gradients. Not
/// thread-safe: one call at a time.
class Transformer {
 public:
  /// Throws Error{"invalid_model_config"} or Error{"invalid_argument"} for shapes that cannot be.
  Transformer(const Context& context, const ModelConfig& config, DType compute_dtype, std::int64_t micro_batch_size,
              std::int64_t sequence_length, const TransformerOptions& options = {});
  ~Transformer();
  Transformer(Transformer&&) noexcept;
  Transformer& operator=(Transformer&&) noexcept;

  /// Binds a pointer per ParamSpec to elements of the compute dtype, null for experts that other ranks hold. Not owned:
  /// they must outlive this object or the next bind_params(). Call params_changed() before the first pass.
  /// `quantized`: the matrices of parameters with a ParamSpec::quantization, whose pointers are not used; null for all
  /// others, and empty for a model without.
  void bind_params(std::span<const std::byte* const> params, std::span<const QuantizedMatrix* const> quantized = {});

  /// Refreshes data derived from the parameters (packed copies). To be called after each change of their contents.
  void params_changed();

  /// Loss and gradients of scale.loss · loss_sum + scale.aux_loss · aux_loss. The scales, a loss scale included, are in
  /// the gradient of the logits before that is rounded to the compute dtype; the losses themselves are without them.
  /// Dropout draws its masks from the leaf's key.
  /// The sink takes a gradient exactly once per parameter that is here and not frozen, as soon as it is final, on the
  /// calling thread.
  /// Throws Error{"token_out_of_vocab"}, Error{"invalid_argument"}; an exception of the sink passes through.
  LeafResult forward_backward(const LeafInput& leaf, const GradScale& scale, GradSink& sink);
  /// The same for gradients in fp32.
  LeafResult forward_backward(const LeafInput& leaf, const GradScale& scale, const GradCallback& on_grad);

  /// The same with the gradients of scale.loss · the loss of an objective over the leaf's sequences, which is asked
  /// once for its derivatives. The result is as above.
  LeafResult forward_backward(const LeafInput& leaf, const SequenceObjective& objective, const GradScale& scale,
                              GradSink& sink);

  /// The same with an objective over the leaf's targets.
  LeafResult forward_backward(const LeafInput& leaf, const TargetObjective& objective, const GradScale& scale,
                              GradSink& sink);

  /// The loss alone, without dropout.
  LeafResult forward(const LeafInput& leaf);

  enum class Adapters : std::uint8_t { kOn, kOff };
  /// Log-probabilities of the targets, (B, T), without dropout; 0 where there is none. With the adapters off they are
  /// those of the base; throws Error{"invalid_argument"} unless the configuration has one (ModelConfig::has_base()).
  std::vector<float> log_probs(const LeafInput& leaf, Adapters adapters = Adapters::kOn);
  /// The sums over the targets of each sequence.
  std::vector<SequenceScore> scores(const LeafInput& leaf, Adapters adapters = Adapters::kOn);

  /// For a Decoder of the same parameters, after params_changed(). Copies of weights that the decoder makes stay until
  /// the next params_changed().
  SharedOperands operands() const;

  /// Bytes that this object holds now: packed copies of the weights; and activations, gradients in transit, and
  /// kernels' work space. Both reach their final size in the first forward_backward(); the formulas stand beside the
  /// allocations (from block.h on, in each part's file, and kernels/attention/cpu/attention_backward.cc).
  std::size_t packed_bytes() const;
  std::size_t activation_bytes() const;

  /// Wall-clock seconds of the last forward_backward() or forward().
  double forward_seconds() const;
  double backward_seconds() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zerofleet
