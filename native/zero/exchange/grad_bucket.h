#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/dtype.h"
#include "zero/exchange/grad_view.h"
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
  /// Copies the gradient (numel of the parameter) into its bucket or buckets.
  void add(std::size_t param, const GradView& grad);

  std::size_t scratch_bytes() const { return widened_.num_bytes(); }

 private:
  struct Open {
    Buffer contents;
    std::int64_t num_missing = 0;  // parameters with blocks in this bucket that have not come
  };

  void add_part(std::size_t param, const GradView& grad, std::int64_t bucket);
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
