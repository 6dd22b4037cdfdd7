#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/dtype.h"
#include "core/grad_view.h"
#include "zero/offload/staging_pool.h"
#include "zero/partition/shard_layout.h"

namespace zerofleet {

/// Collects the gradients of one exchange into buckets, multiplied by a factor and rounded to the dtype of the exchange,
/// and hands each on as soon as it is full.
class GradBuckets {
 public:
  using OnFull = std::function<void(std::int64_t bucket, Buffer contents)>;

  /// Storage format of gradients.
  struct Format {
    DType dtype = DType::kBF16;
    float factor = 1;
  };

  /// `layout` and `pool` must outlive the object; `pool` has buffers for the largest bucket.
  GradBuckets(const Context& context, const ShardLayout& layout, const Format& format, StagingPool& pool,
              OnFull on_full);

  /// Begins an exchange: every parameter comes once.
  void begin();
  /// Copies the gradient (numel of the parameter) into its bucket or buckets, unless it is in its room there.
  void add(std::size_t param, const GradView& grad);
  /// Returns the room of a gradient of this dtype in its bucket; null where it would not enter the bucket as it is, lies
  /// in several, or its bucket would be one more in progress.
  std::byte* room_for(std::size_t param, DType dtype);

  std::size_t scratch_bytes() const { return widened_.num_bytes(); }

 private:
  struct Open {
    Buffer contents;
    std::int64_t num_missing = 0;  // parameters with blocks in this bucket that have not come
  };

  /// Returns the place of those blocks of a parameter that are in a bucket, padding included; opens the bucket.
  std::span<std::byte> place_of(std::size_t param, std::int64_t bucket);
  void add_part(std::size_t param, const GradView& grad, std::int64_t bucket);
  void copy_in(const GradView& grad, std::int64_t begin, std::int64_t end, std::span<std::byte> target);
  /// True if gradients of this dtype are in buckets as they are.
  bool enters_as_is(DType dtype) const { return dtype == format_.dtype && format_.factor == 1; }
  /// Elements [begin, end) of a gradient in fp32.
  std::span<const float> widened(const GradView& grad, std::int64_t begin, std::int64_t end);

  Context context_;
  const ShardLayout& layout_;
  Format format_;
  Buffer widened_;  // part of a 16-bit gradient
  StagingPool& pool_;
  OnFull on_full_;
  std::vector<std::int64_t> num_params_in_;  // (num_buckets)
  std::vector<Open> buckets_;                // (num_buckets)
};

}  // namespace zerofleet
