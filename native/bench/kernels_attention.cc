// Attention, rotations and the norm of query and key heads.
#include "bench/kernel_bench.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/rope.h"
#include "kernels/norm/head_norm.h"

namespace zerofleet::bench {
namespace {

AttentionShape shape_of(const KernelBench& bench) {
  const ModelConfig& c = bench.config;
  return {bench.shape.batch, bench.shape.length, c.num_attention_heads, c.num_key_value_heads, c.head_dim};
}

/// Operations of `products` products over head_dim for each visible pair of a query and a key.
double operations(const KernelBench& bench, int products) {
  const auto length = static_cast<double>(bench.shape.length);
  const double pairs =
      static_cast<double>(bench.shape.batch * bench.config.num_attention_heads) * length * (length + 1) / 2;
  return 2.0 * products * static_cast<double>(bench.config.head_dim) * pairs;
}

std::string text_of(const KernelBench& bench) {
  const ModelConfig& c = bench.config;
  return shape_text({bench.shape.batch, bench.shape.length, c.num_attention_heads, c.head_dim});
}

std::span<float> lse_of(KernelBench& bench) {
  return bench.random_floats(bench.rows() * bench.config.num_attention_heads);
}

KernelCase forward(KernelBench& bench) {
  const ModelConfig& c = bench.config;
  const AttentionForward args{shape_of(bench), bench.random(bench.rows(), c.qkv_size()),
                              bench.random(bench.rows(), c.query_size()), lse_of(bench)};
  KernelCase made{text_of(bench), operations(bench, 2)};
  made.bytes = bench.element() * static_cast<double>(bench.rows() * (c.qkv_size() + c.query_size()));
  made.run = [&bench, args] { attention(bench.ctx, bench.scratch, args); };
  made.results = {args.out};
  return made;
}

KernelCase backward(KernelBench& bench) {
  const ModelConfig& c = bench.config;
  const AttentionForward before{shape_of(bench), bench.random(bench.rows(), c.qkv_size()),
                                bench.random(bench.rows(), c.query_size()), lse_of(bench)};
  if (bench.has_operands()) attention(bench.ctx, bench.scratch, before);  // `lse` and `out` have to fit
  const AttentionBackward args{before.shape,
                               before.qkv,
                               before.out,
                               before.lse,
                               bench.random(bench.rows(), c.query_size()),
                               bench.random(bench.rows(), c.qkv_size())};
  KernelCase made{text_of(bench), operations(bench, 5)};
  made.bytes = bench.element() * static_cast<double>(bench.rows() * 2 * (c.qkv_size() + c.query_size()));
  made.run = [&bench, args] { attention_backward(bench.ctx, bench.scratch, args); };
  made.results = {args.dqkv};
  return made;
}

/// Queries and keys, within rows that have the values behind them.
KernelCase rotation(KernelBench& bench) {
  const ModelConfig& c = bench.config;
  const RopeTable& table = bench.keep(RopeTable(bench.ctx, bench.shape.length, c.head_dim, 10'000.0));
  const std::int64_t columns = c.query_size() + c.key_value_size();
  const Matrix x = bench.random(bench.rows(), c.qkv_size()).columns(0, columns);
  KernelCase made{shape_text({bench.rows(), columns})};
  made.bytes = bench.element() * 2.0 * static_cast<double>(bench.rows() * columns);
  made.in_place = true;
  made.run = [&bench, &table, x] {
    rope(bench.ctx, {x, &table, x.cols / bench.config.head_dim, bench.shape.length, false, {}});
  };
  made.results = {x};
  return made;
}

KernelCase head_norm_forward(KernelBench& bench) {
  const ModelConfig& c = bench.config;
  const HeadNormForward args{bench.random(bench.rows(), c.query_size()),
                             bench.random(1, c.head_dim).data,
                             c.head_dim,
                             1e-6,
                             bench.random(bench.rows(), c.query_size()),
                             lse_of(bench)};
  KernelCase made{shape_text({bench.rows(), c.num_attention_heads, c.head_dim})};
  made.bytes = bench.element() * 2.0 * static_cast<double>(bench.rows() * c.query_size());
  made.run = [&bench, args] { head_norm(bench.ctx, args); };
  made.results = {args.y};
  return made;
}

KernelCase head_norm_backward(KernelBench& bench) {
  const ModelConfig& c = bench.config;
  const auto matrix = [&] { return bench.random(bench.rows(), c.query_size()); };
  const HeadNormBackward args{matrix(),      matrix(), bench.random(1, c.head_dim).data, c.head_dim,
                              lse_of(bench), matrix(), bench.random_floats(c.head_dim)};
  KernelCase made{shape_text({bench.rows(), c.num_attention_heads, c.head_dim})};
  made.bytes = bench.element() * 3.0 * static_cast<double>(bench.rows() * c.query_size());
  made.run = [&bench, args] { zerofleet::head_norm_backward(bench.ctx, args); };
  made.results = {args.dx, as_row(args.dweight)};
  return made;
}

constexpr KernelEntry kAttentionKernels[] = {
    {"attention.forward", forward},           {"attention.backward", backward},           {"rope", rotation},
    {"head_norm.forward", head_norm_forward}, {"head_norm.backward", head_norm_backward},
};

}  // namespace

std::span<const KernelEntry> attention_kernels() { return kAttentionKernels; }

}  // namespace zerofleet::bench
