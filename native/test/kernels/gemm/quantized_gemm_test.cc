// Products whose B is quantized: the bits of the product with what dequantize() restores.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "test/error_code.h"
#include "test/kernels/every_path.h"
#include "test/kernels/quantize/quantize_on_host.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

struct QuantizedCase {
  std::int64_t m, k, n;
  std::int64_t first_k = 0;  // of B's first part; 0: one part
  bool accumulate = false;
};

// Whole and broken blocks, panels and tiles; parts that end within a block; few rows, and rows in several tasks; k in
// several passes.
constexpr QuantizedCase kQuantizedCases[] = {
    {1, 1, 1},          {2, 4500, 70},  {4, 200, 96},           {3, 5, 7},           {33, 64, 64},
    {65, 130, 33, 30},  {64, 256, 192}, {70, 33, 300, 2},       {17, 640, 515, 320}, {300, 66, 131, 0, true},
    {20, 600, 70, 130}, {66, 4100, 48}, {5, 3000, 20, 0, true}, {600, 20, 260},      {40, 8200, 35, 4098}};

struct QuantizedOperands {
  QuantizedOperands(const Context& ctx, QuantFormat format, DType dtype, SourceRows rows, const QuantizedCase& shape) {
    const bool along_k = rows == SourceRows::kAlongK;
    restored.rows = unpacked.rows = rows;
    parts.reserve(2), plain.reserve(2);
    for (const std::int64_t k : {shape.first_k, shape.k - shape.first_k}) {
      if (k == 0) continue;
      std::mt19937 random(static_cast<unsigned>(41 + k));
      parts.push_back(quantized(ctx, format,
                                HostMatrix::random(DType::kF32, along_k ? k : shape.n, along_k ? shape.n : k, random)));
      unpacked.add(parts.back(), dtype);
    }
    // As one matrix, which is how a device restores it.
    HostMatrix all(dtype, along_k ? shape.k : shape.n, along_k ? shape.n : shape.k);
    std::int64_t begin = 0;
    for (const QuantizedMatrix& part : parts) {
      const Matrix target{along_k ? all.view().at(begin, 0) : all.view().at(0, begin), dtype, part.rows(), part.cols(),
                          all.view().stride};
      dequantize(ctx, part, target);
      begin += along_k ? part.rows() : part.cols();
    }
    synchronize(ctx);
    plain.push_back(all);
    restored.parts = {plain.back().view()};
  }

  std::vector<QuantizedMatrix> parts;
  std::vector<HostMatrix> plain;
  SourceOperand unpacked, restored;
};

HostMatrix product(const Context& ctx, Scratch& scratch, HostMatrix a, const SourceOperand& b, HostMatrix c,
                   bool accumulate, bool varies = false) {
  GemmProblem problem{a.view(), nullptr, c.view(), false, accumulate, nullptr, &b};
  problem.varies = varies;
  gemm(ctx, scratch, {&problem, 1});
  synchronize(ctx);
  return c;
}

/// Calls body(format, rows, shape) for all cases, or for those that are small enough for slow machines.
template <class Body>
void on_quantized_cases(bool is_slow, const Body& body) {
  for (const QuantFormat format : kQuantFormats) {
    for (const SourceRows rows : {SourceRows::kAlongK, SourceRows::kAlongN}) {
      for (const QuantizedCase& shape : kQuantizedCases) {
        if (is_slow && shape.m * shape.k * shape.n > 3'000'000) continue;
        CAPTURE(std::string(name_of(format)) + (rows == SourceRows::kAlongK ? " along k " : " along n ") +
                std::to_string(shape.m) + "x" + std::to_string(shape.k) + "x" + std::to_string(shape.n));
        body(format, rows, shape);
      }
    }
  }
}

}  // namespace

DEVICE_TEST_CASE("gemm: a quantized source gives the bits of the product with the dequantized matrix") {
  on_every_device([](const Context& ctx, DType dtype) {
    Scratch scratch(ctx);
    on_quantized_cases(kSanitized || ctx.device.kind == DeviceKind::kCuda,
                       [&](QuantFormat format, SourceRows rows, const QuantizedCase& shape) {
                         std::mt19937 random(43);
                         const QuantizedOperands b(ctx, format, dtype, rows, shape);
                         const HostMatrix a = HostMatrix::random(dtype, shape.m, shape.k, random, 1);
                         for (const DType c_dtype : {DType::kF32, dtype}) {
                           if (shape.accumulate && c_dtype != DType::kF32) continue;
                           const HostMatrix c = HostMatrix::random(c_dtype, shape.m, shape.n, random, 2);
                           const HostMatrix expected = product(ctx, scratch, a, b.restored, c, shape.accumulate);
                           CHECK(product(ctx, scratch, a, b.unpacked, c, shape.accumulate) == expected);
                           CHECK(product(ctx, scratch, a, b.unpacked, c, shape.accumulate, true) ==
                                 product(ctx, scratch, a, b.restored, c, shape.accumulate, true));
                         }
                       });
  });
}

