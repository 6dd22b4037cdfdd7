// GELU behind a product, in the product or after it: against float64.
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "test/error_code.h"
#include "test/kernels/elementwise/gelu_in_float64.h"
#include "test/kernels/every_path.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

using Kind = GemmEpilogue::Kind;

struct EpilogueCase {
  std::int64_t m, k, n;
  std::int64_t inner_gap = 0, c_gap = 0;
};

// Shapes of models; rows of the second matrix that are further apart than C's; broken tiles at odd addresses.
constexpr EpilogueCase kEpilogueCases[] = {{48, 32, 64}, {40, 24, 32, 16}, {33, 64, 40, 0, 8},
                                           {7, 8, 16},   {65, 130, 33},    {16, 8, 24, 4}};

constexpr float kUntouched = 3;

/// Columns of a wider matrix, whose other columns must not be written.
struct Window {
  Window(DType dtype, std::int64_t rows, std::int64_t num_cols, std::int64_t gap)
      : cols(num_cols), all(dtype, rows, num_cols + gap) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < num_cols + gap; ++j) all.set(i, j, kUntouched);
    }
  }
  Matrix view() { return all.view().columns(0, cols); }
  bool is_untouched_beyond() const {
    for (std::int64_t i = 0; i < all.rows(); ++i) {
      for (std::int64_t j = cols; j < all.cols(); ++j) {
        if (all.at(i, j) != kUntouched) return false;
      }
    }
    return true;
  }
  /// Returns its contents as a separate matrix.
  HostMatrix values() const {
    HostMatrix alone(all.dtype(), all.rows(), cols);
    for (std::int64_t i = 0; i < all.rows(); ++i) {
      for (std::int64_t j = 0; j < cols; ++j) alone.set(i, j, static_cast<float>(all.at(i, j)));
    }
    return alone;
  }

  std::int64_t cols;
  HostMatrix all;
};

struct EpilogueOperands {
  EpilogueOperands(const EpilogueCase& shape, DType dtype)
      : a(HostMatrix::random(dtype, shape.m, shape.k, random)),
        b(HostMatrix::random(dtype, shape.k, shape.n, random, 0, 0.3F)),
        bias(HostMatrix::random(dtype, 1, shape.n, random)),
        inner(dtype, shape.m, shape.n, shape.inner_gap),
        c(dtype, shape.m, shape.n, shape.c_gap) {}

  GemmProblem problem(const SourceOperand& source, const GemmEpilogue& epilogue, const void* added) {
    GemmProblem made{a.view(), nullptr, c.view(), false, false, added, &source};
    made.epilogue = epilogue;
    return made;
  }
  /// A · B, and the bias.
  Table sums(bool with_bias) const {
    Table sums(static_cast<std::size_t>(a.rows()), std::vector<double>(static_cast<std::size_t>(b.cols())));
    const Table left = table_of(a), right = table_of(b), added = table_of(bias);
    for (std::size_t i = 0; i < left.size(); ++i) {
      for (std::size_t j = 0; j < right[0].size(); ++j) {
        double sum = with_bias ? added[0][j] : 0.0;
        for (std::size_t k = 0; k < right.size(); ++k) sum += left[i][k] * right[k][j];
        sums[i][j] = sum;
      }
    }
    return sums;
  }

  std::mt19937 random{97};
  HostMatrix a, b, bias;
  Window inner, c;
};

void multiply(const Context& ctx, Scratch& scratch, const GemmProblem& problem) {
  gemm(ctx, scratch, {&problem, 1});
  synchronize(ctx);
}

std::string describe(const EpilogueCase& shape, GeluKind kind) {
  return (kind == GeluKind::kTanh ? "tanh " : "exact ") + std::to_string(shape.m) + "x" + std::to_string(shape.k) +
         "x" + std::to_string(shape.n);
}

template <class Body>
void on_every_case(const Body& body) {
  on_every_device([&](const Context& ctx, DType dtype) {
    Scratch scratch(ctx);
    for (const EpilogueCase& shape : kEpilogueCases) {
      for (const GeluKind kind : kGeluKinds) {
        CAPTURE(describe(shape, kind));
        EpilogueOperands operands(shape, dtype);
        body(ctx, scratch, operands, kind);
      }
    }
  });
}

}  // namespace

