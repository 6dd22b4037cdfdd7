// Passes with a result for each block of an array: statistics and hashes, one warp a block.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/device/context.h"
#include "core/dtype.h"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/warp.cuh"
#include "kernels/flat/block_hash.h"
#include "kernels/flat/cuda/block_lanes.h"
#include "kernels/flat/cuda/xxh3_lanes.h"

namespace zerofleet::cuda {
namespace {

struct BlockResult {
  double sum_squares;
  std::uint32_t max_magnitude;
};

struct StatsArrays {
  const std::byte* values;
  DType dtype;
  std::int64_t block_numel;
  std::int64_t num_blocks;
};

__global__ void __launch_bounds__(kWarpThreads) stats_kernel(const StatsArrays arrays, BlockResult* results) {
  const std::int64_t block = warp_of_grid();
  if (block >= arrays.num_blocks) return;
  const std::int64_t block_bytes = arrays.block_numel * static_cast<std::int64_t>(size_of(arrays.dtype));
  const BlockLane part =
      block_lane(arrays.values + block * block_bytes, arrays.dtype, arrays.block_numel, lane_of_warp());
  const double sum_squares = folded_by_halves(part.sum_squares);
  const std::uint32_t max_magnitude = __reduce_max_sync(kWholeWarp, part.max_magnitude);
  if (lane_of_warp() == 0) results[block] = {sum_squares, max_magnitude};
}

struct HashArrays {
  const std::uint64_t* words;
  std::int64_t num_blocks;
  std::uint64_t first_seed;
};

__global__ void __launch_bounds__(kWarpThreads)
    hash_kernel(const HashArrays arrays, const __grid_constant__ xxh3::Secret standard, Hash128* hashes) {
  using namespace xxh3;
  __shared__ std::uint64_t secrets[kWarpThreads / 32][kSecretWords];
  const std::int64_t block = warp_of_grid();
  if (block >= arrays.num_blocks) return;
  const int thread = lane_of_warp(), index = thread % kAccumulators;
  std::uint64_t* secret = secrets[threadIdx.x / 32];
  if (thread < kSecretWords)
    secret[thread] = secret_word(standard, arrays.first_seed + static_cast<std::uint64_t>(block), thread);
  __syncwarp();
  const std::uint64_t* words =
      arrays.words + block * static_cast<std::int64_t>(kHashedBlockBytes / sizeof(std::uint64_t));
  std::uint64_t accumulator = first_accumulator(index);
  for (int inner = 0; inner < kInnerBlocks; ++inner) {
    std::uint64_t part = thread_part(words, secret, inner, thread);
    part += shuffled_xor(part, kAccumulators);
    part += shuffled_xor(part, 2 * kAccumulators);
    accumulator += part;  // all threads of one accumulator hold it
    if (inner + 1 < kInnerBlocks) accumulator = scrambled(accumulator, secret, index);
  }
  std::uint64_t accumulators[kAccumulators];
  ZF_DEVICE_UNROLL(8)
  for (int i = 0; i < kAccumulators; ++i) accumulators[i] = shuffled(accumulator, i);
  if (thread == 0) hashes[block] = finish(accumulators, secret);
}

}  // namespace

void block_stats(const Context& context, std::span<const std::byte> values, DType dtype, std::int64_t block_numel,
                 std::span<double> sum_squares, std::span<float> max_abs) {
  const Stream& stream = stream_of(context);
  if (sum_squares.empty()) return;
  const auto num_blocks = static_cast<std::int64_t>(sum_squares.size());
  Results<BlockResult> results(context, sum_squares.size());
  const StatsArrays arrays{values.data(), dtype, block_numel, num_blocks};
  launch("block_stats", stream, {num_blocks_for(num_blocks, kWarpThreads / 32), kWarpThreads}, stats_kernel, arrays,
         results.data());
  const auto fetched = results.fetch();
  for (std::size_t block = 0; block < fetched.size(); ++block) {
    sum_squares[block] = fetched[block].sum_squares;
    max_abs[block] = std::bit_cast<float>(fetched[block].max_magnitude);
  }
}

void hash_blocks(const Context& context, std::span<const std::byte> blocks, std::uint64_t first_seed,
                 std::span<Hash128> hashes) {
  const Stream& stream = stream_of(context);
  if (hashes.empty()) return;
  require(reinterpret_cast<std::uintptr_t>(blocks.data()) % sizeof(std::uint64_t) == 0, "invalid_argument",
          "blocks to hash must begin at a multiple of 8 bytes");
  const auto num_blocks = static_cast<std::int64_t>(hashes.size());
  Results<Hash128> results(context, hashes.size());
  const HashArrays arrays{reinterpret_cast<const std::uint64_t*>(blocks.data()), num_blocks, first_seed};
  launch("hash_blocks", stream, {num_blocks_for(num_blocks, kWarpThreads / 32), kWarpThreads}, hash_kernel, arrays,
         xxh3::kStandardSecret, results.data());
  const auto fetched = results.fetch();
  std::copy(fetched.begin(), fetched.end(), hashes.begin());
}

}  // namespace zerofleet::cuda
