#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/device/context.h"
#include "core/dtype.h"
#include "kernels/quantize/quantized_matrix.h"
#include "model/config/model_config.h"
#include "serve/continuous_batch.h"

namespace zerofleet {

class Transformer;

struct SampledAnswer {
  std::vector<std::int32_t> tokens;  // the end token included
  std::vector<float> log_probs;      // of the tokens, before temperature and other restrictions
  Finish finish = Finish::kLength;
};

/// A model whose parameters a training holds, and its ranks.
struct SampledModel {
  Context context;
  const Transformer& transformer;
  const ModelConfig& config;
  std::int64_t sequence_length = 0;  // of the training: all its sequences have the rotary frequencies of this length
  DType dtype = DType::kF32;         // of the parameters
  std::span<const std::byte* const> params;
  std::span<const QuantizedMatrix* const> quantized;
  Communicator& world;
};

/// Draws an answer to each request; ids, adapters and masks of the requests are not used. Rank r of N draws those of
/// requests r, r + N, …; the result is equal on every rank, and has the bits of a single rank.
///
/// The KV cache and the activations are freed at the end; copies of weights are as in Transformer::operands().
/// `most_bytes` is raised to the bytes of the former. Must be called on every rank at once. Throws the errors of
/// ContinuousBatch::check(), on every rank alike, and errors of the communicator.
std::vector<SampledAnswer> sample(const SampledModel& model, std::span<const SequenceRequest> requests,
                                  std::size_t& most_bytes);

}  // namespace zerofleet
