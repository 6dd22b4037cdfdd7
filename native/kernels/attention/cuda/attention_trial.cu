#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "core/portable_math.h"
#include "kernels/attention/cuda/attention_trial.h"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/vec4.h"

namespace zerofleet::cudnn {
namespace {

using cuda::kFlatThreads;
using cuda::launch;
using cuda::num_blocks_for;
using cuda::Results;
using cuda::Temporary;

/// Roundings of 16-bit probabilities and of what is added up of them stay below it, a missing tile of keys does not.
constexpr float kTolerance = 1.0F / 32;
constexpr float kStatsTolerance = 1.0F / 1024;

/// A matrix and the value of its elements; NaN between rows, or what was there.
struct Fill {
  std::byte* data;
  DType dtype;
  std::int64_t numel, cols, stride;
  float value;
  bool between_rows;
};

__global__ void __launch_bounds__(kFlatThreads) attention_fill_kernel(const Fill f) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kFlatThreads + threadIdx.x;
  if (index >= f.numel) return;
  const bool is_element = index % f.stride < f.cols;
  if (!is_element && !f.between_rows) return;
  cuda::store4(f.data, f.dtype, {index, 1, false}, cuda::Vec4{{is_element ? f.value : NAN, 0, 0, 0}});
}

void fill(const Context& ctx, const Matrix& m, float value, bool between_rows) {
  const Fill f{static_cast<std::byte*>(m.data), m.dtype, m.rows * m.stride, m.cols, m.stride, value, between_rows};
  launch("attention", stream_of(ctx), {num_blocks_for(f.numel, kFlatThreads), kFlatThreads}, attention_fill_kernel, f);
}

/// Columns up to `end` of a matrix, which are `value` times what belongs to the token of their row.
struct Section {
  std::int64_t end;
  float value;
  bool by_token;
};

struct AttentionComparison {
  const std::byte* data;
  DType dtype;
  std::int64_t numel, cols, stride, length;
  Section sections[3];
  const float* of_token;  // (T)
  int* differs;
};

/// All threads that find another value write the same.
__global__ void __launch_bounds__(kFlatThreads) attention_comparison_kernel(const AttentionComparison c) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kFlatThreads + threadIdx.x;
  if (index >= c.numel) return;
  const std::int64_t row = index / c.cols, col = index % c.cols;
  const int which = col < c.sections[0].end ? 0 : col < c.sections[1].end ? 1 : 2;
  const Section section = which == 0 ? c.sections[0] : which == 1 ? c.sections[1] : c.sections[2];
  const float expected = section.value * (section.by_token ? c.of_token[row % c.length] : 1.0F);
  const float value = cuda::load4(c.data, c.dtype, {row * c.stride + col, 1, false}).v[0];
  if (!(fabsf(value - expected) <= kTolerance * expected)) *c.differs = 1;
}

struct StatsComparison {
  const float* stats;  // (B, H, T)
  std::int64_t numel, length;
  const float* expected;  // (T)
  int* differs;
};

__global__ void __launch_bounds__(kFlatThreads) stats_comparison_kernel(const StatsComparison c) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kFlatThreads + threadIdx.x;
  if (index >= c.numel) return;
  if (!(fabsf(c.stats[index] - c.expected[index % c.length]) <= kStatsTolerance)) *c.differs = 1;
}

/// 1/n of each query.
std::vector<double> shares(const GraphShape& shape) {
  const std::int64_t most = shape.window == 0 ? shape.length : std::min(shape.window, shape.length);
  std::vector<double> values;
  for (std::int64_t query = 0; query < shape.length; ++query)
    values.push_back(1.0 / static_cast<double>(std::min(query + 1, most)));
  return values;
}

/// The scaled score of a query and a key of ones.
double score_of_ones(const GraphShape& shape) {
  return static_cast<double>(shape.head_dim) * static_cast<double>(shape.scale);
}

std::vector<float> expected_stats(const GraphShape& shape) {
  std::vector<float> values;
  for (const double share : shares(shape))
    values.push_back(static_cast<float>(score_of_ones(shape) - portable::log(share)));
  return values;
}

/// H of each key: from the last on, the shares of the queries of its window.
std::vector<float> share_sums(const GraphShape& shape) {
  const std::vector<double> share = shares(shape);
  const std::int64_t window = shape.window == 0 ? shape.length : shape.window;
  std::vector<float> sums(share.size());
  double sum = 0;
  for (std::int64_t key = shape.length - 1; key >= 0; --key) {
    sum += share[static_cast<std::size_t>(key)];
    if (key + window < shape.length) sum -= share[static_cast<std::size_t>(key + window)];
    sums[static_cast<std::size_t>(key)] = static_cast<float>(sum);
  }
  return sums;
}

std::int64_t query_cols(const GraphShape& shape) { return shape.heads * shape.head_dim; }
std::int64_t key_cols(const GraphShape& shape) { return shape.kv_heads * shape.head_dim; }

}  // namespace

