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

/// New tokens of a text.
struct TextRows {
  std::span<const std::int32_t> tokens;
  std::int64_t first = 0;               // tokens that came before
  std::span<const std::int32_t> pages;  // of all its tokens, the new ones included, kPageTokens in each
  bool wants_logits = false;            // of the token behind the last one
  const ServedAdapter* adapter = nullptr;  // of make_adapter()
};

/// What the next token of a text is drawn from.
struct NextToken {
  std::span<const float> logits;  // (V)
  float largest = 0;              // of them
  float log_sum = 0;              // ln Σ exp(logit − largest)

  /// The log-probability of a token, with the bits of the loss that Transformer computes.
  float log_prob(std::int32_t token) const { return -((largest - logits[static_cast<std::size_t>(token)]) + log_sum); }
};

/// The same network as Transformer's, for writing texts: the keys and values of any number of growing texts are kept, so
/// that a token costs one row of every product. Nothing is dropped. Not thread-safe.
///
/// A text's numbers do not depend on the other texts of a call, on how its tokens were cut into calls, nor on the number
/// of threads. On a CPU they are those of Transformer for the same tokens. On a CUDA device every call has max_rows rows,
/// because a library may compute products of other numbers of rows in another order.
class Decoder {
 public:
  struct Limits {
    std::int64_t max_rows = 0;    // new tokens of a call
    std::int64_t max_texts = 0;   // of a call that want logits
    std::int64_t max_length = 0;  // of a text, in tokens
    std::int64_t num_pages = 0;
  };

  /// Throws Error{"invalid_model_config"}, or Error{"invalid_argument"} for limits below 1 or a max_length beyond
  /// max_position_embeddings.
  Decoder(const Context& context, const ModelConfig& config, DType dtype, const Limits& limits);
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  /// Same contract as Transformer's: a pointer per ParamSpec, not owned, then params_changed() before the first token.
  void bind_params(std::span<const std::byte* const> params, std::span<const QuantizedMatrix* const> quantized = {});
  /// Refreshes what is derived from the parameters of one layer, or of none (-1), as ParamSpec::layer names it.
  void params_changed(int layer);
  /// The same for all.
  void params_changed();
  /// True if only a copy of the parameter is read after params_changed() of its layer.
  bool is_copied(std::size_t param) const { return copied_[param]; }

  /// Makes an adapter for texts, over a model without one (ServedAdapter). values: of each of its parameters, in the compute dtype.
  std::unique_ptr<const ServedAdapter> make_adapter(const AdapterConfig& adapter, std::span<const std::vector<std::byte>> values) const;

  const Limits& limits() const;
  std::int64_t vocab_size() const;
  /// Bytes of pages and copies of weights.
  std::size_t num_bytes() const;

  /// Appends tokens to texts, at least one to each. Returns an element per text that wants logits, in their order, which are
  /// valid until the next call. Throws Error{"token_out_of_vocab"}, or Error{"invalid_argument"} beyond the limits; nothing is
  /// then appended.
  std::span<const NextToken> append(std::span<const TextRows> texts);

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::vector<bool> copied_;  // by parameter
};

}  // namespace zerofleet
