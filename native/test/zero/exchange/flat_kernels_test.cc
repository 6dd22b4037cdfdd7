// Casts, the leaf-order fold and block sums: on every path, with one and three threads, and on every CUDA device,
// against plain scalar code.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/flat/block_stats.h"
#include "kernels/flat/cast.h"
#include "kernels/flat/fold.h"
#include "test/devices_here.h"
#include "test/zero/fake_job.h"
#include "test/zero/narrow_values.h"
#include "test/zero/on_device.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

std::span<std::byte> bytes_of(auto& values) { return std::as_writable_bytes(std::span(values)); }

void on_every_path(const std::function<void(const Context&)>& body) {
  for (const int num_threads : {1, 3}) {
    ThreadPool pool(num_threads);
    for (const CpuIsa isa : available_isas()) body({Device{}, &pool, isa});
  }
  on_cuda_devices(body);
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

/// Magnitudes from 2^-27 to 2^13, within the range of fp16.
std::vector<float> random_floats(std::size_t numel, std::uint64_t key) {
  std::vector<float> values(numel);
  for (std::size_t i = 0; i < numel; ++i) {
    const auto bits = philox(key, {static_cast<std::uint32_t>(i), 0, 0, 0});
    values[i] = static_cast<float>((uniform_open(bits[0]) - 0.5) * std::exp2(static_cast<double>(bits[1] % 40) - 26));
  }
  return values;
}

}  // namespace

TEST_CASE("cast to bf16 rounds to nearest even and keeps NaN, infinities and subnormals") {
  const auto source = telling_floats();
  on_every_path([&](const Context& context) {
    std::vector<bf16> target(source.size());
    run_cast_from_f32(context, source, DType::kBF16, bytes_of(target));
    std::size_t num_wrong = 0;
    for (std::size_t i = 0; i < source.size(); ++i) num_wrong += target[i].bits != to_bf16(source[i]).bits;
    CHECK(num_wrong == 0);
    std::vector<float> back(source.size());
    run_cast_to_f32(context, std::as_bytes(std::span(target)), DType::kBF16, back);
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
    run_cast_from_f32(context, source, DType::kF16, bytes_of(target));
    std::size_t num_differing = 0;
    for (std::size_t i = 0; i < source.size(); ++i) num_differing += target[i].bits != to_f16(source[i]).bits;
    std::vector<float> back(source.size());
    run_cast_to_f32(context, std::as_bytes(std::span(target)), DType::kF16, back);
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
    run_cast_from_f32(context, source, DType::kF32, bytes_of(there));
    run_cast_to_f32(context, std::as_bytes(std::span(there)), DType::kF32, back);
    CHECK(std::memcmp(back.data(), source.data(), source.size() * sizeof(float)) == 0);
  });
}

TEST_CASE("cast with a factor rounds the fp32 product once") {
  const auto source = random_floats(70001, 5);
  for (const float factor : {1.0F / 3, 4096.0F, 1.0F}) {
    std::vector<float> products;
    for (const float value : source) products.push_back(value * factor);
    for (const DType dtype : kAllDTypes) {
      const auto expected = stored(products, dtype);
      on_every_path([&](const Context& context) {
        std::vector<std::byte> target(expected.size());
        run_cast_from_f32(context, source, dtype, target, factor);
        CHECK(target == expected);
      });
    }
  }
}

TEST_CASE("fold adds pieces one after another in fp32 and rounds a narrow sum after each") {
  constexpr std::size_t kNumel = 70001;
  for (const DType piece_dtype : kAllDTypes) {
    for (const DType sum_dtype : kAllDTypes) {
      for (const bool restart : {true, false}) {
        const std::size_t num_pieces = piece_dtype == sum_dtype ? 5 : 2;
        auto values = random_floats(num_pieces * kNumel, 2);
        values[0] = -0.0F;
        const auto pieces = stored(values, piece_dtype);
        const auto start = stored(random_floats(kNumel, 3), sum_dtype);
        const auto addends = widened(pieces, piece_dtype), begin = widened(start, sum_dtype);
        std::vector<float> sums(kNumel);
        for (std::size_t i = 0; i < kNumel; ++i) {
          sums[i] = restart ? 0.0F : begin[i];
          for (std::size_t p = 0; p < num_pieces; ++p) sums[i] = rounded(sums[i] + addends[p * kNumel + i], sum_dtype);
        }
        const auto expected = stored(sums, sum_dtype);
        on_every_path([&](const Context& context) {
          auto sum = start;
          run_fold_pieces(context,
                          {pieces, piece_dtype, static_cast<std::int64_t>(num_pieces), sum, sum_dtype, restart});
          CHECK(sum == expected);
        });
      }
    }
  }
}

