#include "model/common/transit.h"

#include <cstring>

#include "core/device/transfer.h"

namespace zerofleet {
namespace {

bool is_cpu(const Context& ctx) { return ctx.device.kind == DeviceKind::kCpu; }

std::size_t bytes_for(const Context& ctx, std::int64_t count) {
  return is_cpu(ctx) ? 0 : static_cast<std::size_t>(count) * sizeof(std::int32_t);
}

}  // namespace

Upload::Upload(const Context& ctx, std::int64_t capacity)
    : staging_(Buffer::on_host_for(ctx.device, bytes_for(ctx, capacity))),
      values_(ctx.device, bytes_for(ctx, capacity)),
      copied_(ctx.device) {}

const std::byte* Upload::upload(const Context& ctx, std::span<const std::byte> numbers) {
  require(numbers.size() <= staging_.num_bytes(), "internal", "more numbers than there is room for");
  copied_.synchronize();  // the last ones have left
  std::memcpy(staging_.data(), numbers.data(), numbers.size());
  Stream& stream = stream_of(ctx);
  queue_copy(stream, {values_.data(), numbers.size()}, {staging_.data(), numbers.size()});
  copied_.record(stream);
  return values_.data();
}

Indices IndexUpload::upload(const Context& ctx, std::span<const std::int32_t> numbers) {
  if (is_cpu(ctx) || numbers.empty()) return numbers;
  return {numbers, reinterpret_cast<const std::int32_t*>(upload_.upload(ctx, std::as_bytes(numbers)))};
}

std::span<const float> FloatUpload::upload(const Context& ctx, std::span<const float> numbers) {
  if (is_cpu(ctx) || numbers.empty()) return numbers;
  return {reinterpret_cast<const float*>(upload_.upload(ctx, std::as_bytes(numbers))), numbers.size()};
}

PositionGroups GroupUpload::upload(const Context& ctx, const Indices& numbers) {
  if (is_cpu(ctx) || numbers.empty()) return {};
  const SortedPositions sorted(numbers.host());
  values_ = sorted.order;
  values_.insert(values_.end(), sorted.starts.begin(), sorted.starts.end());
  const std::int32_t* there = upload_.upload(ctx, values_).on_device();
  return {there, there + sorted.order.size(), static_cast<std::int64_t>(sorted.starts.size()) - 1};
}

Readback::Readback(const Context& ctx, std::int64_t count)
    : values_(ctx.device, static_cast<std::size_t>(count) * sizeof(float)),
      host_(Buffer::on_host_for(ctx.device, bytes_for(ctx, count))),
      fetched_(ctx.device) {}

void Readback::fetch(const Context& ctx) {
  if (is_cpu(ctx)) return;
  Stream& stream = stream_of(ctx);
  queue_copy(stream, {host_.data(), host_.num_bytes()}, {values_.data(), values_.num_bytes()});
  fetched_.record(stream);
}

std::span<const float> Readback::on_host() const {
  if (host_.empty()) return values_.as<float>();
  fetched_.synchronize();
  return host_.as<float>();
}

}  // namespace zerofleet