DEVICE_TEST_CASE("gemm with gelu behind it: both gelu's input and its output match float64") {
  on_every_case([](const Context& ctx, Scratch& scratch, EpilogueOperands& to, GeluKind kind) {
    for (const bool with_bias : {false, true}) {
      const SourceOperand source{{to.b.view()}, SourceRows::kAlongK};
      multiply(ctx, scratch,
               to.problem(source, {Kind::kGelu, kind, to.inner.view()}, with_bias ? to.bias.view().data : nullptr));
      Table expected = to.sums(with_bias);
      const DType dtype = to.a.dtype();
      CHECK(relative_error(to.inner.values(), expected) < tolerance(dtype));
      for (auto& row : expected) {
        for (double& value : row) value = gelu_of(kind, value);
      }
      CHECK(relative_error(to.c.values(), expected) < tolerance(dtype));
      CHECK(to.inner.is_untouched_beyond());
      CHECK(to.c.is_untouched_beyond());
    }
  });
}

DEVICE_TEST_CASE("gemm with gelu's gradient behind it matches float64, and leaves gelu's input unchanged") {
  on_every_case([](const Context& ctx, Scratch& scratch, EpilogueOperands& to, GeluKind kind) {
    const DType dtype = to.a.dtype();
    for (std::int64_t i = 0; i < to.a.rows(); ++i) {
      for (std::int64_t j = 0; j < to.inner.cols; ++j)
        to.inner.all.set(i, j, 0.25F * static_cast<float>((i * 37 + j * 11) % 41 - 20));
    }
    const HostMatrix before = to.inner.all;
    const SourceOperand source{{to.b.view()}, SourceRows::kAlongK};
    multiply(ctx, scratch, to.problem(source, {Kind::kGeluBackward, kind, to.inner.view()}, nullptr));
    Table expected = to.sums(false);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      for (std::size_t j = 0; j < expected[i].size(); ++j)
        expected[i][j] *= gelu_slope_of(kind, before.at(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)));
    }
    CHECK(relative_error(to.c.values(), expected) < tolerance(dtype));
    CHECK(to.inner.all == before);
    CHECK(to.c.is_untouched_beyond());
  });
}

// A model computes such a product once more when it did not keep its result.
DEVICE_TEST_CASE("gemm with gelu behind it gives the same bits again, beside other products and alone") {
  on_every_case([](const Context& ctx, Scratch& scratch, EpilogueOperands& to, GeluKind kind) {
    const SourceOperand source{{to.b.view()}, SourceRows::kAlongK};
    const GemmProblem problem = to.problem(source, {Kind::kGelu, kind, to.inner.view()}, to.bias.view().data);
    multiply(ctx, scratch, problem);
    const HostMatrix inner = to.inner.all, c = to.c.all;
    HostMatrix before(c.dtype(), to.a.rows(), to.b.cols()), behind = before;
    const auto into = [&](HostMatrix& other) {
      return GemmProblem{to.a.view(), nullptr, other.view(), false, false, nullptr, &source};
    };
    gemm(ctx, scratch, std::array{into(before), problem, into(behind)});
    synchronize(ctx);
    CHECK(to.inner.all == inner);
    CHECK(to.c.all == c);
  });
}

TEST_CASE("gemm on the CPU: an epilogue gives the bits of the product and gelu one after the other") {
  on_every_path([](const Context& ctx, DType dtype) {
    Scratch scratch(ctx);
    for (const GeluKind kind : kGeluKinds) {
      EpilogueOperands to({33, 64, 40}, dtype);
      const SourceOperand source{{to.b.view()}, SourceRows::kAlongK};
      HostMatrix sums(dtype, 33, 40), values(dtype, 33, 40);
      multiply(ctx, scratch, {to.a.view(), nullptr, sums.view(), false, false, to.bias.view().data, &source});
      gelu(ctx, kind, sums.view(), values.view());
      multiply(ctx, scratch, to.problem(source, {Kind::kGelu, kind, to.inner.view()}, to.bias.view().data));
      CHECK(to.inner.values() == sums);
      CHECK(to.c.values() == values);
    }
  });
}

TEST_CASE("gemm refuses an epilogue without a second matrix that fits, and one of a sum that is not whole") {
  Machine machine(CpuIsa::kGeneric, 1);
  Scratch scratch(machine.ctx);
  EpilogueOperands to({4, 8, 16}, DType::kF32);
  HostMatrix narrow(DType::kF32, 4, 15), other_type(DType::kBF16, 4, 16);
  const SourceOperand source{{to.b.view()}, SourceRows::kAlongK};
  for (const Matrix& inner : {Matrix{}, narrow.view(), other_type.view(), to.c.view()}) {
    const GemmProblem problem = to.problem(source, {Kind::kGelu, GeluKind::kTanh, inner}, nullptr);
    CHECK(code_of([&] { multiply(machine.ctx, scratch, problem); }) == "invalid_argument");
  }
  GemmProblem added = to.problem(source, {Kind::kGelu, GeluKind::kTanh, to.inner.view()}, nullptr);
  added.accumulate = true;
  CHECK(code_of([&] { multiply(machine.ctx, scratch, added); }) == "invalid_argument");
}
