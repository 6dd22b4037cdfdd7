#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/device/context.h"
#include "core/dtype.h"
#include "kernels/quantize/quantized_matrix.h"
#include "model/config/model_config.h"

namespace zerofleet {

/// The same network as Transformer's, for writing text: one sequence that grows, whose keys and values are kept, so that
/// a token costs one row of every product. Nothing is dropped. On a CPU the logits after a token do not depend on how the
/// tokens before it were cut into calls, nor on the number of threads; on a CUDA device a library may multiply another number
/// of rows in another order. Not thread-safe.
class Decoder {
 public:
  /// `capacity`: the longest sequence. Throws Error{"invalid_model_config"}, or Error{"invalid_argument"} for a capacity
  /// below 1 or beyond max_position_embeddings.
  Decoder(const Context& context, const ModelConfig& config, DType dtype, std::int64_t capacity);
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  /// Same contract as Transformer's: a pointer per ParamSpec, not owned, then params_changed() before the first token.
  void bind_params(std::span<const std::byte* const> params, std::span<const QuantizedMatrix* const> quantized = {});
  void params_changed();

  std::int64_t capacity() const;
  /// Tokens of the sequence so far.
  std::int64_t length() const;
  /// Forgets the sequence.
  void clear();

  /// Appends tokens, at least one. last_logits: (V) of the token after the last one. Throws
  /// Error{"token_out_of_vocab"}, or Error{"invalid_argument"} beyond the capacity; the sequence is then cleared.
  void append(std::span<const std::int32_t> tokens, std::span<float> last_logits);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zerofleet
