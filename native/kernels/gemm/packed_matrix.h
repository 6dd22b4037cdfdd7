#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// Memory layout of a source.
enum class SourceRows : std::uint8_t { kAlongK, kAlongN };

/// Words of a CPU's packed bf16 operand on a path that does not multiply bf16. Products have the same bits.
enum class PackedWords : std::uint8_t {
  kFastest,   // fp32: for products that are bound by arithmetic
  kSmallest,  // pairs of bf16, which products widen, if k is even: for products that are bound by reading the operand
};

/// A (k, n) operand in the layout that the device's matrix product reads fastest.
///
/// On a CPU, panels of 32 columns in k-major order. Words are pairs of bf16 if the instruction-set path multiplies
/// bf16, otherwise by PackedWords. On CUDA it only refers to the sources, which must not change until the last product.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  PackedMatrix(const Context& ctx, DType dtype, std::int64_t k, std::int64_t n,
               PackedWords words = PackedWords::kFastest);

  /// Makes it an operand of another k; with kSmallest, k must be even. Its memory stays if that is enough.
  void set_k(const Context& ctx, std::int64_t k);

  std::int64_t k() const { return k_; }
  std::int64_t n() const { return n_; }
  DType dtype() const { return dtype_; }
  bool pairs() const { return pairs_; }
  /// Type of the words: bf16 if products read the elements directly, otherwise fp32.
  DType word_dtype() const { return pairs_ ? DType::kBF16 : DType::kF32; }
  /// 4 · steps() · n for the largest k so far, rounded up to whole panels of 32 columns: about 2 bytes per element with
  /// pairs, 4 without. 0 on CUDA devices.
  std::size_t num_bytes() const { return buffer_.num_bytes(); }
  std::int64_t steps() const { return pairs_ ? (k_ + 1) / 2 : k_; }
  /// Number of words from one panel to the next.
  std::int64_t panel_stride() const;
  std::uint32_t* words() { return reinterpret_cast<std::uint32_t*>(buffer_.data()); }
  const std::uint32_t* words() const { return reinterpret_cast<const std::uint32_t*>(buffer_.data()); }

  /// Sources of the operand, in ascending k.
  struct Part {
    ConstMatrix source;
    SourceRows rows = SourceRows::kAlongK;
    std::int64_t k_begin = 0;
  };
  std::span<const Part> parts() const { return parts_; }
  /// Adds a part. It replaces one with the same k_begin.
  void set_part(const Part& part);

 private:
  DType dtype_ = DType::kF32;
  std::int64_t k_ = 0, n_ = 0;
  bool pairs_ = false;
  Buffer buffer_;
  std::vector<Part> parts_;
};

/// True if products of `dtype` store their operands as pairs of bf16.
bool packs_pairs(const Context& ctx, DType dtype);

struct PackRequest {
  ConstMatrix source;  // (k, n) for kAlongK, (n, k) for kAlongN
  SourceRows rows = SourceRows::kAlongK;
  PackedMatrix* target = nullptr;
  std::int64_t k_begin = 0;  // first k of the source in the target; even
};

/// Packs every request; on a CUDA device, records its source. Sources have the dtype of their targets. Several sources
/// may fill one target at different k. Throws Error{"invalid_argument"} if shapes or types do not match.
void pack(const Context& ctx, std::span<const PackRequest> requests);

}  // namespace zerofleet
