// Quantized matrices: bit for bit what the reference in test/golden/make_golden_quantize.py makes, on every device and
// path.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "test/error_code.h"
#include "test/kernels/every_path.h"
#include "test/kernels/golden_facts.h"
#include "test/kernels/quantize/quantize_on_host.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// generated() of the script.
HostMatrix generated(std::uint32_t seed, std::int64_t rows, std::int64_t cols) {
  HostMatrix values(DType::kF32, rows, cols);
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    std::uint32_t h = (static_cast<std::uint32_t>(i) + seed) * 2654435761U;
    h = (h ^ (h >> 15)) * 2246822519U;
    h ^= h >> 13;
    const float size = h >> 20 == 0 ? 64.0F : 1.0F;
    values.set(i / cols, i % cols, (static_cast<float>(h % 4001U) - 2000.0F) * size / 32768.0F);
  }
  return values;
}

HostMatrix values_of(const GoldenFacts& facts, std::int64_t rows, std::int64_t cols) {
  if (facts.words.count("generated") > 0)
    return generated(static_cast<std::uint32_t>(facts.numbers("generated")[0]), rows, cols);
  const std::vector<double> numbers = facts.numbers("values");
  HostMatrix values(DType::kF32, rows, cols);
  for (std::int64_t i = 0; i < rows * cols; ++i)
    values.set(i / cols, i % cols, static_cast<float>(numbers[static_cast<std::size_t>(i)]));
  return values;
}

std::vector<int> codes_of(const QuantizedMatrix& matrix) {
  std::vector<int> codes;
  for (std::int64_t i = 0; i < matrix.rows() * matrix.cols(); ++i)
    codes.push_back(code_at(matrix, i / matrix.cols(), i % matrix.cols()));
  return codes;
}

/// The elements of a matrix without gaps as words of its type.
std::vector<std::uint32_t> words_of(HostMatrix matrix) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(matrix.rows() * matrix.cols()));
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t bytes = size_of(matrix.dtype());
    std::memcpy(&words[i], static_cast<const std::byte*>(matrix.view().data) + i * bytes, bytes);
  }
  return words;
}

template <class Word>
double checksum(const std::vector<Word>& words) {
  std::uint32_t sum = 0, index = 0;
  for (const Word word : words) sum += ++index * static_cast<std::uint32_t>(word);
  return static_cast<double>(sum);
}

void check_scales(const GoldenFacts& facts, const QuantizedMatrix& matrix) {
  const ConstQuantBlocks blocks = matrix.blocks();
  const std::vector<double> scales = facts.numbers("scales"), groups = facts.numbers("groups");
  bool equal = true;
  for (std::size_t i = 0; i < scales.size(); ++i) equal = equal && blocks.scale_codes[i] == scales[i];
  CHECK(equal);
  for (std::size_t i = 0; i < groups.size(); i += 2) {
    CHECK(static_cast<double>(blocks.groups[i / 2].offset) == groups[i]);
    CHECK(static_cast<double>(blocks.groups[i / 2].step) == groups[i + 1]);
  }
}

void check_elements(const Context& ctx, const GoldenFacts& facts, const QuantizedMatrix& matrix) {
  const std::vector<int> codes = codes_of(fetched(ctx, matrix));
  if (facts.words.count("checksums") > 0) {
    const std::vector<double> sums = facts.numbers("checksums");
    CHECK(checksum(codes) == sums[0]);
    CHECK(checksum(words_of(dequantized(ctx, matrix, DType::kF32))) == sums[1]);
    CHECK(checksum(words_of(dequantized(ctx, matrix, DType::kBF16))) == sums[2]);
    CHECK(checksum(words_of(dequantized(ctx, matrix, DType::kF16))) == sums[3]);
    return;
  }
  const std::vector<double> expected = facts.numbers("restored");
  CHECK(std::vector<double>(codes.begin(), codes.end()) == facts.numbers("codes"));
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name_of(dtype));
    HostMatrix rounded(dtype, matrix.rows(), matrix.cols());
    for (std::int64_t i = 0; i < matrix.rows() * matrix.cols(); ++i) {
      rounded.set(i / matrix.cols(), i % matrix.cols(), static_cast<float>(expected[static_cast<std::size_t>(i)]));
    }
    CHECK(words_of(dequantized(ctx, matrix, dtype)) == words_of(rounded));
  }
}

}  // namespace

TEST_CASE("quantize: the levels of nf4 are those of the reference, which derives them from quantiles") {
  const std::vector<double> levels = read_golden_facts("quantize.txt").front().numbers("levels");
  REQUIRE(levels.size() == 16);
  for (int code = 0; code < 16; ++code)
    CHECK(static_cast<double>(nf4_level(code)) == levels[static_cast<std::size_t>(code)]);
}

DEVICE_TEST_CASE("quantize: codes, scales and what is restored of them match the reference bit for bit") {
  const std::vector<GoldenFacts> cases = read_golden_facts("quantize.txt");
  on_every_context([&](const Context& ctx) {
    for (std::size_t i = 1; i < cases.size(); ++i) {
      const GoldenFacts& facts = cases[i];
      CAPTURE(facts.name);
      const std::vector<std::string>& matrix = facts.words.at("matrix");
      const QuantFormat format = matrix[0] == "nf4" ? QuantFormat::kNf4 : QuantFormat::kInt8;
      const QuantizedMatrix made =
          quantized(ctx, format, values_of(facts, std::stoll(matrix[1]), std::stoll(matrix[2])));
      check_scales(facts, fetched(ctx, made));
      check_elements(ctx, facts, made);
    }
  });
}

