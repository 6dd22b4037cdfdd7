// Casts, the leaf-order fold and block sums: on every path, with one and three threads, against plain scalar code.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/block_stats.h"
#include "kernels/cast.h"
#include "kernels/fold.h"
#include "test/zero/fake_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

std::span<std::byte> bytes_of(auto& values) { return std::as_writable_bytes(std::span(values)); }

void on_every_path(const std::function<void(const Context&)>& body) {
  for (const int num_threads : {1, 3}) {
    ThreadPool pool(num_threads);
    for (const CpuIsa isa : isas_here()) body({Device{}, &pool, isa});
  }
}

/// Bit patterns of every sign and exponent with mantissas at the edges of rounding, and random ones.
std::vector<float> telling_floats() {
  std::vector<float> values;
  for (std::uint32_t top = 0; top < 512; ++top) {
    for (const std::uint32_t mantissa : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0x17fffU, 0x18000U, 0x18001U, 0x7fffffU}) {
      values.push_back(std::bit_cast<float>(top << 23 | mantissa));
    }
  }
  for (std::uint32_t i = 0; i < 66000; ++i) values.push_back(std::bit_cast<float>(philox(1, {i, 0, 0, 0})[0]));
  return values;
}

std::vector<float> random_floats(std::size_t numel, std::uint64_t key) {
  std::vector<float> values(numel);
  for (std::size_t i = 0; i < numel; ++i) {
    const auto bits = philox(key, {static_cast<std::uint32_t>(i), 0, 0, 0});
    values[i] = static_cast<float>((uniform_open(bits[0]) - 0.5) * std::exp2(static_cast<double>(bits[1] % 40) - 20));
  }
  return values;
}

}  // namespace

TEST_CASE("cast to bf16 rounds to nearest even and keeps NaN, infinities and subnormals") {
  const auto source = telling_floats();
  on_every_path([&](const Context& context) {
    std::vector<bf16> target(source.size());
    cast_from_f32(context, source, DType::kBF16, bytes_of(target));
    std::size_t num_wrong = 0;
    for (std::size_t i = 0; i < source.size(); ++i) num_wrong += target[i].bits != to_bf16(source[i]).bits;
    CHECK(num_wrong == 0);
    std::vector<float> back(source.size());
    cast_to_f32(context, std::as_bytes(std::span(target)), DType::kBF16, back);
    for (std::size_t i = 0; i < source.size(); ++i) {
      num_wrong += std::bit_cast<std::uint32_t>(back[i]) != std::uint32_t{target[i].bits} << 16;
    }
    CHECK(num_wrong == 0);
  });
}

TEST_CASE("cast to fp16 rounds to nearest even and keeps NaN, infinities and subnormals, on every path alike") {
  auto source = telling_floats();
  // Every fp16 value, the ties between neighbours, and what lies next to the ties.
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = to_float(f16{static_cast<std::uint16_t>(bits)});
    const float next = to_float(f16{static_cast<std::uint16_t>(bits + 1)});
    const float tie = value + (next - value) / 2;
    for (const float x : {value, tie, std::nextafter(tie, 0.0F), std::nextafter(tie, 1e9F)}) source.push_back(x);
  }
  std::size_t num_wrong = 0;
  for (const float x : source) {
    // The compiler's own conversion is the reference.
    const auto expected = std::bit_cast<std::uint16_t>(static_cast<_Float16>(x));
    num_wrong += to_f16(x).bits != expected;
    const auto back = static_cast<float>(std::bit_cast<_Float16>(expected));
    num_wrong += std::bit_cast<std::uint32_t>(to_float(f16{expected})) != std::bit_cast<std::uint32_t>(back);
  }
  CHECK(num_wrong == 0);
  on_every_path([&](const Context& context) {
    std::vector<f16> target(source.size());
    cast_from_f32(context, source, DType::kF16, bytes_of(target));
    std::size_t num_differing = 0;
    for (std::size_t i = 0; i < source.size(); ++i) num_differing += target[i].bits != to_f16(source[i]).bits;
    std::vector<float> back(source.size());
    cast_to_f32(context, std::as_bytes(std::span(target)), DType::kF16, back);
    for (std::size_t i = 0; i < source.size(); ++i) {
      num_differing += std::bit_cast<std::uint32_t>(back[i]) != std::bit_cast<std::uint32_t>(to_float(target[i]));
    }
    CHECK(num_differing == 0);
  });
}

TEST_CASE("cast between fp32 and fp32 copies bits") {
  const auto source = telling_floats();
  on_every_path([&](const Context& context) {
    std::vector<float> there(source.size()), back(source.size());
    cast_from_f32(context, source, DType::kF32, bytes_of(there));
    cast_to_f32(context, std::as_bytes(std::span(there)), DType::kF32, back);
    CHECK(std::memcmp(back.data(), source.data(), source.size() * sizeof(float)) == 0);
  });
}

