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

/// A (k, n) operand in the form that the device's matrix product reads fastest: on the CPU, panels of 32 columns in
/// k-major order, whose words are pairs of bf16 where the instruction-set path multiplies bf16, and fp32 elsewhere.
/// CUDA devices read sources as they lie: there it is only where they are, and they must stay what they are until the
/// last product.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  PackedMatrix(const Context& ctx, DType dtype, std::int64_t k, std::int64_t n);

  std::int64_t k() const { return k_; }
  std::int64_t n() const { return n_; }
  DType dtype() const { return dtype_; }
  bool pairs() const { return pairs_; }
  /// Type of the words: elements of the dtype where a product reads them as they are, else widened to fp32.
  DType word_dtype() const { return pairs_ ? DType::kBF16 : DType::kF32; }
  /// 4 · steps() · n rounded up to whole panels of 32: about 2 bytes per element with pairs, 4 without; 0 on CUDA devices.
  std::size_t num_bytes() const { return buffer_.num_bytes(); }
  std::int64_t steps() const { return pairs_ ? (k_ + 1) / 2 : k_; }
  /// Words from one panel to the next.
  std::int64_t panel_stride() const;
  std::uint32_t* words() { return reinterpret_cast<std::uint32_t*>(buffer_.data()); }
  const std::uint32_t* words() const { return reinterpret_cast<const std::uint32_t*>(buffer_.data()); }

  /// Unpacked parts of the operand, in rising k.
  struct Part {
    ConstMatrix source;
    SourceRows rows = SourceRows::kAlongK;
    std::int64_t k_begin = 0;
  };
  std::span<const Part> parts() const { return parts_; }
  /// Takes the place of a part with the same beginning.
  void set_part(const Part& part);

 private:
  DType dtype_ = DType::kF32;
  std::int64_t k_ = 0, n_ = 0;
  bool pairs_ = false;
  Buffer buffer_;
  std::vector<Part> parts_;
};

/// True where the operands of products in `dtype` are stored as pairs of bf16.
bool packs_pairs(const Context& ctx, DType dtype);

struct PackRequest {
  ConstMatrix source;  // (k, n) for kAlongK, (n, k) for kAlongN
  SourceRows rows = SourceRows::kAlongK;
  PackedMatrix* target = nullptr;
  std::int64_t k_begin = 0;  // where the source's k starts in the target; even
};

/// Packs every request, or on a CUDA device notes it. Sources have the targets' dtype; several may fill one target at different k.
/// Throws Error{"invalid_argument"} where shapes or types do not fit.
void pack(const Context& ctx, std::span<const PackRequest> requests);

}  // namespace zerofleet
