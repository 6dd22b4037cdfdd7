#include "kernels/attention/cached_attention.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "test/error_code.h"
#include "test/kernels/every_path.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr std::int64_t kLength = 75, kCapacity = 80;
constexpr std::int64_t kLongLength = 300;  // more keys than a device takes at a time

AttentionShape shape_of(std::int64_t length) { return {1, length, 6, 2, 20}; }

struct Text {
  explicit Text(DType dtype, std::int64_t length = kLength)
      : random(5), qkv(HostMatrix::random(dtype, length, shape_of(length).qkv_size(), random, 3)) {}
  std::mt19937 random;
  HostMatrix qkv;
};

/// The attention of the text from token `first` on, in calls of `step` tokens; keys and values of the ones before are there.
HostMatrix in_steps(const Context& ctx, Text& text, DType dtype, std::int64_t step, std::int64_t window, std::int64_t first = 0) {
  Scratch scratch(ctx);
  const std::int64_t length = text.qkv.rows(), capacity = length - kLength + kCapacity;
  HostMatrix keys(dtype, capacity, 40), values(dtype, capacity, 40), out(dtype, length, 120);
  for (std::int64_t row = 0; row < first; ++row) {
    for (std::int64_t i = 0; i < 40; ++i) {
      keys.set(row, i, static_cast<float>(text.qkv.at(row, 120 + i)));
      values.set(row, i, static_cast<float>(text.qkv.at(row, 160 + i)));
    }
  }
  for (; first < length; first += step) {
    const std::int64_t rows = std::min(step, length - first);
    const auto part = [&](HostMatrix& matrix) {
      const Matrix all = matrix.view();
      return Matrix{all.at(first, 0), all.dtype, rows, all.cols, all.stride};
    };
    cached_attention(ctx, scratch,
                     {shape_of(rows), part(text.qkv), keys.view(), values.view(), first, window, part(out)});
  }
  synchronize(ctx);
  return out;
}

HostMatrix at_once(const Context& ctx, Text& text, std::int64_t window) {
  Scratch scratch(ctx);
  const std::int64_t length = text.qkv.rows();
  HostMatrix out(DType::kF32, length, 120);
  SharedValues<float> lse(static_cast<std::size_t>(length * 6));
  AttentionForward args{shape_of(length), text.qkv.view(), out.view(), lse};
  args.options.window = window;
  attention(ctx, scratch, args);
  synchronize(ctx);
  return out;
}

/// The last `count` rows.
Table tail_of(const HostMatrix& matrix, std::int64_t count) {
  const Table all = table_of(matrix);
  return {all.end() - count, all.end()};
}

}  // namespace

DEVICE_TEST_CASE("cached attention is attention, with and without a window") {
  on_every_device([](const Context& ctx, DType dtype) {
    if (dtype != DType::kF32) return;
    Text text(DType::kF32);
    for (const std::int64_t window : {0, 1, 9, 200}) {
      CAPTURE(window);
      const HostMatrix expected = at_once(ctx, text, window);
      CHECK(relative_error(in_steps(ctx, text, DType::kF32, 1, window), table_of(expected)) < 1e-6);
    }
    Text long_text(DType::kF32, kLongLength);
    for (const std::int64_t window : {0, 290}) {
      CAPTURE(window);
      const Table expected = tail_of(at_once(ctx, long_text, window), 4),
                  actual = tail_of(in_steps(ctx, long_text, DType::kF32, 2, window, kLongLength - 4), 4);
      for (std::size_t i = 0; i < 4; ++i) {
        for (std::size_t j = 0; j < 120; ++j) CHECK(actual[i][j] == doctest::Approx(expected[i][j]).epsilon(1e-5));
      }
    }
  });
}

DEVICE_TEST_CASE("cached attention gives the same bits for any number of tokens at once and of threads") {
  on_every_device([](const Context& ctx, DType dtype) {
    Text text(dtype);
    const HostMatrix expected = in_steps(ctx, text, dtype, 1, 30);
    for (const std::int64_t step : {33, 75}) CHECK(in_steps(ctx, text, dtype, step, 30) == expected);
    if (ctx.device.kind != DeviceKind::kCpu) return;
    Machine three(ctx.cpu_isa, 3);
    for (const std::int64_t step : {2, 33, 75}) CHECK(in_steps(three.ctx, text, dtype, step, 30) == expected);
  });
}

TEST_CASE("cached attention refuses shapes that do not fit") {
  Machine machine(best_cpu_isa(), 1);
  Scratch scratch(machine.ctx);
  Text text(DType::kF32);
  HostMatrix keys(DType::kF32, kCapacity, 40), out(DType::kF32, kLength, 120);
  const auto code_with = [&](const auto& change) {
    CachedAttention args{shape_of(kLength), text.qkv.view(), keys.view(), keys.view(), 0, 0, out.view()};
    change(args);
    return code_of([&] { cached_attention(machine.ctx, scratch, args); });
  };
  CHECK(code_with([](CachedAttention& args) { args.first = 6; }) == "invalid_argument");
  CHECK(code_with([](CachedAttention& args) { args.first = -1; }) == "invalid_argument");
  CHECK(code_with([](CachedAttention& args) { args.window = -1; }) == "invalid_argument");
  CHECK(code_with([](CachedAttention& args) { args.shape.batch = 2; }) == "invalid_argument");
  CHECK(code_with([](CachedAttention& args) { args.shape.num_kv_heads = 4; }) == "invalid_argument");
  CHECK(code_with([](CachedAttention& args) { args.out.cols = 60; }) == "invalid_argument");
  CHECK(code_with([](CachedAttention& args) { args.values.rows = 3; }) == "invalid_argument");
}
