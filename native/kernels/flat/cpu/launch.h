#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/device/context.h"
#include "core/dtype.h"
#include "kernels/flat/block_hash.h"
#include "kernels/flat/block_stats.h"
#include "kernels/flat/cast.h"
#include "kernels/flat/fold.h"

// The CPU's launchers of this family; arguments were checked by the entries in kernels/flat/.
namespace zerofleet::cpu {

void cast_from_f32(const Context& context, std::span<const float> source, DType dtype, std::span<std::byte> target,
                   float factor);
void cast_to_f32(const Context& context, std::span<const std::byte> source, DType dtype, std::span<float> target);
void fold_pieces(const Context& context, const Fold& fold);
void block_stats(const Context& context, std::span<const std::byte> values, DType dtype, std::int64_t block_numel,
                 std::span<double> sum_squares, std::span<float> max_abs);
void hash_blocks(const Context& context, std::span<const std::byte> blocks, std::uint64_t first_seed,
                 std::span<Hash128> hashes);

}  // namespace zerofleet::cpu
