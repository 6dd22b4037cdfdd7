#include "kernels/gemm/packed_codes.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "kernels/common/backend.h"
#include "kernels/gemm/simd/codes.h"
#include "kernels/quantize/formulas/blocks.h"

namespace zerofleet {
namespace {

constexpr int kHalfBlock = kQuantBlock / 2;

/// Blocks of a matrix by the k and n of its elements.
struct CodeSource {
  ConstQuantBlocks blocks;
  bool along_k;

  std::int64_t block_at(std::int64_t k, std::int64_t n) const {
    const std::int64_t row = along_k ? k : n, col = along_k ? n : k;
    return row * quant_blocks_of_row(blocks.cols) + col / kQuantBlock;
  }
  float scale(std::int64_t k, std::int64_t n) const { return scale_at(blocks, block_at(k, n)); }
  unsigned code(std::int64_t k, std::int64_t n) const {
    const std::uint8_t* codes = blocks.codes + block_at(k, n) * code_bytes_of_block(blocks.format);
    const std::int64_t i = (along_k ? n : k) % kQuantBlock;
    if (blocks.format == QuantFormat::kInt8) return codes[i];
    return codes[i % kHalfBlock] >> (i < kHalfBlock ? 0 : 4) & 15U;
  }
  unsigned zero_code() const { return blocks.format == QuantFormat::kInt8 ? 0 : 7; }
};

/// Products of levels with scales of at least 2^-100 are no subnormals.
bool has_special_scales(const ConstQuantBlocks& blocks) {
  const std::int64_t count = blocks.rows * quant_blocks_of_row(blocks.cols);
  for (std::int64_t block = 0; block < count; ++block) {
    const float scale = scale_at(blocks, block);
    if (!(scale == 0 || scale >= 0x1p-100F)) return true;
  }
  return false;
}

struct Position {
  std::int64_t k, n;
};

/// Where the codes of a block come from.
struct CodeBlock {
  std::int64_t k, n;  // of the first code
  std::int64_t end_k, end_n;
  bool pairs;

  /// The element of code i of a row (simd/codes.h).
  Position at(std::int64_t row, std::int64_t i) const {
    if (!pairs) return {k + row, n + i};
    return {k + row / 2 * 2 + i % 2, n + row % 2 * (cpu::kPanel / 2) + i / 2};
  }
  bool has(const Position& at) const { return at.k < end_k && at.n < end_n; }
};

void pack_scales(const CodeSource& source, const CodeBlock& block, std::uint8_t* target) {
  for (std::int64_t i = 0; i < cpu::num_scales(source.along_k); ++i) {
    const Position at{block.k + (source.along_k ? i : 0), block.n + (source.along_k ? 0 : i)};
    const float scale = block.has(at) ? source.scale(at.k, at.n) : 0;
    std::memcpy(target + static_cast<std::size_t>(i) * sizeof scale, &scale, sizeof scale);
  }
}

void pack_codes(const CodeSource& source, const CodeBlock& block, std::uint8_t* target) {
  const auto code_at = [&](std::int64_t row, std::int64_t i) {
    const Position at = block.at(row, i);
    return block.has(at) ? source.code(at.k, at.n) : source.zero_code();
  };
  const std::int64_t bytes = cpu::code_row_bytes(source.blocks.format);
  for (std::int64_t row = 0; row < cpu::kCodeRows; ++row, target += bytes) {
    for (std::int64_t i = 0; i < bytes; ++i) {
      const unsigned second = bytes < cpu::kPanel ? code_at(row, i + bytes) << 4 : 0;
      target[i] = static_cast<std::uint8_t>(code_at(row, i) | second);
    }
  }
}

}  // namespace

PackedCodes::PackedCodes(const Context& ctx, QuantFormat format, SourceRows rows, DType dtype, std::int64_t k,
                         std::int64_t n)
    : format_(format), rows_(rows), dtype_(dtype), k_(k), n_(n), pairs_(packs_pairs(ctx, dtype)) {
  require(ctx.device.kind == DeviceKind::kCpu && k >= 1 && n >= 1, "invalid_argument",
          "packed codes need a matrix with elements, on a CPU");
  buffer_ = Buffer(ctx.device, static_cast<std::size_t>(num_panels() * quant_blocks_of_row(k_) * block_bytes()));
}

void PackedCodes::pack(const Context& ctx, const QuantizedMatrix& source) {
  const bool along_k = rows_ == SourceRows::kAlongK;
  require(source.format() == format_ && source.rows() == (along_k ? k_ : n_) && source.cols() == (along_k ? n_ : k_),
          "invalid_argument", "packed codes of another format or shape than the matrix");
  const std::int64_t blocks = quant_blocks_of_row(k_);
  const CodeSource codes{source.blocks(), along_k};
  specials_ = has_special_scales(codes.blocks);
  ctx.pool->parallel_for(num_panels(), [&](std::int64_t panel, int) {
    auto* target = reinterpret_cast<std::uint8_t*>(buffer_.data()) + panel * blocks * block_bytes();
    for (std::int64_t block = 0; block < blocks; ++block, target += block_bytes()) {
      const CodeBlock place{block * kQuantBlock, panel * cpu::kPanel, k_, n_, pairs_};
      pack_scales(codes, place, target);
      pack_codes(codes, place, target + cpu::num_scales(along_k) * static_cast<std::int64_t>(sizeof(float)));
    }
  });
}

std::int64_t PackedCodes::num_panels() const { return (n_ + cpu::kPanel - 1) / cpu::kPanel; }
std::int64_t PackedCodes::block_bytes() const { return cpu::code_block_bytes(format_, rows_ == SourceRows::kAlongK); }

const std::uint8_t* PackedCodes::block(std::int64_t panel, std::int64_t index) const {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(buffer_.data());
  return bytes + (panel * quant_blocks_of_row(k_) + index) * block_bytes();
}

}  // namespace zerofleet
