#include "kernels/gemm.h"

#include <string>

#include "core/error.h"
#include "kernels/cpu/launch.h"

namespace zerofleet {
namespace {

void check(const GemmProblem& problem) {
  require(problem.b != nullptr && problem.a.data != nullptr && problem.c.data != nullptr, "invalid_argument",
          "gemm: an operand is missing");
  const std::int64_t m = problem.a_transposed ? problem.a.cols : problem.a.rows;
  const std::int64_t k = problem.a_transposed ? problem.a.rows : problem.a.cols;
  require(k == problem.b->k() && m == problem.c.rows && problem.b->n() == problem.c.cols, "invalid_argument",
          "gemm: (" + std::to_string(m) + ", " + std::to_string(k) + ") by (" + std::to_string(problem.b->k()) + ", " +
              std::to_string(problem.b->n()) + ") into (" + std::to_string(problem.c.rows) + ", " +
              std::to_string(problem.c.cols) + ")");
  require(problem.a.dtype == problem.b->dtype(), "invalid_argument", "gemm: A and B differ in dtype");
  require(!problem.accumulate || problem.c.dtype == DType::kF32, "invalid_argument",
          "gemm: only an fp32 C can accumulate");
}

}  // namespace

void gemm(const Context& ctx, Scratch& scratch, std::span<const GemmProblem> problems) {
  for (const GemmProblem& problem : problems) check(problem);
  switch (ctx.device.kind) {
    case DeviceKind::kCpu: return cpu::gemm(ctx, scratch, problems);
    case DeviceKind::kCuda: break;
  }
  throw Error("device_unavailable", "no matrix product for " + to_string(ctx.device) + " in this build");
}

}  // namespace zerofleet
