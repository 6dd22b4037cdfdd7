#include "zero/step/zero_options.h"

#include <cmath>

#include "core/error.h"

namespace zerofleet {

bool gradients_are_only_rounded(const ZeroOptions& options) {
  const bool adds_leaves = options.num_lanes != 0 && options.num_lanes < options.num_leaves;
  return !adds_leaves && options.gradient_predivide_factor == 1;
}

void validate(const ZeroOptions& options) {
  require(options.grad_unit > 0 && std::isfinite(options.grad_unit), "invalid_argument", "grad_unit must be positive");
  require(options.gradient_clipping >= 0, "invalid_argument", "gradient_clipping must not be negative; 0 turns it off");
  require(!options.has_passes || options.num_lanes == 0 || options.num_lanes == options.num_leaves, "invalid_argument",
          "a step of passes has a lane per leaf, as in stage 2");
  const double predivide = options.gradient_predivide_factor;
  require(predivide > 0 && std::isfinite(predivide), "invalid_argument", "gradient_predivide_factor must be positive");
  require(options.expert_parallel_size >= 1, "invalid_argument", "expert_parallel_size must be at least 1");
  const bool fp16_offloaded = options.param_dtype == DType::kF16 && options.offload == Offload::kCpu;
  require(options.master_dtype == DType::kF32 || (options.master_dtype == DType::kF16 && fp16_offloaded),
          "invalid_argument", "master_dtype is fp32, or fp16 with precision fp16 and offload cpu");
}

}  // namespace zerofleet
