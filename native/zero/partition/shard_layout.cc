#include "zero/partition/shard_layout.h"

#include <algorithm>
#include <string>

#include "core/error.h"

namespace zerofleet {

std::int64_t bucket_capacity_blocks(std::int64_t bucket_bytes, DType reduce_dtype) {
  constexpr std::int64_t kLeast = kBlockNumel * static_cast<std::int64_t>(sizeof(float));
  require(bucket_bytes >= kLeast, "invalid_argument",
          "bucket_bytes is " + std::to_string(bucket_bytes) + "; it must be at least " + std::to_string(kLeast));
  return bucket_bytes / (kBlockNumel * static_cast<std::int64_t>(size_of(reduce_dtype)));
}

ShardLayout::ShardLayout(std::span<const ParamSpec> params, int world_size, std::int64_t bucket_blocks)
    : world_size_(world_size), bucket_blocks_(bucket_blocks), first_blocks_{0} {
  require(!params.empty(), "invalid_argument", "a layout needs at least one parameter");
  require(world_size >= 1, "invalid_argument", "a layout needs at least one rank");
  require(bucket_blocks >= 1, "invalid_argument", "a bucket needs at least one block");
  for (const ParamSpec& param : params) {
    require(param.numel() > 0, "invalid_argument", "parameter '" + param.name + "' has no elements");
    numels_.push_back(param.numel());
    first_blocks_.push_back(first_blocks_.back() + num_blocks_of(param.numel()));
  }
  // The ranks that get one block more in a bucket follow on those of the bucket before.
  const std::int64_t count = (num_blocks() + bucket_blocks - 1) / bucket_blocks;
  int next_extra = 0;
  for (std::int64_t bucket = 0; bucket < count; ++bucket) {
    extra_begin_.push_back(next_extra);
    const auto begin = std::max<std::int64_t>(0, num_blocks() - (bucket + 1) * bucket_blocks);
    const auto size = num_blocks() - bucket * bucket_blocks - begin;
    next_extra = static_cast<int>((next_extra + size) % world_size);
  }
}

std::size_t ShardLayout::param_of_block(std::int64_t block) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(first_blocks_, block) - first_blocks_.begin()) - 1;
}

Range ShardLayout::bucket_blocks(std::int64_t bucket) const {
  const std::int64_t end = num_blocks() - bucket * bucket_blocks_;
  return {std::max<std::int64_t>(0, end - bucket_blocks_), end};
}

Range ShardLayout::owned_blocks(std::int64_t bucket, int rank) const {
  const Range blocks = bucket_blocks(bucket);
  const std::int64_t share = blocks.size() / world_size_, num_extra = blocks.size() % world_size_;
  const std::int64_t extra_begin = extra_begin_[static_cast<std::size_t>(bucket)];
  // The num_extra ranks that follow on extra_begin around the circle; `wrapped` of them begin again at rank 0.
  const std::int64_t wrapped = std::max<std::int64_t>(0, extra_begin + num_extra - world_size_);
  const auto extras_below = [&](std::int64_t limit) {
    return std::clamp<std::int64_t>(limit - extra_begin, 0, num_extra - wrapped) + std::min(limit, wrapped);
  };
  const std::int64_t begin = blocks.begin + rank * share + extras_below(rank);
  const std::int64_t end = blocks.begin + (rank + 1) * share + extras_below(rank + 1);
  return {begin, end};
}

std::int64_t ShardLayout::shard_num_blocks(int rank) const {
  std::int64_t count = 0;
  for (std::int64_t bucket = 0; bucket < num_buckets(); ++bucket) count += owned_blocks(bucket, rank).size();
  return count;
}

std::int64_t ShardLayout::shard_offset(std::int64_t bucket, int rank) const {
  // Ascending block order means descending bucket order.
  std::int64_t count = 0;
  for (std::int64_t later = num_buckets() - 1; later > bucket; --later) count += owned_blocks(later, rank).size();
  return count * kBlockNumel;
}

std::vector<ShardSlice> ShardLayout::shard_slices(int rank) const {
  std::vector<ShardSlice> slices;
  std::int64_t offset = 0;
  for (std::int64_t bucket = num_buckets() - 1; bucket >= 0; --bucket) {
    const Range owned = owned_blocks(bucket, rank);
    for (std::int64_t block = owned.begin; block < owned.end;) {
      const std::size_t param = param_of_block(block);
      const Range run = intersect(owned, param_blocks(param));
      const std::int64_t first = (run.begin - param_blocks(param).begin) * kBlockNumel;
      const Range elements{first, std::min(first + run.size() * kBlockNumel, numel(param))};
      ShardSlice* last = slices.empty() ? nullptr : &slices.back();
      if (last != nullptr && last->param == param && last->elements.end == elements.begin) {
        last->elements.end = elements.end;
      } else {
        slices.push_back({param, elements, offset});
      }
      offset += run.size() * kBlockNumel;
      block = run.end;
    }
  }
  return slices;
}

}  // namespace zerofleet
