#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/dtype.h"
#include "core/param_spec.h"
#include "core/range.h"

namespace zerofleet {

/// Elements of one block, the atom of ownership, norms, checkpoints and digests.
inline constexpr std::int64_t kBlockNumel = 4096;

/// Blocks that a parameter of `numel` elements is padded to.
constexpr std::int64_t num_blocks_of(std::int64_t numel) { return (numel + kBlockNumel - 1) / kBlockNumel; }

/// Blocks that a bucket of `bucket_bytes` holds when its elements travel as `reduce_dtype`.
/// Throws Error{"invalid_argument"} if that is less than one block of fp32 (16384 bytes).
std::int64_t bucket_capacity_blocks(std::int64_t bucket_bytes, DType reduce_dtype);

/// A stretch of one parameter inside a rank's shard: elements [begin, end) of the parameter (padding left out) lie at
/// `shard_offset` (in elements) of the shard.
struct ShardSlice {
  std::size_t param = 0;
  Range elements;
  std::int64_t shard_offset = 0;
};

/// Layout of parameters, buckets and shards. Pure arithmetic, the same on every rank.
///
/// The flat array holds the parameters in canonical order, each padded to whole blocks; block ids count through it.
/// Buckets are runs of blocks cut from its end, because backward finishes the last parameters first: bucket 0 is the
/// last run, and only the bucket at the front may be shorter than the capacity. None of that depends on the world size.
///
/// Within each bucket every rank owns one contiguous run of whole blocks, in rank order, sizes within one block of each
/// other. The ranks that get one block more rotate from bucket to bucket, so the totals are within one block too.
/// A rank's shard is its owned blocks in ascending block order.
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

  /// Blocks of `bucket` that `rank` owns; empty where the bucket has fewer blocks than there are ranks.
  Range owned_blocks(std::int64_t bucket, int rank) const;

  std::int64_t shard_num_blocks(int rank) const;
  /// Element of the shard of `rank` at which its blocks of `bucket` begin.
  std::int64_t shard_offset(std::int64_t bucket, int rank) const;

  /// The shard of `rank` in canonical order, one entry per unbroken stretch of a parameter.
  std::vector<ShardSlice> shard_slices(int rank) const;

 private:
  int world_size_;
  std::int64_t bucket_blocks_;
  std::vector<std::int64_t> numels_;        // (num_params)
  std::vector<std::int64_t> first_blocks_;  // (num_params + 1)
  std::vector<int> extra_begin_;            // (num_buckets) first rank that gets one block more
};

}  // namespace zerofleet
