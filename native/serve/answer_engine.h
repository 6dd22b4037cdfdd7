#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/device/stream.h"
#include "core/param_spec.h"
#include "core/threads/thread_pool.h"
#include "kernels/quantize/quantized_matrix.h"
#include "model/layers/served_adapter.h"
#include "model/transformer/decoder.h"
#include "serve/continuous_batch.h"

namespace zerofleet {

/// Runs continuous batching over weights of its own, for requests that come at any time (see ContinuousBatch).
/// Sequences of the model and of adapters over it share a pass. The products of the model are computed once for all.
///
/// add(), cancel() and allow() may be called from any thread, also during a step(). Calls of the other methods must not
/// overlap.
class AnswerEngine {
 public:
  struct Limits {
    std::int64_t max_sequences = 32;   // running at a time, 1 to 128
    std::int64_t cache_tokens = 4096;  // tokens whose keys and values the KV cache holds
    // Tokens of a sequence; the model and the cache may limit it further.
    std::int64_t max_length = std::numeric_limits<std::int64_t>::max();
  };

  /// `dtype`: of weights and products. Throws Error{"invalid_model_config"}, or Error{"invalid_argument"} for limits
  /// that are out of range.
  AnswerEngine(const ModelConfig& config, DType dtype, Device device, int num_threads, CpuIsa cpu_isa,
               const Limits& limits);

  /// Sets the elements of a parameter from `begin` on, from elements of `dtype`, which are rounded to the engine's. The
  /// elements of a parameter are set in order, each once, before the first step(). The engine quantizes the parameters
  /// that its configuration quantizes, as a training does. Throws Error{"invalid_argument"} otherwise.
  void set_param(std::size_t param, std::int64_t begin, DType dtype, std::span<const std::byte> elements);

  /// Largest number of tokens in a sequence.
  std::int64_t max_length() const { return decoder_.limits().max_length; }
  /// Bytes of the weights and the KV cache once all parameters are set, without adapters.
  std::size_t num_bytes() const;

  /// Adds an adapter and returns its number, which is never reused. `values`: of each of ServedAdapter::params(), in
  /// fp32. Throws the errors of ServedAdapter, Error{"invalid_argument"} for a wrong number of values, and errors of
  /// the device. After an error the engine is unchanged.
  std::int32_t add_adapter(const AdapterConfig& adapter, std::span<const std::vector<float>> values);
  /// Bytes of an adapter on the device.
  std::size_t num_bytes(std::int32_t adapter) const { return adapters_.at(adapter)->num_bytes(); }
  /// Removes an adapter, releases its memory, and drops its requests. Ignores an unknown number.
  void remove_adapter(std::int32_t adapter);

  /// Throws Error{"invalid_argument"} for an empty prompt, invalid options or an unknown adapter,
  /// Error{"token_out_of_vocab"}, and Error{"prompt_too_long"} for a prompt of max_length() or more tokens.
  void add(SequenceRequest request);
  /// Drops a request. Ignores an unknown id.
  void cancel(std::uint64_t id);
  /// Sets the tokens that the next one of a constrained sequence is drawn from. Such a sequence waits for this call
  /// before each token. Throws Error{"invalid_argument"} for a mask without a token. Ignores an unknown id.
  void allow(std::uint64_t id, TokenMask mask);

  /// Computes the next rows. Returns the drawn tokens, at most one per request; none while prompts are prefilled.
  /// Throws Error{"invalid_argument"} if a parameter was not set.
  std::vector<DrawnToken> step();

 private:
  void use_params(int layer);
  std::size_t bytes_of(const ParamSpec& spec) const;
  void receive_requests();
  void convert(DType dtype, std::span<const std::byte> elements, std::span<std::byte> target) const;

  std::vector<ParamSpec> specs_;
  ThreadPool pool_;
  Stream stream_;
  Context context_;
  DType dtype_;
  ModelConfig config_;
  std::vector<Buffer> params_;
  std::vector<QuantizedMatrix> quantized_;  // of each parameter; empty if it is not quantized
  std::vector<std::int64_t> num_set_;       // elements of each parameter
  std::map<int, std::int64_t> unset_;       // number of incomplete parameters by layer
  Decoder decoder_;
  ContinuousBatch batch_;
  std::int32_t last_adapter_ = 0;

  std::mutex mutex_;  // guards the members below; step() reads adapters_ without it
  std::map<std::int32_t, std::unique_ptr<const ServedAdapter>> adapters_;
  std::vector<SequenceRequest> arrived_;
  std::vector<std::uint64_t> cancelled_;
  std::map<std::uint64_t, TokenMask> allowed_;
};

}  // namespace zerofleet
