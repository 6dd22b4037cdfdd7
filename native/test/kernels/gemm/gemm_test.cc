#include "kernels/gemm/gemm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/device/transfer.h"
#include "core/error.h"
#include "test/kernels/every_path.h"
#include "test/kernels/gemm/gemm_operands.h"
#include "test/kernels/test_machine.h"
#include "test/sanitized.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

// Whole and broken tiles, panels and words; rows 4 KiB apart; k beyond one pass; rows at odd addresses.
constexpr GemmCase kGemmCases[] = {{1, 1, 1},
                                   {3, 5, 7},
                                   {8, 64, 32},
                                   {65, 130, 33},
                                   {64, 256, 96, true},
                                   {70, 33, 41, true},
                                   {130, 17, 515},
                                   {9, 2048, 40},
                                   {66, 4100, 48},
                                   {40, 2050, 30},
                                   {31, 2049, 65, true},
                                   {66, 18, 4130, true},
                                   {1030, 18, 12, true},
                                   {33, 40, 64, false, true},
                                   {33, 41, 31, true, true},
                                   {5, 3000, 20, false, true},
                                   {10, 12, 36, false, false, 3},
                                   {67, 16, 515, false, true},
                                   {70, 300, 8, false, false, 0, 0.75F},
                                   {30, 4100, 16, false, false, 0, -3.0F}};

// Shapes for sources: several blocks of rows, several tasks of columns, k in one pass and in several, rows in several
// tasks.
constexpr GemmCase kSourceCases[] = {{1, 1, 1},
                                     {65, 130, 33},
                                     {70, 33, 300},
                                     {130, 17, 515},
                                     {9, 2048, 40},
                                     {66, 4100, 48},
                                     {40, 2050, 30},
                                     {70, 8200, 35},
                                     {300, 4100, 131},
                                     {600, 20, 260},
                                     {5, 3000, 20, false, true},
                                     {90, 8300, 40, false, true},
                                     {10, 12, 36, false, false, 3},
                                     {67, 16, 515, false, true},
                                     {70, 300, 8, false, false, 0, 0.75F},
                                     {70, 8200, 35, false, false, 0, -3.0F},
                                     {1100, 8194, 9}};

}  // namespace

DEVICE_TEST_CASE("gemm matches float64 for every device, path, type and shape, packed or as it lies") {
  std::vector<std::unique_ptr<Setup>> setups;
  for (const CpuIsa isa : available_isas()) {
    if (cpu_is_tested()) setups.push_back(std::make_unique<Setup>(Device{}, isa));
  }
  for (const Device device : cuda_devices_here()) setups.push_back(std::make_unique<Setup>(device));
  for (const DType dtype : kAllDTypes) {
    for (const DType c_dtype : kAllDTypes) {
      for (const GemmCase& shape : kGemmCases) {
        if (is_refused(shape, c_dtype)) continue;
        const GemmOperands operands = operands_of(shape, dtype, c_dtype);
        const Table expected = expected_of(shape, operands);
        for (const auto& setup : setups) {
          const Context& ctx = setup->ctx;
          Scratch& scratch = setup->scratch;
          if (kSanitized && ctx.device.kind == DeviceKind::kCuda && dtype == DType::kF16) continue;  // bf16's accesses
          CAPTURE(describe(shape, ctx.cpu_isa, dtype, ctx.device));
          const double allowed = tolerance_of_product(ctx.device, dtype, c_dtype, shape.k);
          CHECK(relative_error(run(ctx, scratch, shape, operands, dtype), expected) < allowed);
          if (shape.a_transposed) continue;
          CHECK(relative_error(run_source(ctx, scratch, shape, operands, SourceRows::kAlongK, nullptr), expected) <
                allowed);
          CHECK(relative_error(run_source(ctx, scratch, shape, operands, SourceRows::kAlongN, nullptr), expected) <
                allowed);
        }
      }
    }
  }
}

