#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "zero/partition/shard_layout.h"

namespace zerofleet {

/// Calls visit(param, shard, place) for every block of the layout in ascending block order, the one order in which
/// whatever was found per block is folded: `shard` is the rank that owns the block, `place` the block's number among
/// those of that shard.
template <class Visit>
void for_each_block(const ShardLayout& layout, Visit&& visit) {
  // A shard holds its blocks in ascending order, so going through the buckets from the front of the flat array, and in
  // each through its owners, meets all blocks in the order of their ids.
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
