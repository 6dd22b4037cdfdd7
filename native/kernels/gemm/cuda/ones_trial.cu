#include <algorithm>
#include <limits>
#include <optional>

#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/vec4.h"
#include "kernels/gemm/cuda/ones_trial.h"

namespace zerofleet::cuda {
namespace {

constexpr std::int64_t kLastOnes = 64;        // at the end of k
constexpr std::int64_t kOtherOnes = 128;      // spread over k; bf16 has whole numbers up to 256
constexpr std::int64_t kFloatOnes = 1 << 22;  // fp32 up to 2^24
/// GELU by tanh of it is itself, and the slope there 1, in every type: tanh is 1.
constexpr float kLinearInput = 8;

using EpilogueKind = GemmEpilogue::Kind;

/// A matrix and what its elements become.
struct Fill {
  std::byte* data;
  DType dtype;
  std::int64_t numel, cols, stride;  // numel: with what lies between rows
  float value;
  bool between_rows;        // becomes NaNs, or stays
  bool has_ones, k_is_row;  // has_ones: `value` at some k alone, else zero
  std::int64_t k, step;
};

__global__ void __launch_bounds__(kFlatThreads) fill_kernel(const Fill f) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kFlatThreads + threadIdx.x;
  if (index >= f.numel) return;
  const std::int64_t row = index / f.stride, col = index % f.stride, k = f.k_is_row ? row : col;
  if (col >= f.cols && !f.between_rows) return;
  const bool counts = !f.has_ones || k % f.step == 0 || k >= f.k - kLastOnes;
  const float value = col >= f.cols ? NAN : counts ? f.value : 0.0F;
  store4(f.data, f.dtype, {index, 1, false}, Vec4{{value, 0, 0, 0}});
}

void fill(const Context& ctx, Fill f) {
  if (f.numel > 0)
    launch("gemm", stream_of(ctx), {num_blocks_for(f.numel, kFlatThreads), kFlatThreads}, fill_kernel, f);
}

Fill filled_with(float value, const Matrix& m, bool between_rows) {
  return {static_cast<std::byte*>(m.data),
          m.dtype,
          m.rows * m.stride,
          m.cols,
          m.stride,
          value,
          between_rows,
          false,
          false,
          0,
          1};
}

struct Comparison {
  const std::byte* data;
  DType dtype;
  std::int64_t numel, cols, stride;
  float expected;
  int* differs;
};

/// All threads that find another value write the same.
__global__ void __launch_bounds__(kFlatThreads) comparison_kernel(const Comparison c) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kFlatThreads + threadIdx.x;
  if (index >= c.numel) return;
  const std::int64_t at = index / c.cols * c.stride + index % c.cols;
  if (!(load4(c.data, c.dtype, {at, 1, false}).v[0] == c.expected)) *c.differs = 1;
}

void compare(const Context& ctx, const Matrix& m, float expected, int* differs) {
  const Comparison c{
      static_cast<const std::byte*>(m.data), m.dtype, m.rows * m.cols, m.cols, m.stride, expected, differs};
  launch("gemm", stream_of(ctx), {num_blocks_for(c.numel, kFlatThreads), kFlatThreads}, comparison_kernel, c);
}

std::int64_t step_of(DType c_dtype, std::int64_t k) {
  const std::int64_t most = c_dtype == DType::kF32 ? kFloatOnes : kOtherOnes;
  return (k + most - 1) / most;
}

/// Ones at multiples of `step`, and at the last kLastOnes.
std::int64_t num_ones(std::int64_t k, std::int64_t step) {
  const std::int64_t last = std::min(k, kLastOnes), others = k - last;
  return last + (others + step - 1) / step;
}

}  // namespace

struct OnesTrial::Operands {
  /// Memory for a matrix of the shape, stride and alignment of another one. The runtime's memory begins at multiples of
  /// 256.
  class Twin {
   public:
    Twin(const Context& ctx, const ConstMatrix& original)
        : memory_(ctx, static_cast<std::size_t>(original.rows * original.stride) * size_of(original.dtype) + 256),
          view_{memory_.data() + alignment_of(original.data, 0, original.dtype), original.dtype, original.rows,
                original.cols, original.stride} {}

    const Matrix& view() const { return view_; }

   private:
    Temporary<std::byte> memory_;
    Matrix view_;
  };

  Operands(const Context& ctx, const Matmul& given) : a(ctx, given.a), b(ctx, given.b) {}

  Twin a, b;
  std::optional<Twin> c, bias, inner;
};

OnesTrial::OnesTrial(const Context& ctx, const Matmul& given, std::int64_t k)
    : ctx_(ctx), product_(given), operands_(std::make_unique<Operands>(ctx, given)) {
  product_.alpha = 1;
  auto& [a, b, c, bias, inner] = *operands_;
  const std::int64_t step = step_of(given.c.dtype, k);
  Fill ones_of_a = filled_with(1, a.view(), true);
  ones_of_a.has_ones = true;
  ones_of_a.k_is_row = given.a_transposed;
  ones_of_a.k = k;
  ones_of_a.step = step;
  fill(ctx, ones_of_a);
  fill(ctx, filled_with(1, b.view(), true));
  product_.a = a.view();
  product_.b = b.view();
  expected_ = static_cast<float>(num_ones(k, step));
  if (given.bias != nullptr) {
    bias.emplace(ctx, ConstMatrix{given.bias, given.c.dtype, 1, given.c.cols, given.c.cols});
    fill(ctx, filled_with(1, bias->view(), true));
    product_.bias = bias->view().data;
    ++expected_;
  }
  expected_inner_ = expected_;
  if (given.accumulate) {
    product_.c = c.emplace(ctx, given.c).view();
    ++expected_;
  }
  if (given.epilogue.kind == EpilogueKind::kGeluBackward) {
    product_.epilogue.inner = inner.emplace(ctx, given.epilogue.inner).view();
    fill(ctx, filled_with(kLinearInput, inner->view(), true));
  }
}

OnesTrial::~OnesTrial() = default;

void OnesTrial::prepare() {
  constexpr float kUnwritten = std::numeric_limits<float>::quiet_NaN();
  fill(ctx_, filled_with(product_.accumulate ? 1.0F : kUnwritten, product_.c, false));
  if (product_.epilogue.kind == EpilogueKind::kGelu)
    fill(ctx_, filled_with(kUnwritten, product_.epilogue.inner, false));
}

bool OnesTrial::is_right() {
  Results<int> differs(ctx_, 1);
  check(cudaMemsetAsync(differs.data(), 0, sizeof(int), stream_of(ctx_).handle()), "clearing memory");
  compare(ctx_, product_.c, expected_, differs.data());
  if (product_.epilogue.kind == EpilogueKind::kGelu)
    compare(ctx_, product_.epilogue.inner, expected_inner_, differs.data());
  return differs.fetch().front() == 0;
}

}  // namespace zerofleet::cuda
