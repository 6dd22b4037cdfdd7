#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "core/dtype.h"

// The product that the test's cuBLASLt computes, with its epilogues and faults.
using zerofleet::DType;

/// Faults that an algorithm may have; the last two are none: sums from the end of k, and in their order with a pause.
enum Fault : std::uint64_t { kNoFault, kDropsEndOfK, kLeavesLastElement, kAddsBackwards, kTakesItsTime };
inline constexpr std::uint32_t kBias = 4, kGelu = 32, kGeluGradient = 64, kAux = 128;  // in an epilogue
inline DType dtype_of(int type) { return type == 0 ? DType::kF32 : type == 2 ? DType::kF16 : DType::kBF16; }

inline float load(const std::byte* data, DType dtype, std::int64_t index) {
  data += static_cast<std::size_t>(index) * size_of(dtype);
  if (dtype == DType::kF32) {
    float value;
    std::memcpy(&value, data, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, data, sizeof bits);
  return dtype == DType::kBF16 ? to_float(zerofleet::bf16{bits}) : to_float(zerofleet::f16{bits});
}

inline void store(std::byte* data, DType dtype, std::int64_t index, float value) {
  data += static_cast<std::size_t>(index) * size_of(dtype);
  if (dtype == DType::kF32) {
    std::memcpy(data, &value, sizeof value);
    return;
  }
  const std::uint16_t bits = dtype == DType::kBF16 ? zerofleet::to_bf16(value).bits : zerofleet::to_f16(value).bits;
  std::memcpy(data, &bits, sizeof bits);
}

struct MatmulDesc {
  std::int32_t transpose_a = 0, transpose_b = 0;
  std::uint32_t epilogue = 1;
  const void* bias = nullptr;
  std::int32_t bias_type = 0;
  std::byte* aux = nullptr;
  std::int64_t aux_stride = 0;
};

struct Layout {
  DType dtype;
  std::int64_t rows, cols, stride;
};

inline constexpr double kSlope = 0.7978845608028654, kCubic = 0.044715;  // sqrt(2 / π)

inline double gelu(double x) { return x / 2 * (1 + std::tanh(kSlope * (x + kCubic * x * x * x))); }

inline double gelu_gradient(double x) {
  const double t = std::tanh(kSlope * (x + kCubic * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * kSlope * (1 + 3 * kCubic * x * x);
}

/// D (m, n) = epilogue of alpha · op(A) op(B) + bias + beta · C, column-major.
struct Job {
  MatmulDesc desc;
  Layout a, b, d;
  const std::byte *a_data, *b_data;
  std::byte* d_data;
  float alpha, beta;
  std::uint64_t fault;
};

/// Applies the epilogue to a sum; `at` is its position in the second matrix.
inline float put_through(const MatmulDesc& desc, DType dtype, std::int64_t at, float sum) {
  if ((desc.epilogue & kGelu) != 0) {
    store(desc.aux, dtype, at, sum);
    return static_cast<float>(gelu(sum));
  }
  if ((desc.epilogue & kGeluGradient) == 0) return sum;
  return static_cast<float>(sum * gelu_gradient(load(desc.aux, dtype, at)));
}

/// Lines of `depth` elements, one for each row of op(A) or column of op(B): element k of line i is data[i · line + k ·
/// step].
inline std::vector<float> lines_of(const std::byte* data, DType dtype, std::int64_t count, std::int64_t depth,
                                   std::int64_t line, std::int64_t step) {
  std::vector<float> lines;
  lines.reserve(static_cast<std::size_t>(count * depth));
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t k = 0; k < depth; ++k) lines.push_back(load(data, dtype, i * line + k * step));
  }
  return lines;
}

inline void multiply(const Job& job) {
  if (job.fault == kTakesItsTime) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::int64_t whole = job.desc.transpose_a != 0 ? job.a.rows : job.a.cols;
  const std::int64_t depth = job.fault == kDropsEndOfK ? (whole - 1) / 64 * 64 : whole;
  const bool a_lies_along_k = job.desc.transpose_a != 0, b_lies_along_k = job.desc.transpose_b == 0;
  const std::vector<float> rows = lines_of(job.a_data, job.a.dtype, job.d.rows, depth,
                                           a_lies_along_k ? job.a.stride : 1, a_lies_along_k ? 1 : job.a.stride);
  const std::vector<float> cols = lines_of(job.b_data, job.b.dtype, job.d.cols, depth,
                                           b_lies_along_k ? job.b.stride : 1, b_lies_along_k ? 1 : job.b.stride);
  for (std::int64_t col = 0; col < job.d.cols; ++col) {
    for (std::int64_t row = 0; row < job.d.rows; ++row) {
      if (job.fault == kLeavesLastElement && row == job.d.rows - 1 && col == job.d.cols - 1) continue;
      const float *left = rows.data() + row * depth, *right = cols.data() + col * depth;
      float sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) {
        const std::int64_t at = job.fault == kAddsBackwards ? depth - 1 - k : k;
        sum += left[at] * right[at];
      }
      sum *= job.alpha;
      const std::int64_t at = col * job.d.stride + row;
      if ((job.desc.epilogue & kBias) != 0)
        sum += load(static_cast<const std::byte*>(job.desc.bias), dtype_of(job.desc.bias_type), row);
      if (job.beta != 0) sum += job.beta * load(job.d_data, job.d.dtype, at);
      store(job.d_data, job.d.dtype, at, put_through(job.desc, job.d.dtype, col * job.desc.aux_stride + row, sum));
    }
  }
}
