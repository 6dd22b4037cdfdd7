// Rows of each expert: a counting sort of the router's choices, so that the host need not know them. Each expert has a
// block, which goes through all choices twice: for those of lower experts, behind which its rows begin, and for its own
// in their order. The choices are 4 bytes each, the second and all further times from the L2 cache. All passes together
// read 1 MB for 8 experts of 8192 tokens with two choices each, and 64 MB for 128 experts and eight choices.
#include "core/device/context.h"
#include "kernels/common/cuda/elements.cuh"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/warp.cuh"
#include "kernels/moe/moe.h"

namespace zerofleet::cuda {
namespace {

constexpr int kGroupThreads = 512;
constexpr int kGroupWarps = kGroupThreads / 32;
constexpr int kPairs = 4;  // neighbours, of a thread at once
constexpr int kStepPairs = kGroupThreads * kPairs;

struct Count {
  int before, all;  // in lower threads of the block, and in all
};

/// All threads must come here. `of_warps` is shared memory that may be used again after the next barrier.
__device__ Count counted(int mine, int (&of_warps)[kGroupWarps]) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  int sum = mine;  // in this lane and lower ones
  for (int distance = 1; distance < 32; distance *= 2) {
    const int lower = __shfl_up_sync(kWholeWarp, sum, distance);
    if (lane_of_warp() >= distance) sum += lower;
  }
  if (lane_of_warp() == 31) of_warps[warp] = sum;
  __syncthreads();
  Count count{sum - mine, 0};
  ZF_DEVICE_UNROLL(kGroupWarps)
  for (int w = 0; w < kGroupWarps; ++w) {
    if (w < warp) count.before += of_warps[w];
    count.all += of_warps[w];
  }
  return count;
}

struct Numbers {
  std::int32_t *first, *tokens, *rows;
};

__global__ void __launch_bounds__(kGroupThreads)
    group_kernel(const std::int32_t* experts, int num_pairs, int chosen, const Numbers to) {
  __shared__ int of_warps[2][kGroupWarps];  // used in alternation, so that a step needs one barrier
  const int expert = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  int lower = 0;
  for (int pair = thread; pair < num_pairs; pair += kGroupThreads) lower += experts[pair] < expert ? 1 : 0;
  int row = counted(lower, of_warps[0]).all;
  if (thread == 0) to.first[expert] = row;
  int current = 1;
  for (int begin = 0; begin < num_pairs; begin += kStepPairs) {
    const int pair = begin + thread * kPairs;
    bool is_mine[kPairs];
    int count = 0;
    ZF_DEVICE_UNROLL(kPairs)
    for (int i = 0; i < kPairs; ++i) {
      is_mine[i] = pair + i < num_pairs && experts[pair + i] == expert;
      count += is_mine[i] ? 1 : 0;
    }
    const Count found = counted(count, of_warps[current]);
    int at = row + found.before;
    ZF_DEVICE_UNROLL(kPairs)
    for (int i = 0; i < kPairs; ++i) {
      if (!is_mine[i]) continue;
      to.rows[pair + i] = at;
      to.tokens[at] = (pair + i) / chosen;
      ++at;
    }
    row += found.all;
    current = 1 - current;
  }
  if (thread == 0 && blockIdx.x + 1 == gridDim.x) to.first[expert + 1] = row;
}

__global__ void __launch_bounds__(kFlatThreads)
    token_rows_kernel(const std::int32_t* rows, int num_pairs, int chosen, int num_all, std::int32_t* all) {
  const int at = static_cast<int>(blockIdx.x) * kFlatThreads + static_cast<int>(threadIdx.x);
  if (at >= num_all) return;
  const int token = at / (chosen + 1), choice = at % (chosen + 1);
  all[at] = choice < chosen ? rows[token * chosen + choice] : num_pairs + token;
}

}  // namespace

void group_by_expert(const Context& ctx, std::span<const std::int32_t> experts, std::int64_t experts_per_token,
                     const DeviceGroups& groups) {
  const unsigned num_experts = num_blocks_for(static_cast<std::int64_t>(groups.first.size()) - 1, 1);
  launch("group_by_expert", stream_of(ctx), {num_experts, kGroupThreads}, group_kernel, experts.data(),
         static_cast<int>(experts.size()), static_cast<int>(experts_per_token),
         Numbers{groups.first.data(), groups.tokens.data(), groups.rows.data()});
}

void add_token_rows(const Context& ctx, const ExpertGroups& groups, std::span<std::int32_t> all) {
  const Stream& stream = stream_of(ctx);
  if (all.empty()) return;
  require(groups.device_rows != nullptr && all.size() <= INT32_MAX / 2, "invalid_argument",
          "experts: a kernel on a CUDA device needs the groups there");
  launch("add_token_rows", stream, {num_blocks_for(static_cast<std::int64_t>(all.size()), kFlatThreads), kFlatThreads},
         token_rows_kernel, groups.device_rows, static_cast<int>(groups.num_rows()),
         static_cast<int>(groups.experts_per_token), static_cast<int>(all.size()), all.data());
}

}  // namespace zerofleet::cuda
