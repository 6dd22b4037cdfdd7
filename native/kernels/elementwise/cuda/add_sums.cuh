#pragma once

#include <iterator>
#include <span>

#include "core/device/context.h"
#include "kernels/common/cuda/temporary.h"
#include "kernels/elementwise/dropout.h"

namespace zerofleet::cuda {

/// target += the sums that compute(sums) makes.
template <class Compute>
void add_sums(const Context& ctx, std::span<float> target, const Compute& compute) {
  Temporary<float> memory(ctx, target.size());
  const std::span<float> sums(memory.data(), target.size());
  compute(sums);
  const auto row_of = [](std::span<float> values) {
    const auto count = std::ssize(values);
    return Matrix{values.data(), DType::kF32, 1, count, count};
  };
  zerofleet::add(ctx, row_of(sums), row_of(target));
}

}  // namespace zerofleet::cuda
