#include "kernels/norm/head_norm.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "test/kernels/every_path.h"

// The forward against float64; the backward against central differences of the float64 forward.
using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr double kHeadNormEps = 1e-6;

Table norm_heads(const Table& x, const Table& weight, double offset) {
  Table y = x;
  const std::size_t dim = weight[0].size();
  for (auto& row : y) {
    for (std::size_t head = 0; head < row.size(); head += dim) {
      double squares = 0;
      for (std::size_t i = 0; i < dim; ++i) squares += row[head + i] * row[head + i];
      const double rstd = 1 / std::sqrt(squares / static_cast<double>(dim) + kHeadNormEps);
      for (std::size_t i = 0; i < dim; ++i) row[head + i] *= rstd * (offset + weight[0][i]);
    }
  }
  return y;
}

struct HeadNormResults {
  HostMatrix y, dx;
  SharedValues<float> rstd, dweight;
  friend bool operator==(const HeadNormResults&, const HeadNormResults&) = default;
};

/// In place: y over x's copy, dx over dy's copy.
HeadNormResults head_norm_results(const Context& ctx, HostMatrix x, const HostMatrix& dy, HostMatrix weight,
                                  double offset = 0) {
  const std::int64_t dim = weight.cols();
  HeadNormResults r{x, dy, SharedValues<float>(static_cast<std::size_t>(x.rows() * x.cols() / dim)),
                    SharedValues<float>(static_cast<std::size_t>(dim))};
  const void* w = weight.view().data;
  head_norm(ctx, {r.y.view(), w, dim, kHeadNormEps, r.y.view(), r.rstd, offset});
  head_norm_backward(ctx, {r.dx.view(), x.view(), w, dim, r.rstd, r.dx.view(), r.dweight, offset});
  synchronize(ctx);
  return r;
}

}  // namespace

DEVICE_TEST_CASE("head_norm and its backward") {
  on_every_device([](const Context& ctx, DType dtype) {
    // The last one has heads for a whole block of threads each, and rows of another distance.
    for (const auto& [rows, heads, dim, gap] :
         {std::array<std::int64_t, 4>{70, 3, 10, 3}, {5, 1, 64, 3}, {131, 2, 33, 3}, {66, 3, 16, 4}, {1, 2, 1028, 8}}) {
      const double offset = rows % 2 == 0 ? 1 : 0;
      std::mt19937 random(97);
      const HostMatrix x = HostMatrix::random(dtype, rows, heads * dim, random, gap),
                       dy = HostMatrix::random(dtype, rows, heads * dim, random, gap == 3 ? 1 : gap),
                       weight = HostMatrix::random(dtype, 1, dim, random);
      const HeadNormResults results = head_norm_results(ctx, x, dy, weight, offset);
      const Table at = table_of(x), w = table_of(weight), above = table_of(dy);
      CHECK(relative_error(results.y, norm_heads(at, w, offset)) < tolerance(dtype));
      const auto of_x = [&](const Table& moved) { return norm_heads(moved, w, offset); };
      CHECK(relative_error(results.dx, numeric_gradient_of_rows(of_x, at, above)) < tolerance(dtype));
      const auto of_weight = [&](const Table& moved) { return dot(norm_heads(at, moved, offset), above); };
      CHECK(relative_error(row_of(results.dweight), numeric_gradient(of_weight, w)) < 2e-6);
    }
  });
}

TEST_CASE("head_norm: no thread count changes a bit") {
  on_every_path([](const Context& ctx, DType dtype) {
    std::mt19937 random(101);
    const HostMatrix x = HostMatrix::random(dtype, 200, 30, random), dy = HostMatrix::random(dtype, 200, 30, random),
                     weight = HostMatrix::random(dtype, 1, 10, random);
    const HeadNormResults expected = head_norm_results(ctx, x, dy, weight);
    for (const int threads : {1, 3}) {
      Machine machine(ctx.cpu_isa, threads);
      CHECK(head_norm_results(machine.ctx, x, dy, weight) == expected);
    }
  });
}

TEST_CASE("head_norm refuses shapes that do not fit") {
  Machine machine(best_cpu_isa(), 1);
  HostMatrix x(DType::kF32, 4, 6), wide(DType::kF32, 4, 9), weight(DType::kF32, 1, 3);
  std::vector<float> rstd(8), few(7), dweight(3);
  const void* w = weight.view().data;
  head_norm(machine.ctx, {x.view(), w, 3, kHeadNormEps, x.view(), rstd});
  CHECK_THROWS_AS(head_norm(machine.ctx, {x.view(), w, 4, kHeadNormEps, x.view(), rstd}), Error);
  CHECK_THROWS_AS(head_norm(machine.ctx, {x.view(), w, 3, kHeadNormEps, wide.view(), rstd}), Error);
  CHECK_THROWS_AS(head_norm(machine.ctx, {x.view(), w, 3, kHeadNormEps, x.view(), few}), Error);
  CHECK_THROWS_AS(head_norm_backward(machine.ctx, {x.view(), x.view(), w, 3, rstd, x.view(), few}), Error);
}
