#include "zero/grad_bucket.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cast.h"

namespace zerofleet {

GradBuckets::GradBuckets(const Context& context, const ShardLayout& layout, DType reduce_dtype, StagingPool& pool,
                         OnFull on_full)
    : context_(context),
      layout_(layout),
      reduce_dtype_(reduce_dtype),
      pool_(pool),
      on_full_(std::move(on_full)),
      buckets_(static_cast<std::size_t>(layout.num_buckets())) {
  for (std::int64_t bucket = 0; bucket < layout.num_buckets(); ++bucket) {
    const Range blocks = layout.bucket_blocks(bucket);
    const std::size_t first = layout.param_of_block(blocks.begin), last = layout.param_of_block(blocks.end - 1);
    num_params_in_.push_back(static_cast<std::int64_t>(last - first + 1));
  }
}

void GradBuckets::begin() {
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    buckets_[bucket].num_missing = num_params_in_[bucket];
  }
}

void GradBuckets::add(std::size_t param, const GradView& grad) {
  const Range blocks = layout_.param_blocks(param);
  const std::int64_t last_bucket = layout_.bucket_of_block(blocks.begin);
  for (std::int64_t bucket = layout_.bucket_of_block(blocks.end - 1); bucket <= last_bucket; ++bucket) {
    add_part(param, grad, bucket);
    Open& open = buckets_[static_cast<std::size_t>(bucket)];
    if (--open.num_missing == 0) on_full_(bucket, std::exchange(open.contents, Buffer()));
  }
}

void GradBuckets::add_part(std::size_t param, const GradView& grad, std::int64_t bucket) {
  Open& open = buckets_[static_cast<std::size_t>(bucket)];
  if (open.contents.empty()) open.contents = pool_.take();
  const Range param_blocks = layout_.param_blocks(param), bucket_blocks = layout_.bucket_blocks(bucket);
  const Range part = intersect(param_blocks, bucket_blocks);
  const std::int64_t begin = (part.begin - param_blocks.begin) * kBlockNumel;
  const std::int64_t end = std::min(begin + part.size() * kBlockNumel, layout_.numel(param));
  const std::size_t width = size_of(reduce_dtype_);
  const auto offset = static_cast<std::size_t>((part.begin - bucket_blocks.begin) * kBlockNumel) * width;
  const auto value_bytes = grad.data == nullptr ? 0 : static_cast<std::size_t>(end - begin) * width;
  const auto part_bytes = static_cast<std::size_t>(part.size() * kBlockNumel) * width;
  const std::span<std::byte> target(open.contents.data() + offset, part_bytes);
  if (grad.data != nullptr) {
    const auto* values = reinterpret_cast<const float*>(grad.data);
    cast_from_f32(context_, {values + begin, values + end}, reduce_dtype_, target.first(value_bytes));
  }
  // Buffers are reused, and padding takes part in sums and norms: it must be zero.
  std::memset(target.data() + value_bytes, 0, part_bytes - value_bytes);
}

}  // namespace zerofleet
