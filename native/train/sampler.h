#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/param_spec.h"
#include "core/threads/thread_pool.h"
#include "model/transformer/decoder.h"
#include "train/token_draw.h"

namespace zerofleet {

/// Draws text from a set of weights. The draw at place i depends on (seed, i) and the logits alone. A text that grows
/// beyond what the decoder holds goes on from its newer half.
class Sampler {
 public:
  Sampler(const ModelConfig& config, int num_threads, CpuIsa cpu_isa);

  /// Sets one parameter from fp32 values; all must be set before the first sample().
  void set_param(std::size_t param, std::span<const float> values);

  /// Tokens that follow `prompt`, up to max_tokens or the end token. Throws Error{"invalid_argument"} for an empty prompt or
  /// options that cannot be, Error{"token_out_of_vocab"}.
  std::vector<std::int32_t> sample(std::span<const std::int32_t> prompt, const SampleOptions& options);

 private:
  ModelConfig config_;
  std::vector<ParamSpec> specs_;
  ThreadPool pool_;
  Context context_;
  std::vector<Buffer> params_;
  std::vector<bool> is_set_;
  Decoder decoder_;
  bool packed_ = false;
};

}  // namespace zerofleet
