// Rules for every kernel and storage type: results are rounded from fp32 as core/dtype.h rounds, and values that are
// not finite stay visible.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "core/device/transfer.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/rope.h"
#include "kernels/elementwise/glu.h"
#include "kernels/gemm/gemm.h"
#include "kernels/norm/rmsnorm.h"
#include "test/kernels/every_path.h"
#include "test/shared_bytes.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

bool row_is_finite(const HostMatrix& matrix, std::int64_t row) {
  for (std::int64_t col = 0; col < matrix.cols(); ++col) {
    if (!std::isfinite(matrix.at(row, col))) return false;
  }
  return true;
}

/// The index of a number among all of its type: 0 for both zeros, infinity next to the largest.
int rank_of(f16 value) {
  const int magnitude = std::bit_cast<std::uint16_t>(value) & 0x7FFF;
  return std::signbit(to_float(value)) ? -magnitude : magnitude;
}

HostMatrix product(const Context& ctx, Scratch& scratch, HostMatrix a, HostMatrix b, DType dtype, DType c_dtype) {
  PackedMatrix packed(ctx, dtype, a.cols(), b.cols());
  const std::array request{PackRequest{b.view(), SourceRows::kAlongK, &packed}};
  pack(ctx, request);
  HostMatrix c(c_dtype, a.rows(), b.cols(), 1);
  const std::array problem{GemmProblem{a.view(), &packed, c.view()}};
  gemm(ctx, scratch, problem);
  synchronize(ctx);
  return c;
}

}  // namespace

// A library may add up in another order where it writes another type. Then a device is off by a rounding, or by what
// the sums are off.
DEVICE_TEST_CASE("gemm into fp16 is gemm into fp32, rounded: subnormal, normal and beyond the range") {
  on_every_device([](const Context& ctx, DType dtype) {
    const bool is_exact = ctx.device.kind == DeviceKind::kCpu;
    Scratch scratch(ctx);
    std::mt19937 random(47);
    for (const std::int64_t k : {20, 2100}) {  // in one pass, and through fp32 sums
      for (const float spread : {0x1p-13F, 1.0F, 150.0F}) {
        const HostMatrix a = HostMatrix::random(dtype, 33, k, random, 0, spread),
                         b = HostMatrix::random(dtype, k, 45, random, 0, spread);
        const HostMatrix wide = product(ctx, scratch, a, b, dtype, DType::kF32),
                         half = product(ctx, scratch, a, b, dtype, DType::kF16);
        const double sums_are_off =
            1e-6 * static_cast<double>(k) * static_cast<double>(spread) * static_cast<double>(spread);
        int differing = 0;
        for (std::int64_t i = 0; i < 33; ++i) {
          for (std::int64_t j = 0; j < 45; ++j) {
            const f16 rounded = to_f16(static_cast<float>(wide.at(i, j))),
                      stored = to_f16(static_cast<float>(half.at(i, j)));
            const bool near = std::abs(rank_of(rounded) - rank_of(stored)) <= 1 ||
                              std::abs(wide.at(i, j) - half.at(i, j)) <= sums_are_off;
            const bool equal = static_cast<double>(to_float(rounded)) == half.at(i, j);
            differing += equal || (!is_exact && near) ? 0 : 1;
          }
        }
        CHECK(differing == 0);
      }
    }
  });
}

DEVICE_TEST_CASE("an infinity or NaN in a row reaches that row of every kernel's result, and no other") {
  on_every_device([](const Context& ctx, DType dtype) {
    Scratch scratch(ctx);
    for (const float bad : {kInf, -kInf, kNaN}) {
      std::mt19937 random(53);
      HostMatrix x = HostMatrix::random(dtype, 70, 40, random), w = HostMatrix::random(dtype, 40, 33, random);
      x.set(66, 7, bad);
      HostMatrix normed(dtype, 70, 40), act(dtype, 70, 20), rotated = x,
                                                            weight = HostMatrix::random(dtype, 1, 40, random);
      SharedValues<float> rstd(70);
      rmsnorm(ctx, {x.view(), {}, {}, weight.view().data, 1e-5, normed.view(), rstd});
      glu(ctx, GluKind::kSilu, x.view(), act.view());
      const RopeTable table(ctx, 70, 10, 500.0);
      rope(ctx, {rotated.view(), &table, 4, 70});
      const HostMatrix c = product(ctx, scratch, x, w, dtype, dtype);
      for (const HostMatrix& result : {normed, act, rotated, c}) {
        for (std::int64_t row = 0; row < 70; ++row) CHECK(row_is_finite(result, row) == (row != 66));
      }
    }
  });
}

// Rows of one tile share its steps, in which a zero probability times infinity is NaN too; the first 64 rows are
// others.
DEVICE_TEST_CASE(
    "attention: a query, key or value that is not finite reaches the gradients, and no earlier block's result") {
  on_every_device([](const Context& ctx, DType dtype) {
    const AttentionShape shape{1, 70, 2, 1, 10};
    for (const float bad : {kInf, -kInf, kNaN}) {
      for (const std::int64_t col : {3, 25, 35}) {  // of a query, a key, a value
        std::mt19937 random(59);
        HostMatrix qkv = HostMatrix::random(dtype, 70, 40, random), dout = HostMatrix::random(dtype, 70, 20, random);
        qkv.set(66, col, bad);
        HostMatrix out(dtype, 70, 20), dqkv(dtype, 70, 40);
        SharedValues<float> lse(140);
        Scratch scratch(ctx);
        attention(ctx, scratch, {shape, qkv.view(), out.view(), lse});
        attention_backward(ctx, scratch, {shape, qkv.view(), out.view(), lse, dout.view(), dqkv.view()});
        synchronize(ctx);
        bool finite = true;
        for (std::int64_t row = 0; row < 70; ++row) {
          if (row < 64) CHECK(row_is_finite(out, row));
          finite = finite && row_is_finite(dqkv, row);
        }
        CHECK(!finite);
      }
    }
  });
}
