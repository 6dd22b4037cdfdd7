#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/dtype.h"
#include "core/param_spec.h"
#include "core/range.h"

namespace zerofleet {

/// Number of elements in a block, the unit of ownership, norms, checkpoints and digests.
inline constexpr std::int64_t kBlockNumel = 4096;

/// Number of blocks that a parameter of `numel` elements is padded to.
constexpr std::int64_t num_blocks_of(std::int64_t numel) { return (numel + kBlockNumel - 1) / kBlockNumel; }

/// Number of blocks in a bucket of `bucket_bytes` whose elements travel as `reduce_dtype`. Throws
/// Error{"invalid_argument"} for less than one block of fp32 (16384 bytes).
std::int64_t bucket_capacity_blocks(std::int64_t bucket_bytes, DType reduce_dtype);

/// A slice of one parameter in a rank's shard: elements [begin, end) of the parameter, without padding, start at
/// element `shard_offset` of the shard.
struct ShardSlice {
  std::size_t param = 0;
  Range elements;
  std::int64_t shard_offset = 0;
};

/// Layout of parameters, buckets and shards. Pure arithmetic, the same on every rank.
///
/// The flat array holds the parameters in canonical order, each padded to whole blocks. Block ids count through this
/// array. Buckets are runs of blocks, cut from the end of the array, because backward finishes the last parameters
/// first: bucket 0 is the last run. Only the bucket at the front may be shorter than the capacity. None of this depends
/// on the world size.
///
/// Within each bucket every rank owns one run of whole blocks, in rank order. The sizes of the runs differ by at most
/// one block. The ranks with one block more rotate from bucket to bucket, so totals differ by at most one block, too. A
/// rank's shard consists of its owned blocks in ascending order.
class ShardLayout {
 public:
  /// Throws Error{"invalid_argument"} for no parameters, an empty parameter, world_size < 1 or bucket_blocks < 1.
  ShardLayout(std::span<const ParamSpec> params, int world_size, std::int64_t bucket_blocks);

  int world_size() const { return world_size_; }
  std::size_t num_params() const { return numels_.size(); }
  std::int64_t numel(std::size_t param) const { return numels_[param]; }
  std::int64_t num_blocks() const { return first_blocks_.back(); }
  std::int64_t padded_numel() const { return num_blocks() * kBlockNumel; }

  Range param_blocks(std::size_t param) const { return {first_blocks_[param], first_blocks_[param + 1]}; }
  std::size_t param_of_block(std::int64_t block) const;

  std::int64_t num_buckets() const { return static_cast<std::int64_t>(extra_begin_.size()); }
  std::int64_t bucket_of_block(std::int64_t block) const { return (num_blocks() - 1 - block) / bucket_blocks_; }
  Range bucket_blocks(std::int64_t bucket) const;
  std::int64_t max_bucket_blocks() const { return bucket_blocks(0).size(); }

  /// Blocks of `bucket` that `rank` owns; empty if the bucket has fewer blocks than there are ranks.
  Range owned_blocks(std::int64_t bucket, int rank) const;

  std::int64_t shard_num_blocks(int rank) const;
  /// First element of `bucket` in the shard of `rank`.
  std::int64_t shard_offset(std::int64_t bucket, int rank) const;

  /// Returns the shard of `rank` in canonical order, one slice per uninterrupted range of a parameter.
  std::vector<ShardSlice> shard_slices(int rank) const;

 private:
  int world_size_;
  std::int64_t bucket_blocks_;
  std::vector<std::int64_t> numels_;        // (num_params)
  std::vector<std::int64_t> first_blocks_;  // (num_params + 1)
  std::vector<int> extra_begin_;            // (num_buckets) first of the ranks with one block more
};

}  // namespace zerofleet
