// Matrix products by cuBLASLt. The plain kernel computes products that cuBLASLt does not support, or all without it.
// The tile kernel computes products whose shapes vary between calls.
#include "kernels/gemm/gemm.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/device/context.h"
#include "core/device/transfer.h"
#include "kernels/gemm/cuda/divided_products.h"
#include "kernels/gemm/cuda/matmuls.h"
#include "kernels/gemm/cuda/plain_gemm.h"
#include "kernels/gemm/cuda/restored_problem.h"
#include "kernels/gemm/cuda/tile_gemm.h"

namespace zerofleet::cuda {
namespace {

struct GemmState final : KernelState {
  explicit GemmState(const Context& ctx) : matmuls(ctx, cublaslt::open_default_library()) {}

  /// Room for the fp32 sums of a product. It is made anew when it must grow, after all that uses the old one.
  Matrix sums_for(const Context& ctx, const Matrix& c) {
    const auto num_bytes = static_cast<std::size_t>(c.rows * c.cols) * sizeof(float);
    if (sums.num_bytes() < num_bytes) {
      synchronize(ctx);
      sums = Buffer();
      sums = Buffer(ctx.device, num_bytes);
    }
    return {sums.data(), DType::kF32, c.rows, c.cols, c.cols};
  }

  Matmuls matmuls;
  Buffer sums;
};

GemmState& state_in(Scratch& scratch, const Context& ctx) {
  return scratch.state<GemmState>([&] { return std::make_unique<GemmState>(ctx); });
}

bool by_library(const Context& ctx, GemmState& state, const GemmProblem& problem, const RightOperand& right) {
  const DividedProducts products(problem, right);
  // Parts are added in fp32, so that C is rounded once. With a transposed A they would be rows of A, which no caller
  // needs.
  if (products.are_in_parts() && problem.a_transposed) return false;
  const bool apart = products.are_in_parts() && problem.c.dtype != DType::kF32;
  const Matrix c = apart ? state.sums_for(ctx, problem.c) : problem.c;
  const std::vector<Matmul> matmuls = products.into(c);
  for (const Matmul& matmul : matmuls) {
    if (!state.matmuls.can_run(matmul)) return false;
  }
  for (const Matmul& matmul : matmuls) state.matmuls.run(matmul);
  if (apart) round_sums(ctx, c, problem.bias, problem.c);
  return true;
}

}  // namespace

/// Products read operands where they are: it only notes where that is.
void pack(const Context&, std::span<const PackRequest> requests) {
  for (const PackRequest& request : requests) request.target->set_part({request.source, request.rows, request.k_begin});
}

void gemm(const Context& ctx, Scratch& scratch, std::span<const GemmProblem> problems) {
  GemmState& state = state_in(scratch, ctx);
  std::vector<TileProduct> tiled;
  for (const GemmProblem& problem : problems) {
    if (is_quantized(problem)) {
      const RestoredProblem restored(ctx, problem);
      cuda::gemm(ctx, scratch, {&restored.problem(), 1});
      continue;
    }
    TileProduct product{&problem, right_operand(problem)};
    const bool is_part = problem.row_range != nullptr;  // how large a part, only the device knows
    if ((problem.varies || is_part) && can_tile(product)) {
      tiled.push_back(std::move(product));
    } else if (is_part || !by_library(ctx, state, problem, product.right)) {
      plain_gemm(ctx, problem, product.right);
    }
  }
  if (!tiled.empty()) tile_gemm(ctx, tiled);
}

// The plain kernel has no epilogue: without tensor cores it is so slow that GELU's second read does not count.
bool gemm_with_epilogue(const Context& ctx, Scratch& scratch, const GemmProblem& problem) {
  if (is_quantized(problem)) return gemm_with_epilogue(ctx, scratch, RestoredProblem(ctx, problem).problem());
  const RightOperand right = right_operand(problem);
  if (problem.varies || right.parts.size() != 1) return false;
  const Matmul matmul = whole_product(problem, right);
  Matmuls& matmuls = state_in(scratch, ctx).matmuls;
  if (!matmuls.can_run(matmul)) return false;
  matmuls.run(matmul);
  return true;
}

}  // namespace zerofleet::cuda
