#pragma once

#include <cstdint>
#include <vector>

#include "core/dtype.h"
#include "zero/offload/offload.h"
#include "zero/optimizer/optimizer_options.h"
#include "zero/partition/param_groups.h"
#include "zero/step/grad_norm.h"
#include "zero/step/loss_scaler.h"

namespace zerofleet {

/// Settings of a job for the states of its parameters and the exchange of gradients.
struct ShardingOptions {
  DType reduce_dtype = DType::kBF16;     // of gradients in transit
  DType grad_accum_dtype = DType::kF32;  // of sums of gradients, in lanes and on the owner
  DType master_dtype = DType::kF32;      // fp16 only with fp16 parameters and offload
  std::int64_t bucket_bytes = 16 << 20;
  std::int64_t lane_group = 1;             // G, lanes that are summed first, see LeafSchedule
  double gradient_predivide_factor = 1.0;  // divisor of gradients in transit
  Offload offload = Offload::kNone;
  int expert_parallel_size = 1;  // P, expert sets; 1: experts are shared like other parameters

  template <class Fields>
  void fields(Fields& field) {
    field("reduce_dtype", reduce_dtype);
    field("grad_accum_dtype", grad_accum_dtype);
    field("master_dtype", master_dtype);
    field("bucket_bytes", bucket_bytes);
    field("lane_group", lane_group);
    field("gradient_predivide_factor", gradient_predivide_factor);
    field("offload", offload, {{"none", Offload::kNone}, {"cpu", Offload::kCpu}});
    field("expert_parallel_size", expert_parallel_size);
  }
};

/// Settings of a job for the update of its parameters.
struct UpdateOptions {
  OptimizerOptions optimizer;
  float gradient_clipping = 1.0F;  // largest global norm; 0: off
  NormKind gradient_clipping_norm = NormKind::kL2;
  LossScaleOptions loss_scale;

  template <class Fields>
  void fields(Fields& field) {
    field("optimizer", optimizer);
    field.if_present("ema", optimizer.ema);
    field("gradient_clipping", gradient_clipping);
    field("gradient_clipping_norm", gradient_clipping_norm, {{"l2", NormKind::kL2}, {"max", NormKind::kMax}});
    field("loss_scale", loss_scale);
  }
};

struct ZeroOptions : ShardingOptions, UpdateOptions {
  DType param_dtype = DType::kBF16;  // of the model's parameters
  ParamGroups param_groups;          // empty: as resolve_param_groups() without rules
  std::int64_t num_leaves = 1;       // V, leaves of a step over all ranks; with passes, the most of a pass
  std::int64_t num_lanes = 0;        // L, see LeafSchedule: 0: num_leaves (stage 2), otherwise stage 1
  bool has_passes = false;           // a step is one or more passes, whose losses are added; stage 2 only
  double grad_unit = 1.0;            // given gradients are those of loss_sum × grad_unit × loss_scale()
};

/// True if the gradient of a leaf is only rounded to reduce_dtype before the exchange. A gradient that was computed in
/// that dtype is then exchanged unchanged.
bool gradients_are_only_rounded(const ZeroOptions& options);

/// Throws Error{"invalid_argument"} for options that are invalid for every model and world size.
void validate(const ZeroOptions& options);

}  // namespace zerofleet
