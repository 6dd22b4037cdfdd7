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
///
/// With longrope a sequence's length decides the frequencies of all its positions.
class RopeTable {
 public:
  /// kLongest: all sequences use the frequencies of the longest one, so the table has a row for each position. kOwn:
  /// each sequence uses the frequencies of its own length. The rows of long sequences follow the rows of short ones.
  enum class Lengths : std::uint8_t { kLongest, kOwn };

  /// num_positions: length of the longest sequence. rotary_dim: elements of a head that are rotated.
  RopeTable(const Context& ctx, std::int64_t num_positions, std::int64_t rotary_dim, double theta,
            const RopeScaling& scaling = {}, Lengths lengths = Lengths::kLongest);

  std::int64_t num_rows() const { return num_rows_; }
  std::int64_t rotary_dim() const { return rotary_dim_; }
  /// The row of position 0 in a sequence of `length` tokens.
  std::int64_t first_row(std::int64_t length) const { return length > num_short_ ? num_short_ : 0; }
  /// (num_rows, rotary_dim / 2), in memory of the context's device as are the sines
  std::span<const float> cosine() const { return cosine_.as<float>(); }
  std::span<const float> sine() const { return sine_.as<float>(); }
  /// 4 · num_rows · rotary_dim
  std::size_t num_bytes() const { return cosine_.num_bytes() + sine_.num_bytes(); }

 private:
  std::int64_t rotary_dim_;
  std::int64_t num_short_ = 0;  // rows for short sequences, where others stand behind them
  std::int64_t num_rows_;
  Buffer cosine_;
  Buffer sine_;
};

struct Rope {
  Matrix
      x;  // (M, num_heads · head_dim): heads side by side; the first rotary_dim elements of each are rotated in place
  const RopeTable* table = nullptr;
  std::int64_t num_heads = 0;
  std::int64_t sequence_length = 0;  // without positions: a row's position is row mod sequence_length
  bool inverse = false;              // the transpose, which is the gradient: rotates back
  Indices positions = {};            // (M) the table's row for each row, or empty
  bool interleaved = false;          // elements 2i and 2i + 1 are a pair; else element i of both halves
};

/// Throws Error{"invalid_argument"} where shapes do not fit or a position is outside the table.
void rope(const Context& ctx, const Rope& args);

}  // namespace zerofleet
