// Products whose shapes differ from call to call, as those of experts do: several in one call, of any number of rows.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "core/device/transfer.h"
#include "core/error.h"
#include "kernels/backends/numerics.h"
#include "kernels/gemm/gemm.h"
#include "test/kernels/every_path.h"
#include "test/kernels/gemm/ways.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

struct Shape {
  std::int64_t m, k, n;
  std::int64_t second_part = 0;  // of k
};

// Shapes: one tile, many, broken ones, no row at all; k of less than a step, of several, in two parts. Columns and k in
// eights.
constexpr Shape kVaryingShapes[] = {{1, 8, 8},     {130, 40, 136}, {0, 16, 8},       {64, 200, 24},
                                    {5, 264, 304}, {257, 64, 16},  {17, 72, 40, 24}, {129, 160, 128, 96}};

/// Several products with the same layout, and their expected results.
class Products {
 public:
  Products(const Context& ctx, DType dtype, DType c_dtype, Way way) : ctx_(ctx), way_(way) {
    for (const Shape& shape : kVaryingShapes) {
      if (shape.m > 0 || way != Way::kWeightGradient) add(shape, dtype, c_dtype);  // an operand has at least one row
    }
  }

  void run() {
    Scratch scratch(ctx_);
    gemm(ctx_, scratch, problems_);
    synchronize(ctx_);
  }

  void check(double most) {
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      CAPTURE(i);
      if (operands_[i].c.rows() > 0) CHECK(relative_error(operands_[i].c, operands_[i].expected) < most);
    }
  }

 private:
  struct Operands {
    HostMatrix a, b, c, bias;
    Table expected;
    SourceOperand source;
    PackedMatrix packed;
  };

  void add(const Shape& shape, DType dtype, DType c_dtype) {
    std::mt19937 random(static_cast<unsigned>(shape.m * 7 + shape.k));
    const bool transposed = way_ == Way::kWeightGradient, along_n = way_ == Way::kForward;
    // In a gradient of weights the rows are k, and their number is arbitrary.
    const std::int64_t k = transposed ? shape.m : shape.k, m = transposed ? shape.k : shape.m;
    Operands& mine = operands_.emplace_back(Operands{
        transposed ? HostMatrix::random(dtype, k, m, random, 8) : HostMatrix::random(dtype, m, k, random, 16),
        along_n ? HostMatrix::random(dtype, shape.n, k, random, 8) : HostMatrix::random(dtype, k, shape.n, random),
        HostMatrix::random(c_dtype, m, shape.n, random, 1),
        HostMatrix::random(c_dtype, 1, shape.n, random),
        {},
        {},
        {}});
    mine.expected = expected_of(mine, c_dtype, m, k, shape.n);
    const Matrix b = mine.b.view();
    GemmProblem problem{mine.a.view(), nullptr, mine.c.view(), transposed, accumulates(c_dtype), bias_of(mine)};
    if (transposed) {
      mine.packed = PackedMatrix(ctx_, dtype, k, shape.n);
      const PackRequest request[] = {{b, SourceRows::kAlongK, &mine.packed}};
      pack(ctx_, request);
      problem.b = &mine.packed;
    } else {
      mine.source = source_of(b, along_n, shape.second_part);
      problem.source = &mine.source;
    }
    problem.varies = true;
    problems_.push_back(problem);
  }

  /// The second part lies elsewhere, so that both can't be taken for one matrix.
  SourceOperand source_of(const Matrix& b, bool along_n, std::int64_t second) {
    SourceOperand source{{b}, along_n ? SourceRows::kAlongN : SourceRows::kAlongK};
    if (second == 0) return source;
    const std::int64_t first = (along_n ? b.cols : b.rows) - second;
    HostMatrix& copy = copies_.emplace_back(b.dtype, b.rows, b.cols, 32);
    for (std::int64_t row = 0; row < b.rows; ++row) {
      std::memcpy(copy.view().at(row, 0), b.at(row, 0), static_cast<std::size_t>(b.cols) * size_of(b.dtype));
    }
    const Matrix there = copy.view();
    if (along_n) {
      source.parts = {b.columns(0, first), there.columns(first, second)};
    } else {
      source.parts = {b.first_rows(first), {there.at(first, 0), b.dtype, second, b.cols, there.stride}};
    }
    return source;
  }

  bool accumulates(DType c_dtype) const { return c_dtype == DType::kF32 && way_ == Way::kWeightGradient; }
  const void* bias_of(Operands& operands) const { return way_ == Way::kForward ? operands.bias.view().data : nullptr; }

  Table expected_of(Operands& operands, DType c_dtype, std::int64_t m, std::int64_t k, std::int64_t n) const {
    Table product = table_of(operands.c);
    const bool starts_with_c = accumulates(c_dtype);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = starts_with_c ? operands.c.at(i, j) : way_ == Way::kForward ? operands.bias.at(0, j) : 0.0;
        for (std::int64_t l = 0; l < k; ++l) {
          sum += (way_ == Way::kWeightGradient ? operands.a.at(l, i) : operands.a.at(i, l)) *
                 (way_ == Way::kForward ? operands.b.at(j, l) : operands.b.at(l, j));
        }
        product[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = sum;
      }
    }
    return product;
  }

  const Context& ctx_;
  Way way_;
  std::deque<Operands> operands_;
  std::deque<HostMatrix> copies_;
  std::vector<GemmProblem> problems_;
};

}  // namespace

