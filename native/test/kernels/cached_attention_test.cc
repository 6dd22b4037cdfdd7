#include "kernels/cached_attention.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "test/error_code.h"
#include "test/kernels/host_matrix.h"
#include "test/kernels/test_machine.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr std::int64_t kLength = 75, kCapacity = 80;

AttentionShape shape_of(std::int64_t length) { return {1, length, 6, 2, 20}; }

struct Text {
  explicit Text(DType dtype)
      : random(5), qkv(HostMatrix::random(dtype, kLength, shape_of(kLength).qkv_size(), random, 3)) {}
  std::mt19937 random;
  HostMatrix qkv;
};

/// The attention of the whole text, in calls of `step` tokens.
HostMatrix in_steps(const Context& ctx, Text& text, DType dtype, std::int64_t step, std::int64_t window) {
  Scratch scratch(ctx);
  HostMatrix keys(dtype, kCapacity, 40), values(dtype, kCapacity, 40), out(dtype, kLength, 120);
  for (std::int64_t first = 0; first < kLength; first += step) {
    const std::int64_t rows = std::min(step, kLength - first);
    const auto part = [&](HostMatrix& matrix) {
      const Matrix all = matrix.view();
      return Matrix{all.at(first, 0), all.dtype, rows, all.cols, all.stride};
    };
    cached_attention(ctx, scratch,
                     {shape_of(rows), part(text.qkv), keys.view(), values.view(), first, window, part(out)});
  }
  return out;
}

HostMatrix at_once(const Context& ctx, Text& text, std::int64_t window) {
  Scratch scratch(ctx);
  HostMatrix out(DType::kF32, kLength, 120);
  std::vector<float> lse(static_cast<std::size_t>(kLength * 6));
  AttentionForward args{shape_of(kLength), text.qkv.view(), out.view(), lse};
  args.options.window = window;
  attention(ctx, scratch, args);
  return out;
}

}  // namespace

TEST_CASE("cached attention is attention, with and without a window") {
  for (const CpuIsa isa : available_isas()) {
    Machine machine(isa, 2);
    Text text(DType::kF32);
    for (const std::int64_t window : {0, 1, 9, 200}) {
      CAPTURE(std::string(name_of(isa)) + " window " + std::to_string(window));
      const HostMatrix expected = at_once(machine.ctx, text, window);
      CHECK(relative_error(in_steps(machine.ctx, text, DType::kF32, 1, window), table_of(expected)) < 1e-6);
    }
  }
}

TEST_CASE("cached attention gives the same bits for any number of tokens at once and of threads") {
  for (const CpuIsa isa : available_isas()) {
    for (const DType dtype : kAllDTypes) {
      CAPTURE(std::string(name_of(isa)) + " " + name_of(dtype));
      Machine one(isa, 1), three(isa, 3);
      Text text(dtype);
      const HostMatrix expected = in_steps(one.ctx, text, dtype, 1, 30);
      for (const std::int64_t step : {1, 2, 33, 75}) CHECK(in_steps(three.ctx, text, dtype, step, 30) == expected);
    }
  }
}

TEST_CASE("cached attention refuses what does not fit") {
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
