#include "model/mlp/router_tally.h"

#include <iterator>
#include <numeric>

#include "core/device/transfer.h"

namespace zerofleet {
namespace {

std::size_t bytes_for(std::int64_t num_experts) {
  return static_cast<std::size_t>(num_experts) * (sizeof(std::int64_t) + sizeof(double));
}

}  // namespace

RouterTally::RouterTally(const Context& ctx, std::int64_t num_experts)
    : num_experts_(num_experts),
      sums_(ctx.device, bytes_for(num_experts)),
      host_(Buffer::on_host_for(ctx.device, ctx.device.kind == DeviceKind::kCpu ? 0 : bytes_for(num_experts))),
      gradient_(ctx, num_experts),
      fetched_(ctx.device) {}

RouterSums RouterTally::sums() {
  const auto count = static_cast<std::size_t>(num_experts_);
  return {sums_.as<std::int64_t>().first(count), sums_.as<double>().last(count)};
}

void RouterTally::clear(const Context& ctx) {
  num_tokens_ = 0;
  if (!sums_.empty()) fill_zero(ctx, {sums_.data(), sums_.num_bytes()});
}

void RouterTally::add(const Context& ctx, const RouterChoices& chosen) {
  add_router_load(ctx, chosen, sums());
  const std::int64_t tokens = std::ssize(chosen.probs) / num_experts_;
  num_tokens_ +=
      chosen.lengths.empty() ? tokens : std::accumulate(chosen.lengths.begin(), chosen.lengths.end(), std::int64_t{0});
}

std::span<const float> RouterTally::gradient(const Context& ctx, double scale) {
  if (num_experts_ == 0) return {};
  load_balancing_gradient(ctx, sums().choices, num_tokens_, scale, gradient_.span());
  return gradient_.span();
}

void RouterTally::fetch(const Context& ctx) {
  if (host_.empty()) return;
  Stream& stream = stream_of(ctx);
  queue_copy(stream, {host_.data(), host_.num_bytes()}, {sums_.data(), sums_.num_bytes()});
  fetched_.record(stream);
}

RouterLoad RouterTally::load() const {
  if (!host_.empty()) fetched_.synchronize();
  const Buffer& here = host_.empty() ? sums_ : host_;
  const auto count = static_cast<std::size_t>(num_experts_);
  const std::span<const std::int64_t> choices = here.as<std::int64_t>().first(count);
  const std::span<const double> probs = here.as<double>().last(count);
  return {{choices.begin(), choices.end()}, {probs.begin(), probs.end()}, num_tokens_};
}

}  // namespace zerofleet
