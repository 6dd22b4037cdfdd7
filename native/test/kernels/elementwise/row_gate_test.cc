#include "kernels/elementwise/row_gate.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/error.h"
#include "test/kernels/every_path.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

DEVICE_TEST_CASE("rows with a gate are added, and their gradients are those of float64") {
  on_every_device([](const Context& ctx, DType dtype) {
    for (const std::int64_t cols : {1, 53, 1100}) {
      constexpr std::int64_t kRows = 70;
      std::mt19937 random(89);
      HostMatrix gate = HostMatrix::random(dtype, kRows, 1, random, 2, 3.0F);
      HostMatrix x = HostMatrix::random(dtype, kRows, cols, random, 1),
                 dy = HostMatrix::random(dtype, kRows, cols, random);
      HostMatrix y = HostMatrix::random(dtype, kRows, cols, random, 3), dx(dtype, kRows, cols, 1);
      HostMatrix dgate(dtype, kRows, 1, 5);
      gate.set(3, 0, 90);
      gate.set(4, 0, -90);
      Table sums = table_of(y), to_x = table_of(dy), to_gate = table_of(gate);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const auto row = static_cast<std::int64_t>(i);
        const double factor = sigmoid(gate.at(row, 0));
        double products = 0;
        for (std::size_t j = 0; j < sums[i].size(); ++j) {
          const double in = x.at(row, static_cast<std::int64_t>(j));
          sums[i][j] += factor * in;
          products += to_x[i][j] * in;
          to_x[i][j] *= factor;
        }
        to_gate[i][0] = factor * (1 - factor) * products;
      }
      add_gated(ctx, gate.view(), x.view(), y.view());
      add_gated_backward(ctx, {gate.view(), x.view(), dy.view(), dx.view(), dgate.view()});
      synchronize(ctx);
      CHECK(relative_error(y, sums) < tolerance(dtype));
      CHECK(relative_error(dx, to_x) < tolerance(dtype));
      CHECK(relative_error(dgate, to_gate) < tolerance(dtype));
    }
  });
}

TEST_CASE("a gate refuses shapes that do not fit") {
  Machine machine(best_cpu_isa(), 1);
  HostMatrix gate(DType::kF32, 3, 1), wide(DType::kF32, 3, 2), x(DType::kF32, 3, 4), few(DType::kF32, 2, 4);
  add_gated(machine.ctx, gate.view(), x.view(), x.view());
  CHECK_THROWS_AS(add_gated(machine.ctx, wide.view(), x.view(), x.view()), Error);
  CHECK_THROWS_AS(add_gated(machine.ctx, gate.view(), few.view(), x.view()), Error);
  CHECK_THROWS_AS(add_gated_backward(machine.ctx, {gate.view(), x.view(), x.view(), x.view(), wide.view()}), Error);
}
