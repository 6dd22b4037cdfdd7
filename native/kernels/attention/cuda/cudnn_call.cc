#include "kernels/attention/cuda/cudnn_call.h"

#include <algorithm>

namespace zerofleet::cudnn {
namespace {

/// Before it, −∞ in scores was not supported; 9.10.0 and 9.10.1 had wrong backwards.
constexpr std::size_t kOldestVersion = 91002;
/// The last whose backward is wrong for sequences that are not a multiple of kWholeTile tokens, without a mask for
/// padding.
constexpr std::size_t kLastWithWholeTiles = 91500;
constexpr std::int64_t kWholeTile = 128;
/// The only ones whose backward is documented to add up dQ in a fixed order in the graph that is used: Hopper.
constexpr int kDeterministicMajor = 9;
constexpr std::int64_t kMostWidth = 256, kWidthUnit = 8;

GraphShape graph_shape(bool is_backward, const AttentionShape& shape, const AttentionOptions& options,
                       const ConstMatrix& qkv, const ConstMatrix& out) {
  return {is_backward,
          qkv.dtype,
          shape.batch,
          shape.num_heads,
          shape.num_kv_heads,
          shape.sequence_length,
          shape.head_dim,
          options.window,
          shape.score_scale(),
          shape.num_heads,
          qkv.stride,
          out.stride,
          0,
          0};
}

bool is_aligned(const void* data, std::int64_t stride) {
  return reinterpret_cast<std::uintptr_t>(data) % kMemoryAlignment == 0 && stride % kWidthUnit == 0;
}

/// The largest divisor of `count` that is at most `most`; 0: none is.
std::int64_t largest_divisor(std::int64_t count, std::int64_t most) {
  for (std::int64_t divisor = std::min(count, most); divisor > 0; --divisor) {
    if (count % divisor == 0) return divisor;
  }
  return 0;
}

std::string version_reason(const GraphShape& shape, const Facts& facts) {
  if (facts.version < kOldestVersion) return "versions before 9.10.2 are not used";
  if (!shape.is_backward) return "";
  if (facts.compute_major != kDeterministicMajor)
    return "on a GPU of compute capability " + std::to_string(facts.compute_major) +
           ".x no backward of a fixed order is known";
  if (facts.version <= kLastWithWholeTiles && shape.length % kWholeTile != 0)
    return "its backward needs sequences of a multiple of 128 tokens up to version 9.15.0";
  return "";
}

void* at(const void* data, DType dtype, std::int64_t element) {
  return static_cast<std::byte*>(const_cast<void*>(data)) + element * static_cast<std::int64_t>(size_of(dtype));
}

}  // namespace

Call call_of(const AttentionForward& args) {
  return {graph_shape(false, args.shape, args.options, args.qkv, args.out),
          args.options,
          args.qkv,
          args.out.data,
          args.lse.data(),
          {},
          {}};
}

Call call_of(const AttentionBackward& args) {
  Call call{graph_shape(true, args.shape, args.options, args.qkv, args.out),
            args.options,
            args.qkv,
            const_cast<void*>(args.out.data),
            const_cast<float*>(args.lse.data()),
            args.dout,
            args.dqkv};
  call.shape.dout_row = args.dout.stride;
  call.shape.dqkv_row = args.dqkv.stride;
  return call;
}

std::string reason_against(const Call& call, const Facts& facts) {
  const GraphShape& shape = call.shape;
  if (shape.dtype == DType::kF32) return "it takes no fp32";
  if (call.options.dropout > 0) return "its dropout would drop other elements";
  if (!call.options.document_starts.empty()) return "it does not know documents";
  if (shape.length == 1) return "it takes no sequences of one token";
  if (shape.head_dim % kWidthUnit != 0 || shape.head_dim > kMostWidth)
    return "heads must have a multiple of 8 columns, and up to 256";
  const bool aligned = is_aligned(call.qkv.data, shape.qkv_row) && is_aligned(call.out, shape.out_row) &&
                       is_aligned(call.dout.data, shape.dout_row) && is_aligned(call.dqkv.data, shape.dqkv_row) &&
                       is_aligned(call.lse, 0);
  if (!aligned) return "rows must begin at multiples of 16 bytes";
  return version_reason(shape, facts);
}

std::size_t max_workspace_bytes(const GraphShape& part) {
  constexpr std::int64_t kRest = 1 << 12;
  if (!part.is_backward) return kRest;
  const bool has_groups = part.heads > part.kv_heads;
  const std::int64_t of_heads = has_groups ? 4 * part.batch * part.heads * part.length * part.head_dim : 0;
  return static_cast<std::size_t>(score_bytes(part) + of_heads + kRest);
}

GraphShape part_of(const GraphShape& whole, std::int64_t max_score_bytes) {
  if (!whole.is_backward || score_bytes(whole) <= max_score_bytes) return whole;
  constexpr std::int64_t kStatsUnit = kMemoryAlignment / static_cast<std::int64_t>(sizeof(float));
  if (whole.length % kStatsUnit != 0) throw Refusal("parts of a call need sequences of a multiple of 4 tokens");
  GraphShape part = whole;
  part.batch = 1;
  const std::int64_t sequences = largest_divisor(whole.batch, max_score_bytes / score_bytes(part));
  if (sequences > 0) {
    part.batch = sequences;
    return part;
  }
  part.kv_heads = 1;
  part.heads = whole.heads / whole.kv_heads;
  const std::int64_t key_heads = largest_divisor(whole.kv_heads, max_score_bytes / score_bytes(part));
  if (key_heads == 0) throw Refusal("scores of a key head need " + std::to_string(score_bytes(part)) + " bytes");
  part.kv_heads *= key_heads;
  part.heads *= key_heads;
  return part;
}

std::vector<Operands> parts_of(const Call& call, const GraphShape& part) {
  const GraphShape& s = call.shape;
  const std::int64_t group = s.heads / s.kv_heads;
  std::vector<Operands> parts;
  for (std::int64_t sequence = 0; sequence < s.batch; sequence += part.batch) {
    for (std::int64_t key_head = 0; key_head < s.kv_heads; key_head += part.kv_heads) {
      const std::int64_t row = sequence * s.length, head = key_head * group;
      const auto column_of = [&](std::int64_t first) { return first * s.head_dim; };
      const std::int64_t query = column_of(head), key = column_of(s.heads + key_head),
                         value = column_of(s.heads + s.kv_heads + key_head);
      Operands operands{{kQuery, at(call.qkv.data, s.dtype, row * s.qkv_row + query)},
                        {kKey, at(call.qkv.data, s.dtype, row * s.qkv_row + key)},
                        {kValue, at(call.qkv.data, s.dtype, row * s.qkv_row + value)},
                        {kOut, at(call.out, s.dtype, row * s.out_row + query)},
                        {kStats, call.lse + (sequence * s.heads + head) * s.length}};
      if (s.is_backward) {
        operands.emplace_back(kOutGradient, at(call.dout.data, s.dtype, row * s.dout_row + query));
        operands.emplace_back(kQueryGradient, at(call.dqkv.data, s.dtype, row * s.dqkv_row + query));
        operands.emplace_back(kKeyGradient, at(call.dqkv.data, s.dtype, row * s.dqkv_row + key));
        operands.emplace_back(kValueGradient, at(call.dqkv.data, s.dtype, row * s.dqkv_row + value));
      }
      parts.push_back(std::move(operands));
    }
  }
  return parts;
}

}  // namespace zerofleet::cudnn
