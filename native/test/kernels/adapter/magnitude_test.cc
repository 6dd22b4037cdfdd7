#include "kernels/adapter/magnitude.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "test/error_code.h"
#include "test/kernels/every_path.h"

// Against float64; bits with one and three threads against those with two.
using namespace zerofleet;
using namespace zerofleet::test;

namespace {

struct RandomAdapted {
  RandomAdapted(DType dtype, bool in_first, std::int64_t in, std::int64_t out, std::int64_t rank, std::mt19937& random)
      : weight(HostMatrix::random(dtype, in_first ? in : out, in_first ? out : in, random, 3)),
        down(HostMatrix::random(dtype, rank, in, random)),
        up(HostMatrix::random(dtype, out, rank, random)),
        magnitude(HostMatrix::random(dtype, 1, out, random)),
        is_in_first(in_first) {}

  AdaptedMatrix view() { return {weight.view(), is_in_first, down.view(), up.view(), kScale}; }
  double norm(std::int64_t o) const {
    double squares = 0;
    for (std::int64_t i = 0; i < down.cols(); ++i) {
      double sum = is_in_first ? weight.at(i, o) : weight.at(o, i);
      for (std::int64_t r = 0; r < down.rows(); ++r) sum += static_cast<double>(kScale) * up.at(o, r) * down.at(r, i);
      squares += sum * sum;
    }
    return std::sqrt(squares);
  }

  static constexpr float kScale = 0.75F;
  HostMatrix weight, down, up, magnitude;
  bool is_in_first;
};

struct Norms {
  explicit Norms(std::int64_t out)
      : norms(static_cast<std::size_t>(out)),
        factors(static_cast<std::size_t>(out)),
        inverses(static_cast<std::size_t>(out)) {}
  void find(const Context& ctx, RandomAdapted& adapted) {
    direction_norms(ctx, {adapted.view(), norms, adapted.magnitude.view().data, factors, inverses});
    synchronize(ctx);
  }
  friend bool operator==(const Norms&, const Norms&) = default;

  SharedValues<float> norms, factors, inverses;
};

constexpr std::pair<std::int64_t, std::int64_t> kShapes[] = {{1, 3}, {40, 64}, {331, 37}, {1500, 21}};  // in, out

}  // namespace

DEVICE_TEST_CASE("direction_norms are those of W + scale · B A, rounded, and factors divide the magnitude by them") {
  on_every_device([](const Context& ctx, DType dtype) {
    for (const bool in_first : {false, true}) {
      for (const auto& [in, out] : kShapes) {
        std::mt19937 random(83);
        RandomAdapted one(dtype, in_first, in, out, 5, random);
        Norms found(out);
        found.find(ctx, one);
        Table norms(1), factors(1), inverses(1);
        for (std::int64_t o = 0; o < out; ++o) {
          const auto norm = static_cast<double>(found.norms[static_cast<std::size_t>(o)]);
          norms[0].push_back(one.norm(o));
          factors[0].push_back(one.magnitude.at(0, o) / norm);
          inverses[0].push_back(1 / norm);
        }
        CHECK(relative_error(row_of(found.norms), norms) < tolerance(dtype));
        CHECK(relative_error(row_of(found.factors), factors) < 1e-6);
        CHECK(relative_error(row_of(found.inverses), inverses) < 1e-6);
        if (ctx.device.kind != DeviceKind::kCpu) continue;
        for (const int threads : {1, 3}) {
          Machine machine(ctx.cpu_isa, threads);
          Norms again(out);
          again.find(machine.ctx, one);
          CHECK(again == found);
        }
      }
    }
  });
}

DEVICE_TEST_CASE(
    "direction_norms: norms alone, those of W without factors or with B of zeros, and an output of zeros") {
  on_every_device([](const Context& ctx, DType dtype) {
    for (const bool in_first : {false, true}) {
      std::mt19937 random(5);
      RandomAdapted one(dtype, in_first, 70, 9, 3, random);
      for (std::int64_t i = 0; i < 70; ++i) one.weight.set(in_first ? i : 4, in_first ? 4 : i, 0);
      for (std::int64_t o = 0; o < 9; ++o)
        for (std::int64_t r = 0; r < 3; ++r) one.up.set(o, r, 0);
      Norms found(9), alone(9);
      found.find(ctx, one);
      AdaptedMatrix base = one.view();
      base.down = base.up = {};
      direction_norms(ctx, {base, alone.norms});
      synchronize(ctx);
      CHECK(alone.norms == found.norms);
      CHECK(found.norms[4] == 0);
      CHECK(found.factors[4] == 0);
      CHECK(found.inverses[4] == 0);
      CHECK(found.factors[3] != 0);
    }
  });
}

