// Indices beyond 2^31: matrices of a few rows that begin so far apart that those of the last ones do not fit into 32
// bits.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/embedding/embedding.h"
#include "kernels/gemm/gemm.h"
#include "kernels/loss/cross_entropy.h"
#include "test/cuda_emulator/far_memory.h"
#include "test/devices_here.h"
#include "test/kernels/host_matrix.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr std::int64_t kStride = (std::int64_t{1} << 30) + 8;  // elements; row 2 begins behind 2^31

/// A copy of a matrix with rows kStride apart.
class FarRows {
 public:
  explicit FarRows(HostMatrix& near)
      : near_(near), memory_(static_cast<std::size_t>(near.rows() * kStride) * size_of(near.dtype())) {
    copy_rows(near.view(), view());
  }

  Matrix view() const { return {memory_.data(), near_.dtype(), near_.rows(), near_.cols(), kStride}; }
  /// Returns its contents with rows next to each other.
  HostMatrix near() const {
    HostMatrix matrix(near_.dtype(), near_.rows(), near_.cols());
    copy_rows(view(), matrix.view());
    return matrix;
  }

 private:
  static void copy_rows(const Matrix& from, const Matrix& to) {
    for (std::int64_t row = 0; row < from.rows; ++row)
      std::memcpy(to.at(row, 0), from.at(row, 0), static_cast<std::size_t>(from.cols) * size_of(from.dtype));
  }

  HostMatrix& near_;
  FarMemory memory_;
};

/// Runs `run` on the matrices as they are, and on copies with rows far apart; `result` of both must be equal.
template <std::size_t kCount, class Run>
void check_far(std::array<HostMatrix, kCount> matrices, std::size_t result, const Run& run) {
  std::array<HostMatrix, kCount> copies = matrices;
  DeviceMachine machine(kFirstGpu);
  Scratch scratch(machine.ctx);
  std::array<Matrix, kCount> near, far;
  std::vector<std::unique_ptr<FarRows>> rows;
  for (std::size_t i = 0; i < kCount; ++i) {
    near[i] = matrices[i].view();
    rows.push_back(std::make_unique<FarRows>(copies[i]));
    far[i] = rows.back()->view();
  }
  run(machine.ctx, scratch, near);
  run(machine.ctx, scratch, far);
  synchronize(machine.ctx);
  CHECK(rows[result]->near() == matrices[result]);
}

constexpr std::array kTypes{DType::kF32, DType::kBF16};  // kernels in fp32, and those on tensor cores

}  // namespace

DEVICE_TEST_CASE("rows beyond 2^31 elements: products") {
  for (const DType dtype : kTypes) {
    std::mt19937 random(3);
    const auto matrix = [&](std::int64_t rows, std::int64_t cols, DType type) {
      return HostMatrix::random(type, rows, cols, random);
    };
    for (const bool varies : {false, true}) {
      check_far(std::array{matrix(4, 8, dtype), matrix(4, 8, dtype), matrix(4, 4, DType::kF32)}, 2,
                [&](const Context& ctx, Scratch& scratch, std::array<Matrix, 3> m) {
                  const SourceOperand source{{m[1]}, SourceRows::kAlongN};
                  const std::array problem{GemmProblem{m[0], nullptr, m[2], false, false, nullptr, &source, varies}};
                  gemm(ctx, scratch, problem);
                });
      check_far(std::array{matrix(4, 8, dtype), matrix(4, 8, dtype), matrix(8, 8, DType::kF32)}, 2,
                [&](const Context& ctx, Scratch& scratch, std::array<Matrix, 3> m) {
                  PackedMatrix packed(ctx, dtype, 4, 8);
                  const std::array request{PackRequest{m[1], SourceRows::kAlongK, &packed}};
                  pack(ctx, request);
                  const std::array problem{GemmProblem{m[0], &packed, m[2], true, true, nullptr, nullptr, varies}};
                  gemm(ctx, scratch, problem);
                });
    }
  }
}

DEVICE_TEST_CASE("rows beyond 2^31 elements: the loss and embeddings") {
  for (const DType dtype : kTypes) {
    std::mt19937 random(5);
    const SharedValues<std::int32_t> values(std::vector<std::int32_t>{3, 8, -100, 0});
    const Indices targets{values, values.data()};
    SharedValues<float> losses(4);
    check_far(std::array{HostMatrix::random(DType::kF32, 4, 9, random), HostMatrix(dtype, 4, 9)}, 1,
              [&](const Context& ctx, Scratch&, std::array<Matrix, 2> m) {
                cross_entropy(ctx, {m[0], targets, losses, m[1], 1.0F});
                synchronize(ctx);
              });
    const SharedValues<std::int32_t> rows(std::vector<std::int32_t>{3, 1, 3, 0});
    const Indices tokens{rows, rows.data()};
    check_far(std::array{HostMatrix::random(dtype, 4, 9, random), HostMatrix(dtype, 4, 9)}, 1,
              [&](const Context& ctx, Scratch&, std::array<Matrix, 2> m) { embedding(ctx, m[0], tokens, m[1]); });
  }
}

DEVICE_TEST_CASE("rows beyond 2^31 elements: attention and its backward") {
  constexpr AttentionShape kShape{1, 5, 2, 1, 8};
  for (const DType dtype : kTypes) {
    std::mt19937 random(7);
    const HostMatrix qkv = HostMatrix::random(dtype, 5, kShape.qkv_size(), random),
                     dout = HostMatrix::random(dtype, 5, kShape.query_size(), random);
    for (const std::size_t result : {std::size_t{1}, std::size_t{3}}) {
      SharedValues<float> lse(10);
      check_far(
          std::array{qkv, HostMatrix(dtype, 5, kShape.query_size()), dout, HostMatrix(dtype, 5, kShape.qkv_size())},
          result, [&](const Context& ctx, Scratch& scratch, std::array<Matrix, 4> m) {
            attention(ctx, scratch, {kShape, m[0], m[1], lse});
            attention_backward(ctx, scratch, {kShape, m[0], m[1], lse, m[2], m[3]});
          });
    }
  }
}
