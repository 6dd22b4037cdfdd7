#include "kernels/attention/cached_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/attention/cpu/launch.h"
#include "kernels/attention/simd/cached_attention.h"
#include "kernels/common/cpu/isa_dispatch.h"

// A task does one query of one head, so every query is computed alone.
namespace zerofleet::cpu {
namespace {

struct QueryAreas {
  QueryAreas(Carver& carver, const CachedAttention& args)
      : probs(carver.take<float>(args.keys.rows)), sums(carver.take<float>(args.shape.head_dim)) {}

  float* probs;  // (C)
  float* sums;   // (head_dim)
};

void append(const CachedAttention& args, const Matrix& cache, std::int64_t col) {
  const auto num_bytes = static_cast<std::size_t>(cache.cols) * size_of(cache.dtype);
  for (std::int64_t row = 0; row < args.shape.sequence_length; ++row) {
    std::memcpy(cache.at(args.first + row, 0), args.qkv.at(row, col), num_bytes);
  }
}

CachedQueryArgs query_of(const CachedAttention& args, std::int64_t row, std::int64_t head) {
  const AttentionShape& s = args.shape;
  const std::int64_t end = args.first + row + 1;
  const std::int64_t begin = args.window > 0 ? std::max<std::int64_t>(0, end - args.window) : 0;
  const std::int64_t key_col = head / (s.num_heads / s.num_kv_heads) * s.head_dim;
  CachedQueryArgs query;
  query.query = args.qkv.at(row, head * s.head_dim);
  query.keys = args.keys.at(begin, key_col);
  query.values = args.values.at(begin, key_col);
  query.stride = args.keys.stride;
  query.num_keys = end - begin;
  query.head_dim = s.head_dim;
  query.scale = 1.0F / std::sqrt(static_cast<float>(s.head_dim));
  query.out = args.out.at(row, head * s.head_dim);
  query.dtype = args.qkv.dtype;
  return query;
}

}  // namespace

void cached_attention(const Context& ctx, Scratch& scratch, const CachedAttention& args) {
  const AttentionShape& s = args.shape;
  append(args, args.keys, s.query_size());
  append(args, args.values, s.query_size() + args.keys.cols);
  Carver measure;
  const QueryAreas measured(measure, args);
  scratch.reserve(measure.used());
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, cached_query);
  ctx.pool->parallel_for(s.sequence_length * s.num_heads, [&](std::int64_t task, int worker) {
    Carver carver(scratch.of(worker));
    const QueryAreas areas(carver, args);
    CachedQueryArgs query = query_of(args, task % s.sequence_length, task / s.sequence_length);
    query.probs = areas.probs;
    query.sums = areas.sums;
    kernel(query);
  });
}

}  // namespace zerofleet::cpu