DEVICE_TEST_CASE("scale_columns and magnitude_gradient, over all rows or a range that the device knows") {
  on_every_device([](const Context& ctx, DType dtype) {
    for (const auto& [cols, rows] : kShapes) {
      std::mt19937 random(7);
      HostMatrix x = HostMatrix::random(dtype, rows, cols, random, 2),
                 y = HostMatrix::random(dtype, rows, cols, random), before = y;
      HostMatrix bias = HostMatrix::random(dtype, 1, cols, random);
      SharedValues<float> factors(static_cast<std::size_t>(cols)), gradient(static_cast<std::size_t>(cols));
      for (float& factor : factors) factor = std::normal_distribution<float>()(random);
      const bool is_device = ctx.device.kind == DeviceKind::kCuda;
      const SharedValues<std::int32_t> range(
          {static_cast<std::int32_t>(rows / 3), static_cast<std::int32_t>(rows - rows / 4)});
      for (const bool in_part : {false, true}) {
        if (in_part && !is_device) continue;
        const std::int64_t begin = in_part ? range[0] : 0, end = in_part ? range[1] : rows;
        y = before;
        magnitude_gradient(ctx, {x.view(), y.view(), factors, gradient, in_part ? range.data() : nullptr});
        scale_columns(
            ctx, {x.view(), factors, in_part ? nullptr : bias.view().data, y.view(), in_part ? range.data() : nullptr});
        synchronize(ctx);
        Table expected = table_of(before), sums(1, std::vector<double>(static_cast<std::size_t>(cols)));
        for (std::int64_t m = begin; m < end; ++m) {
          for (std::int64_t n = 0; n < cols; ++n) {
            const auto at = static_cast<std::size_t>(n);
            const auto factor = static_cast<double>(factors[at]);
            sums[0][at] += x.at(m, n) * before.at(m, n) * factor;
            expected[static_cast<std::size_t>(m)][at] = factor * x.at(m, n) + (in_part ? 0 : bias.at(0, n));
          }
        }
        CHECK(relative_error(y, expected) < tolerance(dtype));
        CHECK(relative_error(row_of(gradient), sums) < 2e-6);
      }
      SharedValues<float> whole(gradient.size()), in_parts(gradient.size());
      const std::int64_t first = std::min<std::int64_t>(64, rows), rest = rows - first;
      magnitude_gradient(ctx, {x.view(), before.view(), factors, whole});
      magnitude_gradient(ctx, {x.view().first_rows(first), before.view().first_rows(first), factors, in_parts, nullptr,
                               true, rest == 0});
      if (rest > 0) {
        magnitude_gradient(ctx, {x.view().row_slice(first, rest), before.view().row_slice(first, rest), factors,
                                 in_parts, nullptr, false, true});
      }
      synchronize(ctx);
      for (std::size_t n = 0; n < whole.size(); ++n) CHECK(in_parts[n] == doctest::Approx(whole[n]).epsilon(1e-4));
      if (is_device) continue;
      CHECK(in_parts == whole);
      for (const int threads : {1, 3}) {
        Machine machine(ctx.cpu_isa, threads);
        SharedValues<float> again(gradient.size());
        magnitude_gradient(machine.ctx, {x.view(), before.view(), factors, again});
        CHECK(again == gradient);
      }
    }
  });
}

TEST_CASE("operations of magnitudes refuse what does not fit") {
  Machine machine(best_cpu_isa(), 1);
  std::mt19937 random(3);
  RandomAdapted one(DType::kF32, false, 4, 3, 2, random);
  std::vector<float> three(3), four(4);
  const auto code = [](const auto& body) { return code_of(body); };
  CHECK(code([&] { direction_norms(machine.ctx, {one.view(), four}); }) == "invalid_argument");
  AdaptedMatrix swapped = one.view();
  std::swap(swapped.down, swapped.up);
  CHECK(code([&] { direction_norms(machine.ctx, {swapped, three}); }) == "invalid_argument");
  CHECK(code([&] { direction_norms(machine.ctx, {one.view(), three, one.magnitude.view().data, four, three}); }) ==
        "invalid_argument");
  CHECK(code([&] { scale_columns(machine.ctx, {one.weight.view(), three, nullptr, one.weight.view()}); }) ==
        "invalid_argument");
  CHECK(code([&] { magnitude_gradient(machine.ctx, {one.weight.view(), one.down.view(), four, four}); }) ==
        "invalid_argument");
  const std::int32_t range[2] = {};
  CHECK(code([&] { scale_columns(machine.ctx, {one.weight.view(), four, nullptr, one.weight.view(), range}); }) ==
        "invalid_argument");
  CHECK(code([&] { magnitude_gradient(machine.ctx, {one.weight.view(), one.weight.view(), four, four, range}); }) ==
        "invalid_argument");
}
