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

// A bucket is opened here only where the next gradient would open it too: so no more are in progress than without.
std::byte* GradBuckets::room_for(std::size_t param, DType dtype) {
  const Range blocks = layout_.param_blocks(param);
  const std::int64_t bucket = layout_.bucket_of_block(blocks.begin);
  if (!enters_as_is(dtype) || layout_.bucket_of_block(blocks.end - 1) != bucket) return nullptr;
  const auto is_open = [](const Open& open) { return !open.contents.empty(); };
  if (!is_open(buckets_[static_cast<std::size_t>(bucket)]) && std::ranges::any_of(buckets_, is_open)) return nullptr;
  return memory_of(param, bucket).data();
}

std::span<std::byte> GradBuckets::memory_of(std::size_t param, std::int64_t bucket) {
  Buffer& contents = buckets_[static_cast<std::size_t>(bucket)].contents;
  if (contents.empty()) contents = pool_.take(context_);
  const Range bucket_blocks = layout_.bucket_blocks(bucket);
  const Range part = intersect(layout_.param_blocks(param), bucket_blocks);
  const std::size_t block_bytes = static_cast<std::size_t>(kBlockNumel) * size_of(format_.dtype);
  return {contents.data() + static_cast<std::size_t>(part.begin - bucket_blocks.begin) * block_bytes,
          static_cast<std::size_t>(part.size()) * block_bytes};
}

void GradBuckets::add_part(std::size_t param, const GradView& grad, std::int64_t bucket) {
  const Range param_blocks = layout_.param_blocks(param), part = intersect(param_blocks, layout_.bucket_blocks(bucket));
  const std::int64_t begin = (part.begin - param_blocks.begin) * kBlockNumel;
  const std::int64_t end = std::min(begin + part.size() * kBlockNumel, layout_.numel(param));
  const std::span<std::byte> target = memory_of(param, bucket);
  const auto value_bytes = static_cast<std::size_t>(end - begin) * size_of(format_.dtype);
  if (grad.data != target.data()) copy_in(grad, begin, end, target.first(value_bytes));
  // Buffers are reused, and padding takes part in sums and norms: it must be zero.
  fill_zero(context_, target.subspan(value_bytes));
}

void GradBuckets::copy_in(const GradView& grad, std::int64_t begin, std::int64_t end, std::span<std::byte> target) {
  if (grad.dtype != DType::kF32 && enters_as_is(grad.dtype)) {
    const auto first = static_cast<std::size_t>(begin) * size_of(grad.dtype);
    return copy_bytes(context_, target, grad.bytes().subspan(first, target.size()));
  }
  cast_from_f32(context_, widened(grad, begin, end), format_.dtype, target, format_.factor);
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
