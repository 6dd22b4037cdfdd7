#include "zero/exchange/grad_bucket.h"

#include <algorithm>
#include <utility>

#include "core/device/transfer.h"
#include "kernels/flat/cast.h"

namespace zerofleet {

GradBuckets::GradBuckets(const Context& context, const ShardLayout& layout, const Format& format, StagingPool& pool,
                         OnFull on_full)
    : context_(context),
      layout_(layout),
      format_(format),
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
  if (open.contents.empty()) open.contents = pool_.take(context_);
  const Range param_blocks = layout_.param_blocks(param), bucket_blocks = layout_.bucket_blocks(bucket);
  const Range part = intersect(param_blocks, bucket_blocks);
  const std::int64_t begin = (part.begin - param_blocks.begin) * kBlockNumel;
  const std::int64_t end = std::min(begin + part.size() * kBlockNumel, layout_.numel(param));
  const std::size_t width = size_of(format_.dtype);
  const auto offset = static_cast<std::size_t>((part.begin - bucket_blocks.begin) * kBlockNumel) * width;
  const auto value_bytes = grad.data == nullptr ? 0 : static_cast<std::size_t>(end - begin) * width;
  const auto part_bytes = static_cast<std::size_t>(part.size() * kBlockNumel) * width;
  const std::span<std::byte> target(open.contents.data() + offset, part_bytes);
  if (grad.data != nullptr) {
    cast_from_f32(context_, widened(grad, begin, end), format_.dtype, target.first(value_bytes), format_.factor);
  }
  // Buffers are reused, and padding takes part in sums and norms: it must be zero.
  fill_zero(context_, target.subspan(value_bytes));
}

std::span<const float> GradBuckets::widened(const GradView& grad, std::int64_t begin, std::int64_t end) {
  const auto numel = static_cast<std::size_t>(end - begin);
  const std::size_t width = size_of(grad.dtype);
  const std::byte* first = grad.data + static_cast<std::size_t>(begin) * width;
  if (grad.dtype == DType::kF32) return {reinterpret_cast<const float*>(first), numel};
  const auto wanted = static_cast<std::size_t>(layout_.max_bucket_blocks() * kBlockNumel) * sizeof(float);
  if (widened_.empty()) widened_ = Buffer(context_.device, wanted);
  const auto values = widened_.as<float>().first(numel);
  cast_to_f32(context_, {first, numel * width}, grad.dtype, values);
  return values;
}

}  // namespace zerofleet
