#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/common/block.h"
#include "model/config/model_config.h"

namespace zerofleet::bench {

/// A training that is measured: a model and the shape of its steps.
struct TrainingShape {
  std::string name;
  ModelConfig model;
  PassShape micro_batch;
  std::int64_t leaves = 4;  // micro-batches of a step
  int warmup_steps = 3;
  int steps = 8;
  bool measures_all_kernels = false;  // also those that its model does not use

  std::int64_t tokens_per_step() const { return leaves * micro_batch.rows(); }
};

/// "gpt2" (124M), "gpt2-xl" (1.5B), "llama-1b" (Llama 3.2's, at 1024 tokens) and "llama-1b-4096", in bf16, whose
/// micro-batches have 16384 tokens; "gpt2-tiny" and "llama-tiny", which are there for tests.
std::vector<TrainingShape> full_trainings();
std::vector<TrainingShape> tiny_trainings();
/// Throws Error{"invalid_argument"} for another name.
TrainingShape training_named(const std::string& name);

/// Parameters that are multiplied with: an input embedding is looked up, and vectors only scale and shift.
double multiplied_params(const ModelConfig& config);
/// Multiplications and additions of forward and backward for a token: 6 for each multiplied parameter. `attention` adds
/// its products over the keys that a query sees.
double operations_per_token(const TrainingShape& training, bool attention);

}  // namespace zerofleet::bench
