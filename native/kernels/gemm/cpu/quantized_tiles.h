#pragma once

#include <algorithm>
#include <cstdint>

#include "core/dtype.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/simd/gemm.h"
#include "kernels/gemm/simd/pack.h"
#include "kernels/quantize/simd/quantize.h"

// Dequantization of parts of B in the CPU's products. A tile at a time is dequantized into the dtype of the product,
// stays in the first-level cache, and is packed from there like any other source. Part of gemm.cc.
namespace zerofleet::cpu {
namespace {

constexpr std::int64_t kTileSourceRows = kPanel;
constexpr std::int64_t kTileSourceCols = 256;  // even, and whole panels
/// Elements from row to row of a tile. Quantization blocks may extend beyond the tile on both sides. A tile has 48 KiB
/// of fp32.
constexpr std::int64_t kTileStride = kTileSourceCols + 2 * kQuantBlock;

/// A rectangle of a quantized source.
struct QuantizedTiles {
  ConstQuantBlocks source;
  SourceRows rows;
  std::int64_t row, col;  // of the first element
  std::uint32_t* tile;    // kTileSourceRows · kTileStride words
};

/// Packs as `args` describe, with `tiles` as the source.
void pack_quantized(const QuantizedTiles& tiles, void (*unpack)(const UnpackArgs&), void (*pack)(const PackArgs&),
                    const PackArgs& args) {
  const bool along_k = tiles.rows == SourceRows::kAlongK;
  const std::int64_t per_word = args.pairs ? 2 : 1;
  for (std::int64_t row = 0; row < args.rows; row += kTileSourceRows) {
    for (std::int64_t col = 0; col < args.cols; col += kTileSourceCols) {
      const std::int64_t k = along_k ? row : col, n = along_k ? col : row;
      const std::int64_t before = (tiles.col + col) % kQuantBlock;
      PackArgs part = args;
      part.rows = std::min(kTileSourceRows, args.rows - row);
      part.cols = std::min(kTileSourceCols, args.cols - col);
      unpack({tiles.source,
              tiles.row + row,
              part.rows,
              (tiles.col + col) / kQuantBlock,
              before + part.cols,
              {tiles.tile, kTileStride},
              args.source_dtype});
      part.source = reinterpret_cast<const std::byte*>(tiles.tile) +
                    static_cast<std::size_t>(before) * size_of(args.source_dtype);
      part.source_stride = kTileStride;
      part.target += k / per_word * kPanel + n / kPanel * args.target_stride;
      pack(part);
    }
  }
}

}  // namespace
}  // namespace zerofleet::cpu
