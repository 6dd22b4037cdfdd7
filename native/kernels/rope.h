#pragma once

#include <cstdint>
#include <span>

#include "core/buffer.h"
#include "core/context.h"
#include "kernels/matrix.h"

namespace zerofleet {

/// Angles of rotary positions: position · theta^(-2i / head_dim), as (cos, sin) in fp32. Like the common
/// implementations, the frequency and the angle are each rounded to fp32 first, so that pretrained weights see the
/// angles that they were trained with. Computed without the C library: the same bits on every machine.
class RopeTable {
 public:
  RopeTable(const Context& ctx, std::int64_t num_positions, std::int64_t head_dim, double theta);

  std::int64_t num_positions() const { return num_positions_; }
  std::int64_t head_dim() const { return head_dim_; }
  std::span<const float> cosine() const { return cosine_.as<float>(); }  // (num_positions, head_dim / 2)
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
  std::int64_t sequence_length = 0;  // a row's position is row mod sequence_length
  bool inverse = false;              // rotate back, which is also the gradient
};

/// Throws Error{"invalid_argument"} where shapes do not fit.
void rope(const Context& ctx, const Rope& args);

}  // namespace zerofleet
