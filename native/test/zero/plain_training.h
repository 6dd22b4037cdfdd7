#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/param_spec.h"
#include "test/zero/narrow_values.h"
#include "test/zero/plain_optimizer.h"
#include "zero/step/loss_scaler.h"

namespace zerofleet::test {

/// A parameter of a plain job.
struct PlainParam {
  ParamSpec spec;
  int expert_set = -1;  // of an expert's parameter
  bool frozen = false;
  double lr_scale = 1;
  double weight_decay = 0;
};

/// Options that determine the numbers of a training job; independent of ranks, threads, buckets and memory.
struct PlainOptions {
  OptimizerOptions optimizer;
  DType param_dtype = DType::kF32;
  DType reduce_dtype = DType::kF32;
  DType grad_accum_dtype = DType::kF32;
  DType master_dtype = DType::kF32;
  std::int64_t num_leaves = 1;
  std::int64_t num_lanes = 1;
  std::int64_t lane_group = 1;
  int num_expert_sets = 1;
  double predivide = 1;
  double clipping = 0;
  bool clip_by_max = false;
  double grad_unit = 1;
  double lr = 1e-2;
  LossScaleOptions loss_scale;
};

/// Gradients and losses of the leaves. An expert's parameter has one gradient per run of num_expert_sets leaves, and
/// `leaf` is the number of that run.
struct PlainData {
  /// (numel), not scaled by the loss scale; empty for a parameter that the leaf does not use: its gradient is zero.
  std::function<std::span<const float>(std::int64_t step, std::int64_t leaf, std::size_t param)> grad;
  std::function<double(std::int64_t step, std::int64_t leaf)> loss_sum;
  std::int64_t targets_per_leaf = 1;
};

struct PlainSummary {
  double loss = 0, grad_norm = 0, loss_scale = 1;
  bool finite = true;
  std::int64_t num_targets = 0;
};

/// Training as one would write it down, one element after another on one machine: the sum of the leaves' gradients in
/// order, the norm, clipping, the optimizer. Written apart from native/zero, to be compared with it bit for bit.
class PlainTraining {
 public:
  PlainTraining(std::vector<PlainParam> params, const PlainOptions& options, PlainData data, std::uint64_t seed);

  PlainSummary step(std::int64_t number);
  /// The digest of all states, as docs/zero.md defines it.
  std::string digest() const;
  /// The parameters in compute dtype, one after the other.
  std::vector<std::byte> param_bytes() const;

  std::int64_t optimizer_steps() const { return optimizer_steps_; }

 private:
  void sum_grads(std::int64_t number, float loss_scale);
  double grad_norm() const;

  std::vector<PlainParam> params_;
  PlainOptions options_;
  PlainData data_;
  LossScaler scaler_;
  std::vector<PlainTensor> tensors_;
  std::int64_t optimizer_steps_ = 0;
};

}  // namespace zerofleet::test
