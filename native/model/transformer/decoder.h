#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "core/dtype.h"
#include "kernels/quantize/quantized_matrix.h"
#include "model/config/model_config.h"

namespace zerofleet {

class ServedAdapter;
struct SharedOperands;

/// New tokens of a sequence.
struct SequenceRows {
  std::span<const std::int32_t> tokens;
  std::int64_t first = 0;                    // position of tokens[0] in the sequence
  std::span<const std::int32_t> page_table;  // pages of all tokens, the new ones included, kPageTokens in each
  bool needs_logits = false;                 // of the token after the last one
  const ServedAdapter* adapter = nullptr;    // from make_adapter(); null: the model alone
  /// Tokens of the sequence that are known, which decides the rotary frequencies (RopeScaling::is_long). At least
  /// first + tokens.size(), which 0 stands for. Where another length has other frequencies, all tokens must be appended
  /// anew.
  std::int64_t length = 0;
};

/// Logits of the next token of a sequence.
struct NextToken {
  std::span<const float> logits;  // (V)
  float largest = 0;              // of the logits
  float log_sum = 0;              // ln Σ exp(logit − largest)

  /// The log-probability of a token, with the bits of the loss that Transformer computes.
  float log_prob(std::int32_t token) const { return -((largest - logits[static_cast<std::size_t>(token)]) + log_sum); }
};

/// Inference with the network of Transformer. A KvCache keeps the keys and values of all sequences, so that a new token
/// costs one row of every product. There is no dropout. Not thread-safe.
///
/// The logits of a sequence depend neither on the other sequences of a call, nor on the division of its tokens among
/// calls, nor on the number of threads. On a CPU they have the bits of Transformer for the same tokens. On a CUDA
/// device every call computes max_rows rows, because a library may sum in another order when the number of rows
/// differs.
class Decoder {
 public:
  struct Limits {
    std::int64_t max_rows = 0;       // new tokens of a call
    std::int64_t max_sequences = 0;  // with logits in a call
    std::int64_t max_length = 0;     // tokens of a sequence
    std::int64_t num_pages = 0;
  };

  /// `shared`: of a Transformer with the same parameters, whose head is packed already; null: the decoder has its own.
  /// Throws Error{"invalid_model_config"}, or Error{"invalid_argument"} for limits below 1 or a max_length beyond
  /// max_position_embeddings.
  Decoder(const Context& context, const ModelConfig& config, DType dtype, const Limits& limits,
          const SharedOperands* shared = nullptr);
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  /// As in Transformer: one pointer per ParamSpec, not owned; params_changed() must follow before the first token.
  void bind_params(std::span<const std::byte* const> params, std::span<const QuantizedMatrix* const> quantized = {});
  /// Refreshes the packed copies of one layer's parameters. `layer`: as in ParamSpec::layer; -1: those outside layers.
  void params_changed(int layer);
  /// Refreshes the copies of all parameters.
  void params_changed();
  /// True if, after params_changed() of its layer, only a packed copy of the parameter is read.
  bool is_copied(std::size_t param) const { return copied_[param]; }

  /// Makes an adapter for sequences of a model without one. values: of each of ServedAdapter::params(), in the compute
  /// dtype. Throws the errors of ServedAdapter.
  std::unique_ptr<const ServedAdapter> make_adapter(const AdapterConfig& adapter,
                                                    std::span<const std::vector<std::byte>> values) const;

  const Limits& limits() const;
  std::int64_t vocab_size() const;
  /// Bytes of the KV cache and the packed copies of weights.
  std::size_t num_bytes() const;
  /// Bytes of the KV cache and of activations, on a CPU with the logits of the last append().
  std::size_t activation_bytes() const;

  /// Appends at least one token to each sequence. Returns one element per sequence with needs_logits, in their order;
  /// the elements are valid until the next call. Throws Error{"token_out_of_vocab"}, or Error{"invalid_argument"}
  /// beyond the limits; then it appends nothing.
  std::span<const NextToken> append(std::span<const SequenceRows> sequences);

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::vector<bool> copied_;  // by parameter
};

}  // namespace zerofleet