TEST_CASE("gemm: a quantized source gives the same bits with one to four threads") {
  for (const CpuIsa isa : available_isas()) {
    Machine one(isa, 1), two(isa, 2), three(isa, 3), four(isa, 4);
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      on_quantized_cases(kSanitized, [&](QuantFormat format, SourceRows rows, const QuantizedCase& shape) {
        std::mt19937 random(47);
        const QuantizedOperands b(one.ctx, format, dtype, rows, shape);
        const HostMatrix a = HostMatrix::random(dtype, shape.m, shape.k, random), c(DType::kF32, shape.m, shape.n);
        Scratch one_scratch(one.ctx);
        const HostMatrix expected = product(one.ctx, one_scratch, a, b.unpacked, c, false);
        for (const Context* ctx : {&two.ctx, &three.ctx, &four.ctx}) {
          Scratch scratch(*ctx);
          CHECK(product(*ctx, scratch, a, b.unpacked, c, false) == expected);
        }
      });
    }
  }
}

DEVICE_TEST_CASE("gemm: several quantized problems in one call, and gelu behind one") {
  on_every_device([](const Context& ctx, DType dtype) {
    Scratch scratch(ctx);
    std::mt19937 random(53);
    const QuantizedCase shape{48, 64, 96};
    for (const SourceRows rows : {SourceRows::kAlongK, SourceRows::kAlongN}) {
      const QuantizedOperands b(ctx, QuantFormat::kNf4, dtype, rows, shape),
          other(ctx, QuantFormat::kInt8, dtype, rows, shape);
      HostMatrix a = HostMatrix::random(dtype, shape.m, shape.k, random);
      std::vector<HostMatrix> results;
      for (const bool is_quantized : {false, true}) {
        HostMatrix c(dtype, shape.m, shape.n), second(dtype, shape.m, shape.n), inner(dtype, shape.m, shape.n);
        std::array problems{
            GemmProblem{a.view(), nullptr, c.view(), false, false, nullptr, is_quantized ? &b.unpacked : &b.restored},
            GemmProblem{a.view(), nullptr, second.view(), false, false, nullptr,
                        is_quantized ? &other.unpacked : &other.restored}};
        problems[1].epilogue = {GemmEpilogue::Kind::kGelu, GeluKind::kTanh, inner.view()};
        gemm(ctx, scratch, problems);
        synchronize(ctx);
        for (const HostMatrix* made : {&c, &second, &inner}) results.push_back(*made);
      }
      for (std::size_t i = 0; i < 3; ++i) CHECK(results[i] == results[i + 3]);
    }
  });
}

TEST_CASE("gemm: packed codes give the bits of the product with the dequantized matrix, with any number of threads") {
  on_every_path([](const Context& ctx, DType dtype) {
    Machine three(ctx.cpu_isa, 3);
    on_quantized_cases(kSanitized, [&](QuantFormat format, SourceRows rows, const QuantizedCase& shape) {
      if (shape.first_k > 0 || shape.accumulate) return;
      std::mt19937 random(59);
      const QuantizedOperands b(ctx, format, dtype, rows, shape);
      PackedCodes codes(ctx, format, rows, dtype, shape.k, shape.n);
      codes.pack(ctx, b.parts.front());
      HostMatrix a = HostMatrix::random(dtype, shape.m, shape.k, random, 1);
      for (const DType c_dtype : {DType::kF32, dtype}) {
        HostMatrix bias = HostMatrix::random(c_dtype, 1, shape.n, random);
        std::vector<HostMatrix> results;
        for (const Context* used : {&ctx, &ctx, static_cast<const Context*>(&three.ctx)}) {
          HostMatrix& c = results.emplace_back(c_dtype, shape.m, shape.n, 2);
          GemmProblem problem{a.view(), nullptr, c.view(), false, false, bias.view().data};
          if (results.size() == 1)
            problem.source = &b.restored;
          else
            problem.codes = &codes;
          Scratch scratch(*used);
          gemm(*used, scratch, {&problem, 1});
        }
        CHECK(results[1] == results[0]);
        CHECK(results[2] == results[0]);
      }
    });
  });
}

