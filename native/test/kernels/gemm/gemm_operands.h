#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>

#include "core/device/transfer.h"
#include "kernels/gemm/gemm.h"
#include "test/kernels/every_path.h"
#include "test/kernels/test_machine.h"

// A product C = A B of random operands, computed by gemm() and in float64.
namespace zerofleet::test {

struct GemmCase {
  std::int64_t m, k, n;
  bool a_transposed = false;
  bool accumulate = false;
  std::int64_t a_gap = 0;
  float alpha = 1;
};

/// Products that gemm() refuses.
inline bool is_refused(const GemmCase& shape, DType c_dtype) {
  return shape.accumulate && c_dtype != DType::kF32 && shape.k > kMaxAddedDepth;
}

struct GemmOperands {
  HostMatrix a, b, c;
};

inline GemmOperands operands_of(const GemmCase& shape, DType dtype, DType c_dtype) {
  std::mt19937 random(7);
  return {shape.a_transposed ? HostMatrix::random(dtype, shape.k, shape.m, random, shape.a_gap)
                             : HostMatrix::random(dtype, shape.m, shape.k, random, shape.a_gap),
          HostMatrix::random(dtype, shape.k, shape.n, random, 1),
          HostMatrix::random(c_dtype, shape.m, shape.n, random, 2)};
}

inline Table expected_of(const GemmCase& shape, const GemmOperands& operands) {
  const Table a = table_of(operands.a), b = table_of(operands.b);
  Table product = table_of(operands.c);
  for (std::size_t i = 0; i < product.size(); ++i) {
    for (std::size_t j = 0; j < product[i].size(); ++j) {
      double sum = shape.accumulate ? product[i][j] : 0.0;
      for (std::size_t k = 0; k < b.size(); ++k)
        sum += static_cast<double>(shape.alpha) * (shape.a_transposed ? a[k][i] : a[i][k]) * b[k][j];
      product[i][j] = sum;
    }
  }
  return product;
}

/// `scratch`: the products of a context share it, because initialising a library takes time.
inline HostMatrix run(const Context& ctx, Scratch& scratch, const GemmCase& shape, GemmOperands operands, DType dtype,
                      const void* bias = nullptr, PackedWords words = PackedWords::kFastest) {
  PackedMatrix b(ctx, dtype, shape.k, shape.n, words);
  const std::array request{PackRequest{operands.b.view(), SourceRows::kAlongK, &b}};
  pack(ctx, request);
  GemmProblem problem[] = {{operands.a.view(), &b, operands.c.view(), shape.a_transposed, shape.accumulate, bias}};
  problem[0].alpha = shape.alpha;
  gemm(ctx, scratch, problem);
  synchronize(ctx);
  return operands.c;
}

inline HostMatrix transposed(const HostMatrix& matrix, DType dtype, std::int64_t rows, std::int64_t cols) {
  HostMatrix result(dtype, cols, rows, 1);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) result.set(j, i, static_cast<float>(matrix.at(i, j)));
  }
  return result;
}

/// run() with B as it lies in memory, in two parts where k allows it.
inline HostMatrix run_source(const Context& ctx, Scratch& scratch, const GemmCase& shape, GemmOperands operands,
                             SourceRows rows, const void* bias) {
  const bool along_k = rows == SourceRows::kAlongK;
  const DType dtype = operands.b.dtype();
  HostMatrix lying = along_k ? operands.b : transposed(operands.b, dtype, shape.k, shape.n);
  const Matrix b = lying.view();
  const bool is_added_to_16_bits = shape.accumulate && operands.c.view().dtype != DType::kF32;
  const std::int64_t first = is_added_to_16_bits ? 0 : shape.k / 3 / 2 * 2;
  SourceOperand source{{b}, rows};
  if (first > 0 && along_k) {
    source.parts = {b.first_rows(first), {b.at(first, 0), dtype, shape.k - first, shape.n, b.stride}};
  } else if (first > 0) {
    source.parts = {b.columns(0, first), b.columns(first, shape.k - first)};
  }
  GemmProblem problem[] = {{operands.a.view(), nullptr, operands.c.view(), false, shape.accumulate, bias, &source}};
  problem[0].alpha = shape.alpha;
  gemm(ctx, scratch, problem);
  synchronize(ctx);
  return operands.c;
}

inline std::string describe(const GemmCase& shape, CpuIsa isa, DType dtype, Device device = {}) {
  const std::string where = device.kind == DeviceKind::kCpu ? name_of(isa) : to_string(device);
  return where + " " + name_of(dtype) + " " + std::to_string(shape.m) + "x" + std::to_string(shape.k) + "x" +
         std::to_string(shape.n) + (shape.a_transposed ? " transposed" : "");
}

/// A context and the scratch memory of its products.
struct Setup {
  explicit Setup(Device device, CpuIsa isa = best_cpu_isa(), int num_threads = 2)
      : machine(device, isa, num_threads), scratch(machine.ctx) {}
  DeviceMachine machine;
  const Context& ctx = machine.ctx;
  Scratch scratch;
};

}  // namespace zerofleet::test