TEST_CASE("gemm gives the same bits with one, two and three threads, and with the smallest words") {
  for (const CpuIsa isa : available_isas()) {
    Setup one({}, isa, 1), two({}, isa, 2), three({}, isa, 3);
    for (const DType dtype : kAllDTypes) {
      for (const GemmCase& shape : kGemmCases) {
        const GemmOperands operands = operands_of(shape, dtype, DType::kF32);
        const auto product = [&](Setup& setup) { return run(setup.ctx, setup.scratch, shape, operands, dtype); };
        const HostMatrix expected = product(one);
        CAPTURE(describe(shape, isa, dtype));
        CHECK(product(two) == expected);
        CHECK(product(three) == expected);
        CHECK(run(two.ctx, two.scratch, shape, operands, dtype, nullptr, PackedWords::kSmallest) == expected);
      }
    }
  }
}

DEVICE_TEST_CASE("gemm adds a bias in fp32 after the sum: as if the product had been rounded only then") {
  on_every_device([](const Context& ctx, DType dtype) {
    Scratch scratch(ctx);
    for (const DType c_dtype : kAllDTypes) {
      for (const GemmCase& shape : kGemmCases) {
        if ((shape.accumulate && c_dtype != DType::kF32) || shape.alpha != 1) continue;
        CAPTURE(describe(shape, ctx.cpu_isa, dtype, ctx.device));
        std::mt19937 random(79);
        HostMatrix bias = HostMatrix::random(c_dtype, 1, shape.n, random);
        GemmOperands operands = operands_of(shape, dtype, DType::kF32);
        const HostMatrix sums = run(ctx, scratch, shape, operands, dtype);
        HostMatrix c(c_dtype, shape.m, shape.n, 1), expected(c_dtype, shape.m, shape.n, 1);
        for (std::int64_t i = 0; i < shape.m; ++i) {
          for (std::int64_t j = 0; j < shape.n; ++j) {
            if (shape.accumulate) c.set(i, j, static_cast<float>(operands.c.at(i, j)));
            expected.set(i, j, static_cast<float>(sums.at(i, j)) + static_cast<float>(bias.at(0, j)));
          }
        }
        const HostMatrix sums_with_bias =
            run(ctx, scratch, shape, {operands.a, operands.b, c}, dtype, bias.view().data);
        if (ctx.device.kind == DeviceKind::kCpu) {
          CHECK(sums_with_bias == expected);
        } else {  // a library may take another algorithm for it
          CHECK(relative_error(sums_with_bias, table_of(expected)) < tolerance(c_dtype));
        }
      }
    }
  });
}

// The products of a head with GPT-2's vocabulary.
DEVICE_TEST_CASE("gemm: 50257 rows, columns or k; what lies between the rows is neither read nor written") {
  constexpr std::int64_t kVocab = 50'257, kGap = 7;
  constexpr float kUntouched = -5;
  const auto fill_padding = [](HostMatrix& matrix, float value) {
    for (std::int64_t row = 0; row < matrix.rows(); ++row) matrix.set(row, matrix.cols(), value);
  };
  on_every_device([&](const Context& ctx, DType dtype) {
    Scratch scratch(ctx);
    for (const GemmCase& shape :
         {GemmCase{3, 8, kVocab, false, false, kGap}, GemmCase{3, kVocab, 8, false, false, kGap},
          GemmCase{kVocab, 3, 8, true, false, kGap}}) {
      const DType c_dtype = shape.k == kVocab ? dtype : DType::kF32;
      CAPTURE(shape.k);
      GemmOperands operands = operands_of(shape, dtype, c_dtype);
      const Table expected = expected_of(shape, operands);
      fill_padding(operands.a, std::numeric_limits<float>::quiet_NaN());
      fill_padding(operands.b, std::numeric_limits<float>::quiet_NaN());
      fill_padding(operands.c, kUntouched);
      const HostMatrix c = run(ctx, scratch, shape, operands, dtype);
      CHECK(relative_error(c, expected) < std::max(tolerance(c_dtype), 1e-5));  // of sums of 50257 in fp32
      bool untouched = true;
      for (std::int64_t row = 0; row < c.rows(); ++row)
        untouched = untouched && c.at(row, c.cols()) == static_cast<double>(kUntouched);
      CHECK(untouched);
    }
  });
}