DEVICE_TEST_CASE("gemm: products of varying shapes in one call match float64, whichever way their operands lie") {
  on_every_device([](const Context& ctx, DType dtype) {
    for (const Way way : kWays) {
      for (const DType c_dtype : {DType::kF32, dtype}) {
        CAPTURE(static_cast<int>(way));
        Products products(ctx, dtype, c_dtype, way);
        products.run();
        products.check(c_dtype == DType::kF32 ? 1e-5 : tolerance(c_dtype));
      }
    }
  });
}

// Rows of a group must not change when others join it: a token's output is its own.
DEVICE_TEST_CASE("gemm: a row of a varying product has the same bits whatever rows are beside it") {
  for (const Device device : cuda_devices_here()) {
    DeviceMachine machine(device);
    std::mt19937 random(5);
    constexpr std::int64_t kRows = 150, kK = 104, kN = 40;
    HostMatrix a = HostMatrix::random(DType::kBF16, kRows, kK, random),
               b = HostMatrix::random(DType::kBF16, kN, kK, random);
    HostMatrix all(DType::kF32, kRows, kN), one(DType::kF32, 1, kN);
    const SourceOperand source{{b.view()}, SourceRows::kAlongN};
    const Matrix row{a.view().at(137, 0), DType::kBF16, 1, kK, a.view().stride};
    GemmProblem problems[] = {{a.view(), nullptr, all.view(), false, false, nullptr, &source, true},
                              {row, nullptr, one.view(), false, false, nullptr, &source, true}};
    Scratch scratch(machine.ctx);
    gemm(machine.ctx, scratch, problems);
    synchronize(machine.ctx);
    for (std::int64_t j = 0; j < kN; ++j) CHECK(one.at(0, j) == all.at(137, j));
  }
}

DEVICE_TEST_CASE(
    "gemm: varying products that can't be read in pieces, or are more than a launch takes, are computed too") {
  for (const Device device : cuda_devices_here()) {
    DeviceMachine machine(device);
    std::mt19937 random(6);
    std::deque<HostMatrix> matrices;
    std::deque<SourceOperand> sources;
    std::vector<GemmProblem> problems;
    for (int i = 0; i < 100; ++i) {
      const std::int64_t k = i % 10 == 0 ? 9 : 8;
      HostMatrix& a = matrices.emplace_back(HostMatrix::random(DType::kF16, 2, k, random));
      HostMatrix& b = matrices.emplace_back(HostMatrix::random(DType::kF16, 8, k, random));
      HostMatrix& c = matrices.emplace_back(DType::kF32, 2, 8);
      sources.push_back({{b.view()}, SourceRows::kAlongN});
      problems.push_back({a.view(), nullptr, c.view(), false, false, nullptr, &sources.back(), true});
    }
    Scratch scratch(machine.ctx);
    gemm(machine.ctx, scratch, problems);
    synchronize(machine.ctx);
    for (std::size_t i = 0; i < problems.size(); ++i) {
      CAPTURE(i);
      double sum = 0;
      for (std::int64_t l = 0; l < matrices[3 * i].cols(); ++l)
        sum += matrices[3 * i].at(1, l) * matrices[3 * i + 1].at(7, l);
      CHECK(matrices[3 * i + 2].at(1, 7) == doctest::Approx(sum).epsilon(1e-5));
    }
  }
}