struct AttentionTrial::Operands {
  /// A matrix with rows like those of another one.
  class Twin {
   public:
    Twin(const Context& ctx, const GraphShape& shape, std::int64_t cols, std::int64_t row, float value)
        : memory_(ctx, static_cast<std::size_t>(shape.batch * shape.length * row) * size_of(shape.dtype)),
          view_{memory_.data(), shape.dtype, shape.batch * shape.length, cols, row} {
      fill(ctx, view_, value, true);
    }
    const Matrix& view() const { return view_; }

   private:
    Temporary<std::byte> memory_;
    Matrix view_;
  };

  Operands(const Context& ctx, const GraphShape& shape)
      : qkv(ctx, shape, query_cols(shape) + 2 * key_cols(shape), shape.qkv_row, 1),
        of_token(ctx, static_cast<std::size_t>(shape.length)) {}

  /// Copies what belongs to each token; the copies wait for each other and for the kernels that read.
  void set_of_token(const Context& ctx, const std::vector<float>& values) {
    copy_bytes(ctx, {reinterpret_cast<std::byte*>(of_token.data()), values.size() * sizeof(float)}, ctx.device,
               std::as_bytes(std::span(values)), Device{});
  }

  Twin qkv;
  Temporary<float> of_token;
  std::optional<Twin> out, dout;
  std::optional<Temporary<float>> stats;
};

AttentionTrial::AttentionTrial(const Context& ctx, const Call& given)
    : ctx_(ctx), call_(given), operands_(std::make_unique<Operands>(ctx, given.shape)) {
  const GraphShape& shape = given.shape;
  call_.qkv = operands_->qkv.view();
  if (!shape.is_backward) {
    operands_->set_of_token(ctx, expected_stats(shape));
    return;
  }
  call_.out = operands_->out.emplace(ctx, shape, query_cols(shape), shape.out_row, 0.0F).view().data;
  call_.dout = operands_->dout.emplace(ctx, shape, query_cols(shape), shape.dout_row, 1.0F).view();
  std::vector<float> stats;
  const std::vector<float> of_row = expected_stats(shape);
  for (std::int64_t row = 0; row < shape.batch * shape.heads; ++row)
    stats.insert(stats.end(), of_row.begin(), of_row.end());
  call_.lse = operands_->stats.emplace(ctx, stats.size()).data();
  copy_bytes(ctx, {reinterpret_cast<std::byte*>(call_.lse), stats.size() * sizeof(float)}, ctx.device,
             std::as_bytes(std::span(stats)), Device{});
  operands_->set_of_token(ctx, share_sums(shape));
}

AttentionTrial::~AttentionTrial() = default;

void AttentionTrial::prepare() {
  constexpr float kUnwritten = std::numeric_limits<float>::quiet_NaN();
  const GraphShape& s = call_.shape;
  if (s.is_backward) return fill(ctx_, call_.dqkv, kUnwritten, false);
  const std::int64_t rows = s.batch * s.length, num_stats = rows * s.heads;
  fill(ctx_, {call_.out, s.dtype, rows, query_cols(s), s.out_row}, kUnwritten, false);
  fill(ctx_, {call_.lse, DType::kF32, 1, num_stats, num_stats}, kUnwritten, false);
}

bool AttentionTrial::is_right() {
  const GraphShape& s = call_.shape;
  Results<int> differs(ctx_, 1);
  cuda::check(cudaMemsetAsync(differs.data(), 0, sizeof(int), stream_of(ctx_).handle()), "clearing memory");
  const std::int64_t rows = s.batch * s.length, queries = query_cols(s),
                     cols = queries + (s.is_backward ? 2 * key_cols(s) : 0);
  const float root = static_cast<float>(score_of_ones(s)), group = static_cast<float>(s.heads / s.kv_heads);
  const AttentionComparison c{
      static_cast<const std::byte*>(s.is_backward ? call_.dqkv.data : call_.out),
      s.dtype,
      rows * cols,
      cols,
      s.is_backward ? s.dqkv_row : s.out_row,
      s.length,
      {{queries, s.is_backward ? root : 1.0F, false}, {queries + key_cols(s), group * root, true}, {cols, group, true}},
      operands_->of_token.data(),
      differs.data()};
  const Stream& stream = stream_of(ctx_);
  launch("attention", stream, {num_blocks_for(c.numel, kFlatThreads), kFlatThreads}, attention_comparison_kernel, c);
  if (!s.is_backward) {
    const StatsComparison stats{call_.lse, rows * s.heads, s.length, operands_->of_token.data(), differs.data()};
    launch("attention", stream, {num_blocks_for(stats.numel, kFlatThreads), kFlatThreads}, stats_comparison_kernel,
           stats);
  }
  return differs.fetch().front() == 0;
}

}  // namespace zerofleet::cudnn