TEST_CASE("a narrow sum does not depend on how many pieces come at once") {
  constexpr std::size_t kNumel = 5000;
  const auto pieces = stored(random_floats(4 * kNumel, 6), DType::kF32);
  ThreadPool pool(1);
  const Context context{Device{}, &pool, best_cpu_isa()};
  for (const DType sum_dtype : kAllDTypes) {
    std::vector<std::byte> at_once(kNumel * size_of(sum_dtype)), in_turn = at_once;
    run_fold_pieces(context, {pieces, DType::kF32, 4, at_once, sum_dtype, true});
    const auto piece_bytes = kNumel * sizeof(float);
    for (std::size_t p = 0; p < 4; ++p) {
      const auto piece = std::span(pieces).subspan(p * piece_bytes, piece_bytes);
      run_fold_pieces(context, {piece, DType::kF32, 1, in_turn, sum_dtype, p == 0});
    }
    CHECK(in_turn == at_once);
  }
}

TEST_CASE("block stats: sums of squares exact to fp64 rounding, largest magnitudes exact, equal on every path") {
  constexpr std::size_t kBlocks = 21, kSize = 4096;
  for (const DType dtype : kAllDTypes) {
    const auto bytes = stored(random_floats(kBlocks * kSize, 4), dtype);
    const auto values = widened(bytes, dtype);
    std::vector<double> first;
    on_every_path([&](const Context& context) {
      std::vector<double> sums(kBlocks);
      std::vector<float> max_abs(kBlocks);
      run_block_stats(context, bytes, dtype, kSize, sums, max_abs);
      for (std::size_t block = 0; block < kBlocks; ++block) {
        long double expected = 0;
        float largest = 0;
        for (std::size_t i = 0; i < kSize; ++i) {
          const float value = values[block * kSize + i];
          expected += static_cast<long double>(value) * static_cast<long double>(value);
          largest = std::max(largest, std::abs(value));
        }
        CHECK(sums[block] == doctest::Approx(static_cast<double>(expected)).epsilon(1e-13));
        CHECK(max_abs[block] == largest);
      }
      if (first.empty()) first = sums;
      CHECK(sums == first);
    });
  }
}

TEST_CASE("block stats report values that are not finite, and only those") {
  for (const DType dtype : kAllDTypes) {
    on_every_path([&](const Context& context) {
      std::vector<float> values(4 * 32, dtype == DType::kF16 ? 65504.0F : 3e38F);
      values[32 + 31] = -std::numeric_limits<float>::quiet_NaN();
      values[33] = std::numeric_limits<float>::infinity();
      values[64] = -std::numeric_limits<float>::infinity();
      std::vector<double> sums(4);
      std::vector<float> max_abs(4);
      run_block_stats(context, stored(values, dtype), dtype, 32, sums, max_abs);
      CHECK(std::isfinite(sums[0]));
      CHECK(std::isnan(sums[1]));
      CHECK(std::isinf(sums[2]));
      CHECK(std::isfinite(sums[3]));
      CHECK(std::isnan(max_abs[1]));
      CHECK(max_abs[2] == std::numeric_limits<float>::infinity());
      CHECK(max_abs[3] == rounded(values[96], dtype));
    });
  }
}

TEST_CASE("flat kernels refuse sizes that don't agree and devices without a backend") {
  ThreadPool pool(1);
  const Context cpu{Device{}, &pool, best_cpu_isa()}, cuda{absent_device(), &pool, best_cpu_isa()};
  std::vector<float> ten(10), eleven(11);
  std::vector<double> sums(1);
  std::vector<float> max_abs(1);
  CHECK(code_of([&] { cast_from_f32(cpu, ten, DType::kBF16, bytes_of(ten)); }) == "invalid_argument");
  CHECK(code_of([&] { cast_to_f32(cpu, bytes_of(ten), DType::kF32, eleven); }) == "invalid_argument");
  CHECK(code_of([&] { fold_pieces(cpu, {bytes_of(ten), DType::kF32, 2, bytes_of(ten)}); }) == "invalid_argument");
  CHECK(code_of([&] { fold_pieces(cpu, {bytes_of(ten), DType::kF32, 1, bytes_of(ten), DType::kBF16}); }) ==
        "invalid_argument");
  CHECK(code_of([&] { fold_pieces(cpu, {{}, DType::kF32, 0, {}}); }) == "invalid_argument");
  CHECK(code_of([&] { block_stats(cpu, bytes_of(ten), DType::kF32, 10, sums, max_abs); }) == "invalid_argument");
  CHECK(code_of([&] { block_stats(cpu, bytes_of(ten), DType::kF32, 32, sums, max_abs); }) == "invalid_argument");
  CHECK(code_of([&] { block_stats(cpu, {}, DType::kF32, 32, {}, max_abs); }) == "invalid_argument");
  CHECK(code_of([&] { cast_from_f32(cuda, ten, DType::kF32, bytes_of(ten)); }) == "device_unavailable");
  CHECK(code_of([&] { cast_to_f32(cuda, bytes_of(ten), DType::kF32, ten); }) == "device_unavailable");
  CHECK(code_of([&] { fold_pieces(cuda, {bytes_of(ten), DType::kF32, 1, bytes_of(ten)}); }) == "device_unavailable");
  CHECK(code_of([&] { block_stats(cuda, {}, DType::kF32, 32, {}, {}); }) == "device_unavailable");
}
