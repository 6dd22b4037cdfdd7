#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "zero/partition/shard_layout.h"

namespace zerofleet {

/// Calls visit(param, shard, index) for every block of the layout in ascending order. All results per block are folded
/// in this order. `shard`: the rank that owns the block. `index`: number of the block in that shard.
template <class Visit>
void for_each_block(const ShardLayout& layout, Visit&& visit) {
  // Shards hold their blocks in ascending order. Going through the buckets from the front of the flat array, and in
  // each bucket through its owners, therefore visits all blocks in ascending order.
  std::vector<std::int64_t> next(static_cast<std::size_t>(layout.world_size()), 0);
  std::size_t param = 0;
  for (std::int64_t bucket = layout.num_buckets() - 1; bucket >= 0; --bucket) {
    for (int shard = 0; shard < layout.world_size(); ++shard) {
      const Range owned = layout.owned_blocks(bucket, shard);
      for (std::int64_t block = owned.begin; block < owned.end; ++block) {
        while (block >= layout.param_blocks(param).end) ++param;
        visit(param, shard, next[static_cast<std::size_t>(shard)]++);
      }
    }
  }
}

}  // namespace zerofleet
