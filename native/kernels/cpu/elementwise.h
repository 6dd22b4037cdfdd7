#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/context.h"
#include "core/dtype.h"
#include "kernels/block_hash.h"
#include "kernels/fold.h"

// CPU backends of the memory-bound passes over flat arrays; arguments are checked by the entries in kernels/.
namespace zerofleet::cpu {

/// Elements of one task. The tiles are fixed and every element (or block) is computed alone, so results don't depend on
/// how many threads share them; the size keeps a task's arrays within a few huge pages.
inline constexpr std::int64_t kTileNumel = 32768;

/// Calls body(begin, end) over [0, numel) in tiles, on the threads of the context.
template <class Body>
void for_each_tile(const Context& context, std::int64_t numel, Body&& body) {
  context.pool->parallel_for((numel + kTileNumel - 1) / kTileNumel, [&](std::int64_t task, int) {
    const std::int64_t begin = task * kTileNumel;
    body(begin, begin + kTileNumel < numel ? begin + kTileNumel : numel);
  });
}

void block_stats(const Context& context, std::span<const std::byte> values, DType dtype, std::int64_t block_numel,
                 std::span<double> sum_squares, std::span<float> max_abs);
void cast_from_f32(const Context& context, std::span<const float> source, DType dtype, std::span<std::byte> target,
                   float factor);
void cast_to_f32(const Context& context, std::span<const std::byte> source, DType dtype, std::span<float> target);
void fold_pieces(const Context& context, const Fold& fold);
void hash_blocks(const Context& context, std::span<const std::byte> blocks, std::uint64_t first_seed,
                 std::span<Hash128> hashes);

}  // namespace zerofleet::cpu