TEST_CASE("gemm: packed codes of subnormal scales give the bits of the product with the dequantized matrix") {
  on_every_path([](const Context& ctx, DType dtype) {
    for (const QuantFormat format : kQuantFormats) {
      std::mt19937 random(61);
      HostMatrix source = HostMatrix::random(DType::kF32, 40, 200, random);
      // Elements of all magnitudes around the least normal number.
      for (std::int64_t row = 0; row < 40; ++row) {
        auto* elements = static_cast<float*>(source.view().at(row, 0));
        for (std::int64_t col = 0; col < 200; ++col)
          elements[col] *= std::ldexp(1.0F, static_cast<int>(-118 - row / 3));
      }
      const QuantizedMatrix matrix = quantized(ctx, format, source);
      HostMatrix a = HostMatrix::random(dtype, 3, 200, random), restored = dequantized(ctx, matrix, dtype);
      PackedCodes codes(ctx, format, SourceRows::kAlongN, dtype, 200, 40);
      codes.pack(ctx, matrix);
      const SourceOperand whole{{restored.view()}, SourceRows::kAlongN};
      HostMatrix expected(DType::kF32, 3, 40), c(DType::kF32, 3, 40);
      Scratch scratch(ctx);
      GemmProblem problem{a.view(), nullptr, expected.view(), false, false, nullptr, &whole};
      gemm(ctx, scratch, {&problem, 1});
      problem.source = nullptr, problem.codes = &codes, problem.c = c.view();
      gemm(ctx, scratch, {&problem, 1});
      CHECK(c == expected);
    }
  });
}

TEST_CASE("gemm refuses packed codes that do not fit") {
  Machine machine(best_cpu_isa(), 1);
  Scratch scratch(machine.ctx);
  HostMatrix a(DType::kF32, 4, 6), c(DType::kF32, 4, 5), b(DType::kF32, 6, 5);
  const QuantizedMatrix matrix = quantized(machine.ctx, QuantFormat::kNf4, b);
  PackedCodes codes(machine.ctx, QuantFormat::kNf4, SourceRows::kAlongK, DType::kF32, 6, 5),
      transposed(machine.ctx, QuantFormat::kNf4, SourceRows::kAlongN, DType::kF32, 6, 5),
      wrong_type(machine.ctx, QuantFormat::kNf4, SourceRows::kAlongK, DType::kBF16, 6, 5);
  codes.pack(machine.ctx, matrix);
  CHECK(code_of([&] { transposed.pack(machine.ctx, matrix); }) == "invalid_argument");
  const auto code_with = [&](const PackedCodes& operand, bool accumulate) {
    GemmProblem problem{a.view(), nullptr, c.view(), false, accumulate};
    problem.codes = &operand;
    return code_of([&] { gemm(machine.ctx, scratch, {&problem, 1}); });
  };
  CHECK(code_with(codes, false) == "none");
  CHECK(code_with(codes, true) == "invalid_argument");
  CHECK(code_with(wrong_type, false) == "invalid_argument");
}

TEST_CASE("gemm refuses quantized parts that do not fit") {
  Machine machine(best_cpu_isa(), 1);
  Scratch scratch(machine.ctx);
  HostMatrix a(DType::kF32, 4, 6), c(DType::kF32, 4, 5), b(DType::kF32, 6, 5);
  const QuantizedMatrix fits = quantized(machine.ctx, QuantFormat::kNf4, b);
  const QuantizedMatrix other(Device{}, QuantFormat::kNf4, 5, 5);
  const auto code_with = [&](const SourceOperand& source) {
    const GemmProblem problem{a.view(), nullptr, c.view(), false, false, nullptr, &source};
    return code_of([&] { gemm(machine.ctx, scratch, {&problem, 1}); });
  };
  SourceOperand source;
  source.add(fits, DType::kF32);
  CHECK(code_with(source) == "none");
  source.quantized = {&other};
  CHECK(code_with(source) == "invalid_argument");
  source.quantized = {nullptr};
  CHECK(code_with(source) == "invalid_argument");
  source.quantized = {&fits, &fits};
  CHECK(code_with(source) == "invalid_argument");
  SourceOperand wrong_type;
  wrong_type.add(fits, DType::kBF16);
  CHECK(code_with(wrong_type) == "invalid_argument");
}
