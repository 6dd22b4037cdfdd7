// Operands of products: packed copies, and what is refused.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <string>

#include "core/error.h"
#include "kernels/gemm/gemm.h"
#include "test/error_code.h"
#include "test/kernels/every_path.h"
#include "test/kernels/test_machine.h"

using namespace zerofleet;
using namespace zerofleet::test;

TEST_CASE("pack: both orientations and sources stacked in k give one operand") {
  for (const CpuIsa isa : available_isas()) {
    for (const DType dtype : kAllDTypes) {
      CAPTURE(name_of(isa));
      Machine machine(isa, 2);
      std::mt19937 random(3);
      HostMatrix source = HostMatrix::random(dtype, 77, 45, random, 5), transposed(dtype, 45, 77, 3);
      for (std::int64_t i = 0; i < 77; ++i) {
        for (std::int64_t j = 0; j < 45; ++j) transposed.set(j, i, static_cast<float>(source.at(i, j)));
      }
      PackedMatrix along_k(machine.ctx, dtype, 77, 45), along_n(machine.ctx, dtype, 77, 45),
          stacked(machine.ctx, dtype, 77, 45);
      const Matrix all = source.view();
      const Matrix rest{all.at(30, 0), dtype, 47, 45, all.stride};
      const std::array requests{PackRequest{all, SourceRows::kAlongK, &along_k},
                                PackRequest{transposed.view(), SourceRows::kAlongN, &along_n},
                                PackRequest{all.first_rows(30), SourceRows::kAlongK, &stacked},
                                PackRequest{rest, SourceRows::kAlongK, &stacked, 30}};
      pack(machine.ctx, requests);
      const std::size_t bytes = static_cast<std::size_t>(2 * along_k.panel_stride()) * sizeof(std::uint32_t);
      CHECK(std::memcmp(along_k.words(), along_n.words(), bytes) == 0);
      CHECK(std::memcmp(along_k.words(), stacked.words(), bytes) == 0);
    }
  }
}

TEST_CASE("gemm and pack refuse operands that do not fit") {
  Machine machine(best_cpu_isa(), 1);
  Scratch scratch(machine.ctx);
  HostMatrix a(DType::kF32, 4, 6), c(DType::kF32, 4, 5), a16(DType::kBF16, 4, 6);
  PackedMatrix b(machine.ctx, DType::kF32, 6, 5), other(machine.ctx, DType::kF32, 7, 5);
  const auto code_of = [&](const GemmProblem& problem, const Context& ctx) -> std::string {
    try {
      gemm(ctx, scratch, {&problem, 1});
    } catch (const Error& error) {
      return error.code();
    }
    return "none";
  };
  CHECK(code_of({a.view(), &b, c.view()}, machine.ctx) == "none");
  CHECK(code_of({a.view(), &other, c.view()}, machine.ctx) == "invalid_argument");
  CHECK(code_of({a16.view(), &b, c.view()}, machine.ctx) == "invalid_argument");
  CHECK(code_of({a.view(), &b, c.view().first_rows(3)}, machine.ctx) == "invalid_argument");
  CHECK(code_of({a.view(), nullptr, c.view()}, machine.ctx) == "invalid_argument");
  HostMatrix b_rows(DType::kF32, 6, 5), b_cols(DType::kF32, 5, 6), b16(DType::kBF16, 6, 5);
  const auto code_with = [&](const SourceOperand& source, const PackedMatrix* packed = nullptr,
                             bool transposed = false) {
    return code_of({a.view(), packed, c.view(), transposed, false, nullptr, &source}, machine.ctx);
  };
  CHECK(code_with({{b_rows.view()}, SourceRows::kAlongK}) == "none");
  CHECK(code_with({{b_cols.view()}, SourceRows::kAlongN}) == "none");
  CHECK(code_with({{b_cols.view()}, SourceRows::kAlongK}) == "invalid_argument");
  CHECK(code_with({{}, SourceRows::kAlongK}) == "invalid_argument");
  CHECK(code_with({{b16.view()}, SourceRows::kAlongK}) == "invalid_argument");
  CHECK(code_with({{b_rows.view()}, SourceRows::kAlongK}, &b) == "invalid_argument");
  CHECK(code_with({{b_rows.view().first_rows(3), b_rows.view().first_rows(3)}, SourceRows::kAlongK}) ==
        "invalid_argument");
  HostMatrix square(DType::kF32, 4, 4), square_c(DType::kF32, 4, 4);
  const SourceOperand whole{{square.view()}, SourceRows::kAlongK};
  CHECK(code_of({square.view(), nullptr, square_c.view(), true, false, nullptr, &whole}, machine.ctx) ==
        "invalid_argument");
  Context gpu = machine.ctx;
  gpu.device = absent_device();
  const SourceOperand rows{{b_rows.view()}, SourceRows::kAlongK};
  CHECK(code_of({a.view(), nullptr, c.view(), false, false, nullptr, &rows}, gpu) == "device_unavailable");
  const std::array too_far{PackRequest{a.view(), SourceRows::kAlongN, &b, 2}};
  CHECK_THROWS_AS(pack(machine.ctx, too_far), Error);
}

TEST_CASE("gemm refuses a factor beside something else, and long or divided sums that are added to 16 bits") {
  Machine machine(best_cpu_isa(), 1);
  Scratch scratch(machine.ctx);
  constexpr std::int64_t kDepth = kMaxAddedDepth + 2;
  HostMatrix a(DType::kF32, 2, kDepth), b(DType::kF32, kDepth, 3), c(DType::kF32, 2, 3), c16(DType::kBF16, 2, 3),
      bias(DType::kF32, 1, 3);
  const auto code = [&](std::int64_t k, bool in_parts, const Matrix& target, const auto& change) {
    SourceOperand source{{b.view().first_rows(k)}, SourceRows::kAlongK};
    if (in_parts) source.parts = {b.view().first_rows(2), {b.view().at(2, 0), DType::kF32, k - 2, 3, b.view().stride}};
    GemmProblem problem{a.view().columns(0, k), nullptr, target};
    problem.source = &source;
    change(problem);
    return zerofleet::test::code_of([&] { gemm(machine.ctx, scratch, {&problem, 1}); });
  };
  const auto adds = [](GemmProblem& problem) { problem.accumulate = true; };
  CHECK(code(kMaxAddedDepth, false, c16.view(), adds) == "none");
  CHECK(code(kDepth, false, c16.view(), adds) == "invalid_argument");
  CHECK(code(kDepth, false, c.view(), adds) == "none");
  CHECK(code(8, true, c16.view(), adds) == "invalid_argument");
  CHECK(code(8, true, c.view(), adds) == "none");
  CHECK(code(8, false, c.view(), [](GemmProblem& problem) { problem.alpha = 2; }) == "none");
  CHECK(code(8, false, c.view(), [&](GemmProblem& problem) { adds(problem), problem.alpha = 2; }) ==
        "invalid_argument");
  CHECK(code(8, false, c.view(), [&](GemmProblem& problem) {
          problem.alpha = 2;
          problem.bias = bias.view().data;
        }) == "invalid_argument");
}