DEVICE_TEST_CASE("gemm: more columns than the second dimension of a CUDA grid has tiles") {
  constexpr std::int64_t kCols = 65'536 * 64 + 1;
  for (const Device device : cuda_devices_here()) {
    DeviceMachine machine(device);
    Scratch scratch(machine.ctx);
    std::mt19937 random(53);
    HostMatrix a = HostMatrix::random(DType::kF32, 1, 1, random), b(DType::kF32, 1, kCols), c(DType::kF32, 1, kCols);
    b.set(0, 0, 2);
    b.set(0, kCols - 1, 3);
    const SourceOperand source{{b.view()}, SourceRows::kAlongK};
    const std::array problem{GemmProblem{a.view(), nullptr, c.view(), false, false, nullptr, &source}};
    gemm(machine.ctx, scratch, problem);
    synchronize(machine.ctx);
    CHECK(c.at(0, 0) == 2 * a.at(0, 0));
    CHECK(c.at(0, 1) == 0);
    CHECK(c.at(0, kCols - 1) == static_cast<double>(3 * static_cast<float>(a.at(0, 0))));
  }
}

// The chain of additions of one element must not depend on other elements computed with it.
TEST_CASE("gemm: a source gives the bits of its packed copy, both ways round, in parts, with any number of threads") {
  struct Path {
    explicit Path(CpuIsa isa) : one({}, isa, 1), three({}, isa, 3) {}
    Setup one, three;
  };
  std::vector<std::unique_ptr<Path>> paths;
  for (const CpuIsa isa : available_isas()) paths.push_back(std::make_unique<Path>(isa));
  for (const DType dtype : kAllDTypes) {
    for (const DType c_dtype : kAllDTypes) {
      for (const GemmCase& shape : kSourceCases) {
        if (is_refused(shape, c_dtype)) continue;
        if (kSanitized && shape.m * shape.k * shape.n > 10'000'000) continue;
        std::mt19937 random(31);
        HostMatrix bias = HostMatrix::random(c_dtype, 1, shape.n, random);
        const void* values = shape.m % 2 == 0 && shape.alpha == 1 ? bias.view().data : nullptr;
        const GemmOperands operands = operands_of(shape, dtype, c_dtype);
        for (const auto& path : paths) {
          CAPTURE(describe(shape, path->one.ctx.cpu_isa, dtype));
          const auto of_source = [&](Setup& setup, SourceRows rows) {
            return run_source(setup.ctx, setup.scratch, shape, operands, rows, values);
          };
          const HostMatrix expected = run(path->one.ctx, path->one.scratch, shape, operands, dtype, values);
          CHECK(of_source(path->one, SourceRows::kAlongK) == expected);
          CHECK(of_source(path->three, SourceRows::kAlongN) == expected);
          CHECK(of_source(path->three, SourceRows::kAlongK) == expected);
        }
      }
    }
  }
}

TEST_CASE("gemm: an element has the same bits whatever part of the product is computed") {
  for (const CpuIsa isa : available_isas()) {
    Setup setup({}, isa, 1);
    for (const DType dtype : kAllDTypes) {
      const GemmCase whole{70, 300, 100};
      const GemmOperands operands = operands_of(whole, dtype, DType::kF32);
      const HostMatrix expected = run(setup.ctx, setup.scratch, whole, operands, dtype);
      HostMatrix row(dtype, 1, 300);
      for (std::int64_t k = 0; k < 300; ++k) row.set(0, k, static_cast<float>(operands.a.at(67, k)));
      const HostMatrix alone =
          run(setup.ctx, setup.scratch, {1, 300, 100}, {row, operands.b, HostMatrix(DType::kF32, 1, 100)}, dtype);
      for (std::int64_t j = 0; j < 100; ++j) CHECK(alone.at(0, j) == expected.at(67, j));
    }
  }
}
