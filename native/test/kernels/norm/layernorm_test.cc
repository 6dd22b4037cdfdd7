#include "kernels/norm/layernorm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "test/kernels/every_path.h"

// The forward against float64; the backward against central differences of the float64 forward.
using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr double kLayerNormEps = 1e-5;

Table layernorm_rows(const Table& x, const Table& weight, const Table& bias) {
  Table y = x;
  for (auto& row : y) {
    const auto cols = static_cast<double>(row.size());
    double mean = 0, variance = 0;
    for (const double value : row) mean += value / cols;
    for (const double value : row) variance += (value - mean) * (value - mean) / cols;
    const double rstd = 1 / std::sqrt(variance + kLayerNormEps);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = (row[j] - mean) * rstd * weight[0][j] + bias[0][j];
  }
  return y;
}

struct LayerNormResults {
  HostMatrix y, dx;
  std::vector<float> mean, rstd, dweight, dbias;
  friend bool operator==(const LayerNormResults&, const LayerNormResults&) = default;
};

}  // namespace

DEVICE_TEST_CASE("layernorm and its backward") {
  on_every_device([](const Context& ctx, DType dtype) {
    // The last ones are rows for a whole block of a device's threads.
    for (const auto& [rows, cols] :
         {std::pair<std::int64_t, std::int64_t>{67, 21}, {3, 64}, {130, 5}, {2, 1056}, {1, 1033}}) {
      if (kSanitized && cols > 1000 && ctx.device.kind == DeviceKind::kCpu) continue;
      std::mt19937 random(61);
      HostMatrix x = HostMatrix::random(dtype, rows, cols, random, 3),
                 delta = HostMatrix::random(dtype, rows, cols, random, 1),
                 weight = HostMatrix::random(dtype, 1, cols, random), bias = HostMatrix::random(dtype, 1, cols, random),
                 sum(dtype, rows, cols), y(dtype, rows, cols, 2);
      const auto m = static_cast<std::size_t>(rows), d = static_cast<std::size_t>(cols);
      SharedValues<float> mean(m), rstd(m), dweight(d), dbias(d);
      layernorm(ctx, {x.view(), delta.view(), sum.view(), weight.view().data, bias.view().data, kLayerNormEps, y.view(),
                      mean, rstd});
      synchronize(ctx);
      const Table w = table_of(weight), b = table_of(bias), s = table_of(sum);
      CHECK(relative_error(sum, added(table_of(x), table_of(delta))) < tolerance(dtype));
      CHECK(relative_error(y, layernorm_rows(s, w, b)) < tolerance(dtype));

      HostMatrix dy = HostMatrix::random(dtype, rows, cols, random), dx(dtype, rows, cols);
      layernorm_backward(
          ctx, {dy.view(), sum.view(), weight.view().data, mean, rstd, delta.view(), dx.view(), dweight, dbias});
      synchronize(ctx);
      const Table above = table_of(dy);
      const auto of_x = [&](const Table& at) { return layernorm_rows(at, w, b); };
      CHECK(relative_error(dx, added(numeric_gradient_of_rows(of_x, s, above), table_of(delta))) < tolerance(dtype));
      const auto of_weight = [&](const Table& at) { return dot(layernorm_rows(s, at, b), above); };
      CHECK(relative_error(row_of(dweight), numeric_gradient(of_weight, w)) < 2e-6);
      const auto of_bias = [&](const Table& at) { return dot(layernorm_rows(s, w, at), above); };
      CHECK(relative_error(row_of(dbias), numeric_gradient(of_bias, b)) < 2e-6);
    }
  });
}

DEVICE_TEST_CASE("layernorm: a mean far larger than the spread costs no accuracy") {
  on_every_device([](const Context& ctx, DType dtype) {
    HostMatrix x(dtype, 1, 50), weight(dtype, 1, 50), bias(dtype, 1, 50);
    for (std::int64_t j = 0; j < 50; ++j) {
      x.set(0, j, 128.0F + static_cast<float>(j % 2));  // exact in every type
      weight.set(0, j, 1.0F);
    }
    HostMatrix out(dtype, 1, 50);
    SharedValues<float> mean(1), rstd(1);
    layernorm(ctx, {x.view(), {}, {}, weight.view().data, bias.view().data, kLayerNormEps, out.view(), mean, rstd});
    synchronize(ctx);
    CHECK(mean[0] == 128.5F);
    CHECK(relative_error(out, layernorm_rows(table_of(x), table_of(weight), table_of(bias))) < tolerance(dtype));
  });
}

TEST_CASE("layernorm_backward may write over the residual's gradient, and no thread count changes a bit") {
  on_every_path([](const Context& ctx, DType dtype) {
    std::mt19937 random(67);
    HostMatrix x = HostMatrix::random(dtype, 300, 40, random), dy = HostMatrix::random(dtype, 300, 40, random),
               weight = HostMatrix::random(dtype, 1, 40, random), bias = HostMatrix::random(dtype, 1, 40, random);
    const void *w = weight.view().data, *b = bias.view().data;
    std::vector<LayerNormResults> all;
    for (const int threads : {1, 2, 3}) {
      Machine machine(ctx.cpu_isa, threads);
      LayerNormResults r{HostMatrix(dtype, 300, 40), dy,
                         std::vector<float>(300),    std::vector<float>(300),
                         std::vector<float>(40),     std::vector<float>(40)};
      HostMatrix apart(dtype, 300, 40);
      layernorm(machine.ctx, {x.view(), {}, {}, w, b, kLayerNormEps, r.y.view(), r.mean, r.rstd});
      layernorm_backward(machine.ctx,
                         {dy.view(), x.view(), w, r.mean, r.rstd, r.dx.view(), apart.view(), r.dweight, r.dbias});
      layernorm_backward(machine.ctx,
                         {dy.view(), x.view(), w, r.mean, r.rstd, r.dx.view(), r.dx.view(), r.dweight, r.dbias});
      CHECK(r.dx == apart);
      all.push_back(r);
    }
    CHECK(all[1] == all[0]);
    CHECK(all[2] == all[0]);
  });
}

TEST_CASE("layernorm refuses shapes that do not fit") {
  Machine machine(best_cpu_isa(), 1);
  HostMatrix x(DType::kF32, 4, 8), y(DType::kF32, 4, 8), wrong(DType::kBF16, 4, 8), weight(DType::kF32, 2, 8);
  const void *w = weight.view().at(0, 0), *b = weight.view().at(1, 0);
  std::vector<float> mean(4), rstd(4), few(3), dweight(8), dbias(8);
  layernorm(machine.ctx, {x.view(), {}, {}, w, b, kLayerNormEps, y.view(), mean, rstd});
  CHECK_THROWS_AS(layernorm(machine.ctx, {x.view(), {}, {}, w, b, kLayerNormEps, wrong.view(), mean, rstd}), Error);
  CHECK_THROWS_AS(layernorm(machine.ctx, {x.view(), {}, {}, w, nullptr, kLayerNormEps, y.view(), mean, rstd}), Error);
  CHECK_THROWS_AS(layernorm(machine.ctx, {x.view(), {}, {}, w, b, kLayerNormEps, y.view(), few, rstd}), Error);
  CHECK_THROWS_AS(layernorm(machine.ctx, {x.view(), x.view(), {}, w, b, kLayerNormEps, y.view(), mean, rstd}), Error);
  CHECK_THROWS_AS(layernorm_backward(machine.ctx, {y.view(), x.view(), w, mean, rstd, {}, y.view(), dweight, few}),
                  Error);
}