TEST_CASE("fold adds pieces one after another in fp32") {
  constexpr std::size_t kNumel = 70001;
  for (const std::size_t num_pieces : {1U, 2U, 5U}) {
    auto pieces = random_floats(num_pieces * kNumel, 2);
    pieces[0] = -0.0F;
    std::vector<bf16> narrow(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) narrow[i] = to_bf16(pieces[i]);
    const auto start = random_floats(kNumel, 3);
    for (const bool restart : {true, false}) {
      on_every_path([&](const Context& context) {
        for (const DType dtype : {DType::kF32, DType::kBF16}) {
          std::vector<float> expected(kNumel), sum = start;
          for (std::size_t i = 0; i < kNumel; ++i) {
            float value = restart ? 0.0F : start[i];
            for (std::size_t p = 0; p < num_pieces; ++p) {
              const std::size_t at = p * kNumel + i;
              value += dtype == DType::kBF16 ? to_float(narrow[at]) : pieces[at];
            }
            expected[i] = value;
          }
          fold_pieces(context, dtype == DType::kBF16 ? bytes_of(narrow) : bytes_of(pieces), dtype,
                      static_cast<std::int64_t>(num_pieces), restart, sum);
          CHECK(std::memcmp(sum.data(), expected.data(), kNumel * sizeof(float)) == 0);
        }
      });
    }
  }
}

TEST_CASE("block sums of squares are exact to fp64 rounding and equal on every path") {
  constexpr std::size_t kBlocks = 21, kSize = 4096;
  const auto values = random_floats(kBlocks * kSize, 4);
  std::vector<double> first;
  on_every_path([&](const Context& context) {
    std::vector<double> sums(kBlocks);
    block_sum_squares(context, values, kSize, sums);
    for (std::size_t block = 0; block < kBlocks; ++block) {
      long double expected = 0;
      for (std::size_t i = 0; i < kSize; ++i) {
        const auto value = static_cast<long double>(values[block * kSize + i]);
        expected += value * value;
      }
      CHECK(sums[block] == doctest::Approx(static_cast<double>(expected)).epsilon(1e-13));
    }
    if (first.empty()) first = sums;
    CHECK(sums == first);
  });
}

TEST_CASE("block sums show what is not finite, and only that") {
  on_every_path([&](const Context& context) {
    std::vector<float> values(4 * 32, std::numeric_limits<float>::max());
    values[32 + 31] = std::numeric_limits<float>::quiet_NaN();
    values[64] = -std::numeric_limits<float>::infinity();
    std::vector<double> sums(4);
    block_sum_squares(context, values, 32, sums);
    CHECK(std::isfinite(sums[0]));
    CHECK(std::isnan(sums[1]));
    CHECK(std::isinf(sums[2]));
    CHECK(std::isfinite(sums[3]));
  });
}

TEST_CASE("flat kernels refuse sizes that don't agree and devices without a backend") {
  ThreadPool pool(1);
  const Context cpu{Device{}, &pool, best_cpu_isa()}, cuda{{DeviceKind::kCuda, 0}, &pool, best_cpu_isa()};
  std::vector<float> ten(10), eleven(11);
  std::vector<double> sums(1);
  CHECK(code_of([&] { cast_from_f32(cpu, ten, DType::kBF16, bytes_of(ten)); }) == "invalid_argument");
  CHECK(code_of([&] { cast_to_f32(cpu, bytes_of(ten), DType::kF32, eleven); }) == "invalid_argument");
  CHECK(code_of([&] { fold_pieces(cpu, bytes_of(ten), DType::kF32, 2, true, ten); }) == "invalid_argument");
  CHECK(code_of([&] { fold_pieces(cpu, {}, DType::kF32, 0, true, {}); }) == "invalid_argument");
  CHECK(code_of([&] { block_sum_squares(cpu, ten, 10, sums); }) == "invalid_argument");
  CHECK(code_of([&] { block_sum_squares(cpu, ten, 32, sums); }) == "invalid_argument");
  CHECK(code_of([&] { cast_from_f32(cuda, ten, DType::kF32, bytes_of(ten)); }) == "device_unavailable");
  CHECK(code_of([&] { cast_to_f32(cuda, bytes_of(ten), DType::kF32, ten); }) == "device_unavailable");
  CHECK(code_of([&] { fold_pieces(cuda, bytes_of(ten), DType::kF32, 1, true, ten); }) == "device_unavailable");
  CHECK(code_of([&] { block_sum_squares(cuda, {}, 32, {}); }) == "device_unavailable");
}
