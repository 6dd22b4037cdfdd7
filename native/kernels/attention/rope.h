#pragma once

#include <cstdint>
#include <span>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "kernels/attention/rope_frequencies.h"
#include "kernels/common/indices.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// Angles of rotary positions: position · frequency, as (cos, sin) in fp32, times the attention factor. Like the common
/// implementations, the frequency and the angle are each rounded to fp32 first, so that pretrained weights see the
/// angles that they were trained with. Computed by core/portable_math.h: the same bits on every machine.
class RopeTable {
 public:
  RopeTable(const Context& ctx, std::int64_t num_positions, std::int64_t head_dim, double theta,
            const RopeScaling& scaling = {});

  std::int64_t num_positions() const { return num_positions_; }
  std::int64_t head_dim() const { return head_dim_; }
  /// (num_positions, head_dim / 2), in memory of the context's device as are the sines
  std::span<const float> cosine() const { return cosine_.as<float>(); }
  std::span<const float> sine() const { return sine_.as<float>(); }
  /// 4 · num_positions · head_dim
  std::size_t num_bytes() const { return cosine_.num_bytes() + sine_.num_bytes(); }

 private:
  std::int64_t num_positions_;
  std::int64_t head_dim_;
  Buffer cosine_;
  Buffer sine_;
};

struct Rope {
  Matrix x;  // (M, num_heads · head_dim): heads side by side, rotated in place
  const RopeTable* table = nullptr;
  std::int64_t num_heads = 0;
  std::int64_t sequence_length = 0;  // without positions: a row's position is row mod sequence_length
  bool inverse = false;              // the transpose, which is the gradient: rotates back
  Indices positions = {};            // (M) of each row, or empty
};

/// Throws Error{"invalid_argument"} where shapes do not fit or a position is outside the table.
void rope(const Context& ctx, const Rope& args);

}  // namespace zerofleet
