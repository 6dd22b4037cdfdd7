#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "test/devices_here.h"
#include "test/kernels/host_matrix.h"
#include "test/kernels/test_machine.h"
#include "test/sanitized.h"

namespace zerofleet::test {

/// Returns true if a sanitizer learns nothing new from a kernel on this path with this storage type, because another
/// path or type makes the same accesses. The two 16-bit types differ only in their conversions. fp16 is tested on the
/// portable path, where they are arithmetic, and on the best path, where they are instructions. The path with AVX-512's
/// instructions for bf16 differs from AVX-512's for bf16 alone. Threads share work in the same way for every type.
inline bool is_repetition(CpuIsa isa, DType dtype) {
  if (kThreadSanitized) return dtype == DType::kF16;
  if (!kSanitized) return false;
  if (dtype == DType::kF16) return isa != best_cpu_isa() && isa != CpuIsa::kGeneric;
  return isa == CpuIsa::kAvx512Bf16 && dtype == DType::kF32;
}

/// Runs body(ctx, dtype) on every path that this machine has, for every storage type, with two threads; under a
/// sanitizer without repetitions.
template <class Body>
void on_every_path(const Body& body) {
  for (const CpuIsa isa : available_isas()) {
    for (const DType dtype : kAllDTypes) {
      if (is_repetition(isa, dtype)) continue;
      CAPTURE(std::string(name_of(isa)) + " " + name_of(dtype));
      Machine machine(isa, 2);
      body(machine.ctx, dtype);
    }
  }
}

/// Runs body(ctx) on every path of the CPU, with two threads, and on every CUDA device that this machine has.
template <class Body>
void on_every_context(const Body& body) {
  if (cpu_is_tested()) {
    for (const CpuIsa isa : available_isas()) {
      CAPTURE(name_of(isa));
      Machine machine(isa, 2);
      body(machine.ctx);
    }
  }
  for (const Device device : cuda_devices_here()) {
    CAPTURE(to_string(device));
    DeviceMachine machine(device);
    body(machine.ctx);
  }
}

/// The same of a CUDA device. cuDNN takes no fp32: a run with it would repeat what the run without it does.
inline bool is_repetition_on_device(DType dtype) {
  if (!kSanitized) return false;
  return dtype == DType::kF16 || (dtype == DType::kF32 && std::getenv("ZF_CUDNN") != nullptr);
}

/// Runs body(ctx, dtype) on every path of the CPU and on every CUDA device that this machine has, for every storage
/// type. Kernels on a device queue their work: the body calls synchronize(ctx) before it looks at a result.
template <class Body>
void on_every_device(const Body& body) {
  if (cpu_is_tested()) on_every_path(body);
  for (const Device device : cuda_devices_here()) {
    for (const DType dtype : kAllDTypes) {
      if (is_repetition_on_device(dtype)) continue;
      CAPTURE(to_string(device) + " " + name_of(dtype));
      DeviceMachine machine(device);
      body(machine.ctx, dtype);
    }
  }
}

/// Σ a · b over all elements: the scalar whose gradient a backward kernel computes when b is what comes from above.
inline double dot(const Table& a, const Table& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a[i].size(); ++j) sum += a[i][j] * b[i][j];
  }
  return sum;
}

/// The gradient of dot(f(x), above), by central differences. Each row of f(x) depends on that row of x alone, so one
/// row at a time is evaluated, not all of them for each element.
inline Table numeric_gradient_of_rows(const std::function<Table(const Table&)>& f, const Table& x, const Table& above) {
  Table gradient;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Table above_row{above[i]};
    const auto of_row = [&](const Table& moved) { return dot(f(moved), above_row); };
    gradient.push_back(numeric_gradient(of_row, Table{x[i]}).front());
  }
  return gradient;
}

inline Table added(const Table& a, const Table& b) {
  Table sum = a;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a[i].size(); ++j) sum[i][j] += b[i][j];
  }
  return sum;
}

/// A matrix of one row of fp32 values.
inline HostMatrix row_of(std::span<const float> values) {
  HostMatrix row(DType::kF32, 1, std::ssize(values));
  for (std::size_t j = 0; j < values.size(); ++j) row.set(0, static_cast<std::int64_t>(j), values[j]);
  return row;
}

}  // namespace zerofleet::test
