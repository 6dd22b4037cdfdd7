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

/// Collects the gradients of one exchange in buckets, multiplied by a factor and rounded to the dtype of the exchange.
/// Passes each bucket on when it is full.
class GradBuckets {
 public:
  using OnFull = std::function<void(std::int64_t bucket, Buffer contents)>;

  /// Storage format of gradients.
  struct Format {
    DType dtype = DType::kBF16;
    float factor = 1;
  };

  /// `layout` and `pool` must outlive the object. The buffers of `pool` must hold the largest bucket.
  GradBuckets(const Context& context, const ShardLayout& layout, const Format& format, StagingPool& pool,
              OnFull on_full);

  /// Begins an exchange, in which every parameter is added once.
  void begin();
  /// Copies a gradient (numel of the parameter) into its bucket or buckets, unless it was computed there
  /// (room_for()).
  void add(std::size_t param, const GradView& grad);
  /// Returns the memory of a gradient of this dtype in its bucket, for computing it there. Null if the gradient must be
  /// converted or scaled, if it spans several buckets, or if it would open another bucket.
  std::byte* room_for(std::size_t param, DType dtype);

  std::size_t scratch_bytes() const { return widened_.num_bytes(); }

 private:
  struct Open {
    Buffer contents;
    std::int64_t num_missing = 0;  // parameters of this bucket that were not added yet
  };

  /// Returns the memory of a parameter's blocks in a bucket, padding included. Opens the bucket.
  std::span<std::byte> memory_of(std::size_t param, std::int64_t bucket);
  void add_part(std::size_t param, const GradView& grad, std::int64_t bucket);
  void copy_in(const GradView& grad, std::int64_t begin, std::int64_t end, std::span<std::byte> target);
  /// True if gradients of this dtype enter buckets without conversion.
  bool enters_as_is(DType dtype) const { return dtype == format_.dtype && format_.factor == 1; }
  /// Returns elements [begin, end) of a gradient in fp32.
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