DEVICE_TEST_CASE(
    "quantize: all source types and row strides, equal bytes on every path and device with any number of threads") {
  struct Shape {
    std::int64_t rows, cols, gap;
  };
  Machine reference(CpuIsa::kGeneric, 1);
  for (const Shape& shape :
       {Shape{1, 1, 0}, Shape{3, 63, 1}, Shape{70, 65, 0}, Shape{5, 64, 3}, Shape{130, 128, 0}, Shape{2, 20'011, 5}}) {
    for (const DType dtype : kAllDTypes) {
      std::mt19937 random(17);
      const HostMatrix source = HostMatrix::random(dtype, shape.rows, shape.cols, random, shape.gap, 0.02F);
      HostMatrix wide(DType::kF32, shape.rows, shape.cols);
      for (std::int64_t i = 0; i < shape.rows; ++i) {
        for (std::int64_t j = 0; j < shape.cols; ++j) wide.set(i, j, static_cast<float>(source.at(i, j)));
      }
      for (const QuantFormat format : kQuantFormats) {
        CAPTURE(std::string(name_of(format)) + " " + name_of(dtype) + " " + std::to_string(shape.rows) + "x" +
                std::to_string(shape.cols));
        const std::vector<std::byte> expected = bytes_of(reference.ctx, quantized(reference.ctx, format, wide));
        on_every_context([&](const Context& ctx) { CHECK(bytes_of(ctx, quantized(ctx, format, source)) == expected); });
        for (int threads = 1; threads <= 4; ++threads) {
          Machine machine(best_cpu_isa(), threads);
          CHECK(bytes_of(machine.ctx, quantized(machine.ctx, format, source)) == expected);
        }
      }
    }
  }
}

DEVICE_TEST_CASE(
    "dequantize: equal bits on every path and device, an error below half a level, and gaps between rows stay") {
  constexpr float kUntouched = -5;
  Machine reference(CpuIsa::kGeneric, 1);
  for (const std::int64_t cols : {1, 31, 33, 64, 100, 257}) {
    std::mt19937 random(23);
    const HostMatrix source = HostMatrix::random(DType::kF32, 70, cols, random);
    for (const QuantFormat format : kQuantFormats) {
      const QuantizedMatrix expected_of = quantized(reference.ctx, format, source);
      on_every_device([&](const Context& ctx, DType dtype) {
        CAPTURE(std::string(name_of(format)) + " " + std::to_string(cols));
        HostMatrix target(dtype, 70, cols, 3);
        for (std::int64_t row = 0; row < 70; ++row) target.set(row, cols + 1, kUntouched);
        const QuantizedMatrix matrix = quantized(ctx, format, source);
        dequantize(ctx, matrix, target.view());
        synchronize(ctx);
        HostMatrix expected = dequantized(reference.ctx, expected_of, dtype, 3);
        for (std::int64_t row = 0; row < 70; ++row) expected.set(row, cols + 1, kUntouched);
        CHECK(target == expected);
        CHECK(relative_error(target, table_of(source)) < (format == QuantFormat::kNf4 ? 0.12 : 0.012));
      });
    }
  }
}

DEVICE_TEST_CASE("quantize: a NaN or an infinity makes NaN of its group of blocks, and of no other") {
  on_every_context([](const Context& ctx) {
    for (const QuantFormat format : kQuantFormats) {
      for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
        HostMatrix source(DType::kF32, 3, 64 * 256);
        for (std::int64_t row = 0; row < 3; ++row) source.set(row, 5, 1);
        source.set(1, 9'000, wrong);
        const HostMatrix restored = dequantized(ctx, quantized(ctx, format, source), DType::kF32);
        std::int64_t wrong_ones[3] = {};
        for (std::int64_t row = 0; row < 3; ++row) {
          for (std::int64_t col = 0; col < restored.cols(); ++col)
            wrong_ones[row] += std::isnan(restored.at(row, col)) ? 1 : 0;
        }
        CHECK(wrong_ones[0] == 0);
        CHECK(wrong_ones[1] == restored.cols());
        CHECK(wrong_ones[2] == 0);
      }
    }
  });
}

TEST_CASE("quantize: bytes, and shapes that are refused") {
  CHECK(quantized_bytes(QuantFormat::kNf4, 4096, 4096) == 4096 * 4096 / 64 * 33 + 4096 * 4096 / 16384 * 8);
  CHECK(quantized_bytes(QuantFormat::kInt8, 3, 65) == 6 * 65 + 8);
  CHECK(QuantizedMatrix(Device{}, QuantFormat::kNf4, 7, 100).num_bytes() == quantized_bytes(QuantFormat::kNf4, 7, 100));
  Machine machine(best_cpu_isa(), 1);
  HostMatrix source(DType::kF32, 3, 5);
  QuantizedMatrix other(Device{}, QuantFormat::kNf4, 5, 3), none;
  CHECK(code_of([&] { quantize(machine.ctx, source.view(), other); }) == "invalid_argument");
  CHECK(code_of([&] { dequantize(machine.ctx, other, source.view()); }) == "invalid_argument");
  CHECK(code_of([&] { quantize(machine.ctx, source.view(), none); }) == "invalid_argument");
  CHECK(code_of([] { QuantizedMatrix(Device{}, QuantFormat::kInt8, 0, 4); }) == "invalid_argument");
}
