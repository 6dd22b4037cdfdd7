#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/context.h"
#include "core/dtype.h"
#include "zero/shard_layout.h"
#include "zero/staging_pool.h"

namespace zerofleet {

/// Collects one leaf's gradients into buckets of `reduce_dtype` and hands each full bucket on, bucket 0 first: a bucket
/// that fills early waits for those before it, because ranks must exchange buckets in one order.
class GradBuckets {
 public:
  using OnFull = std::function<void(std::int64_t bucket, Buffer contents)>;

  /// `layout` and `pool` must outlive the object; `pool` has buffers for the largest bucket.
  GradBuckets(const Context& context, const ShardLayout& layout, DType reduce_dtype, StagingPool& pool, OnFull on_full);

  /// Begins a leaf: every parameter is expected once.
  void begin();
  /// Copies the gradient (numel of the parameter) into its bucket or buckets.
  /// Throws Error{"gradient_repeated"}, Error{"invalid_argument"} for a wrong parameter or size.
  void add(std::size_t param, std::span<const float> grad);
  /// The first parameter whose gradient has not come, or num_params().
  std::size_t first_missing() const;

 private:
  struct Open {
    Buffer contents;
    std::int64_t num_missing = 0;  // parameters with blocks in this bucket that have not come
  };

  void add_part(std::size_t param, std::span<const float> grad, std::int64_t bucket);
  void hand_on_full();

  Context context_;
  const ShardLayout& layout_;
  DType reduce_dtype_;
  StagingPool& pool_;
  OnFull on_full_;
  std::vector<std::int64_t> num_params_in_;  // (num_buckets)
  std::vector<Open> buckets_;                // (num_buckets)
  std::vector<bool> arrived_;                // (num_params)
  std::int64_t next_to_hand_on_ = 0;
};

}  // namespace zerofleet
