#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/context.h"
#include "core/dtype.h"
#include "kernels/adagrad_scalars.h"
#include "kernels/adam_scalars.h"
#include "kernels/adamw_scalars.h"
#include "kernels/block_hash.h"
#include "kernels/fold.h"
#include "kernels/lamb.h"
#include "kernels/lion_scalars.h"
#include "kernels/optimizer_segment.h"
#include "kernels/sgd_scalars.h"

// CUDA backends of the ZeRO operations; arguments are checked by the entries in kernels/. Arrays lie in memory of the
// context's device, except for results that are numbers of blocks (sums, magnitudes, hashes) and what is given for a
// segment or group: those lie in host memory. A call queues its work in the context's stream; those with results in host
// memory return when they are there. Errors: as core/cuda/cuda_runtime.h says; a build without CUDA has
// Error{"device_unavailable"} for all of them.
namespace zerofleet::cuda {

void cast_from_f32(const Context& context, std::span<const float> source, DType dtype, std::span<std::byte> target,
                   float factor);
void cast_to_f32(const Context& context, std::span<const std::byte> source, DType dtype, std::span<float> target);
void fold_pieces(const Context& context, const Fold& fold);
void block_stats(const Context& context, std::span<const std::byte> values, DType dtype, std::int64_t block_numel,
                 std::span<double> sum_squares, std::span<float> max_abs);
void hash_blocks(const Context& context, std::span<const std::byte> blocks, std::uint64_t first_seed,
                 std::span<Hash128> hashes);

void adamw(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
           std::span<const AdamWScalars> groups);
void adam(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
          std::span<const AdamScalars> groups);
void lamb_prepare(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
                  std::span<const LambScalars> groups, const LambSums& sums);
void lamb_update(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
                 std::span<const LambScalars> groups, std::span<const float> trust_ratios);
void lion(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
          std::span<const LionScalars> groups);
void adagrad(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
             std::span<const AdagradScalars> groups);
void sgd(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
         std::span<const SgdScalars> groups);

}  // namespace zerofleet::cuda
