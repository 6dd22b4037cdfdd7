#pragma once

#include <cstdint>
#include <string>

#include "core/cpu_isa.h"
#include "core/dtype.h"
#include "data/batch_source.h"
#include "model/model_config.h"
#include "train/lr_schedule.h"

namespace zerofleet {

/// Everything that a rank must know to train. What decides the result (all but rank, world_size, num_threads and the
/// path of the token file) is the same on every rank and stays the same when a job is resumed on another world size.
struct TrainerConfig {
  ModelConfig model;
  int rank = 0;
  int world_size = 1;
  int num_threads = 1;
  CpuIsa cpu_isa = CpuIsa::kGeneric;

  DType precision = DType::kBF16;  // of parameters and activations
  DType reduce_dtype = DType::kBF16;
  std::int64_t bucket_bytes = 4 << 20;

  BatchShape batch;
  std::string token_file;
  std::uint64_t seed = 1;       // of the initial parameters
  std::uint64_t data_seed = 1;  // of the order of samples

  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
  double gradient_clipping = 1.0;  // 0 = off
  LrSchedule lr_schedule;
};

/// Throws Error{"invalid_argument" or a more telling code} for values that cannot train, e.g. "too_many_ranks".
void validate(const TrainerConfig& config);

}  // namespace zerofleet
