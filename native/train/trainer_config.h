#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/dtype.h"
#include "core/system/cpu_isa.h"
#include "data/batch_source.h"
#include "model/config/model_config.h"
#include "train/loss/preference_config.h"
#include "train/lr_schedule.h"
#include "train/overrides.h"
#include "zero/step/zero_options.h"

namespace zerofleet {

/// Distribution of state and gradients over ranks, and exchange of gradients.
struct ZeroConfig : ShardingOptions {
  int stage = 2;
  std::int64_t lanes = 0;  // stage 1 only: number of lanes in a step

  template <class Fields>
  void fields(Fields& field) {
    ShardingOptions::fields(field);
    field("stage", stage);
    field.if_present("lanes", lanes);
  }
};

/// Configuration of a rank's training.
///
/// Everything that decides the result is equal on all ranks, and stays equal when a job resumes with another world
/// size. Rank, world_size, num_threads, the index of the device and the paths of token files do not decide it.
struct TrainerConfig : UpdateOptions {
  ModelConfig model;
  bool activation_checkpointing = false;  // less memory, the same bits
  int rank = 0;
  int world_size = 1;
  int num_threads = 1;
  Device device;  // of kernels, parameters, activations and, unless offloaded, states
  /// Bytes of CUDA device memory reserved at the start. A training that does not fit fails there, and no step requests
  /// more. 0: none.
  std::size_t reserved_bytes = 0;
  CpuIsa cpu_isa = CpuIsa::kGeneric;

  DType precision = DType::kBF16;  // of parameters and activations
  BatchShape batch;
  std::optional<PreferenceConfig> preference;  // none: the loss is the mean over all targets
  /// A training session: its steps come from calls, so there are no files. A pass has at most batch.global_batch_size
  /// rows.
  bool session = false;
  std::vector<TrainingFile> training_files;
  std::vector<std::vector<std::string>> evaluation_files;  // token files of each evaluation
  std::uint64_t seed = 1;                                  // of the initial parameters
  std::uint64_t data_seed = 1;                             // of the order of samples

  std::vector<ParamGroupRule> param_groups;
  LrSchedule lr_schedule;
  std::vector<Override> overrides;
  ZeroConfig zero;

  template <class Fields>
  void fields(Fields& field) {
    UpdateOptions::fields(field);
    batch.fields(field);
    field("model", model);
    field("activation_checkpointing", activation_checkpointing);
    field("rank", rank);
    field("world_size", world_size);
    field("threads", num_threads);
    field("device", device);
    field("reserved_bytes", reserved_bytes);
    field("cpu_isa", cpu_isa, cpu_isa_from_name);
    field("precision", precision);
    field("preference", preference);
    field("session", session);
    field("training_files", training_files);
    field("evaluation_files", evaluation_files);
    field("seed", seed);
    field("data_seed", data_seed);
    field("param_groups", param_groups);
    field("lr_schedule", lr_schedule);
    field.in("optimizer")("lr", lr_schedule.peak_lr);
    field("steps", lr_schedule.total_steps);
    field("overrides", overrides);
    field("zero", zero);
  }

  /// Number of sequences in a unit of the batch, and in a leaf.
  std::int64_t unit_sequences() const { return preference ? preference->unit_sequences() : 1; }
  std::int64_t leaf_sequences() const { return batch.micro_batch_size * unit_sequences(); }
  /// The largest number of counted items in a leaf: targets, or units of a preference objective.
  std::int64_t max_counted() const {
    return preference ? batch.micro_batch_size : batch.micro_batch_size * batch.sequence_length;
  }
  /// Divisor of the gradients of a leaf's loss sum before backward: max_counted(). In fp16 it is multiplied by the
  /// number of leaves and divided by gradient_predivide_factor. So the sum over a step has the same magnitude for any
  /// number of leaves. It then overflows at the same scale as in DeepSpeed, which divides the loss of a micro-batch by
  /// the number of accumulation steps.
  double grad_divisor() const;
};

/// Throws Error{"invalid_argument"}, or a more specific code such as "too_many_ranks", for an invalid configuration.
void validate(const TrainerConfig& config);

/// Returns the options of the ZeRO core. Throws as resolve_param_groups() does, for patterns that match nothing.
ZeroOptions zero_options(const TrainerConfig& config);

}  // namespace zerofleet
