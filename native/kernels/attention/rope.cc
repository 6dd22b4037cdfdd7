#include "kernels/attention/rope.h"

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include "core/device/transfer.h"
#include "core/error.h"
#include "core/portable_math.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

void check(const Rope& args) {
  require(args.table != nullptr && args.num_heads >= 1 && args.x.cols % args.num_heads == 0 &&
              args.x.cols / args.num_heads >= args.table->rotary_dim(),
          "invalid_argument", "rope: the heads do not fit the table");
  const std::int64_t num_positions = args.table->num_rows();
  if (args.positions.empty()) {
    require(args.sequence_length >= 1 && args.sequence_length <= num_positions, "invalid_argument",
            "rope: a sequence of " + std::to_string(args.sequence_length) + " does not fit a table of " +
                std::to_string(num_positions) + " positions");
    return;
  }
  require(std::ssize(args.positions.host()) == args.x.rows, "invalid_argument",
          "rope: needs one position for each row");
  for (const std::int32_t position : args.positions) {
    require(position >= 0 && position < num_positions, "invalid_argument",
            "rope: position " + std::to_string(position) + " is outside a table of " + std::to_string(num_positions));
  }
}

/// Moves a buffer computed on the host to where the context's kernels read it.
Buffer on_device_of(const Context& ctx, Buffer host) {
  if (ctx.device == host.device()) return host;
  Buffer there(ctx.device, host.num_bytes());
  copy_bytes(ctx, {there.data(), there.num_bytes()}, ctx.device, {host.data(), host.num_bytes()}, host.device());
  return there;
}

}  // namespace

RopeTable::RopeTable(const Context& ctx, std::int64_t num_positions, std::int64_t rotary_dim, double theta,
                     const RopeScaling& scaling, Lengths lengths)
    : rotary_dim_(rotary_dim) {
  require(num_positions >= 1, "invalid_argument", "rope: a table needs at least one position");
  if (lengths == Lengths::kOwn && scaling.is_long(num_positions)) num_short_ = scaling.original_max_position_embeddings;
  num_rows_ = num_short_ + num_positions;
  const RopeFrequencies of_short = rope_frequencies(rotary_dim, theta, scaling, num_short_);
  const RopeFrequencies of_longest = rope_frequencies(rotary_dim, theta, scaling, num_positions);
  const std::int64_t half = rotary_dim / 2;
  Buffer cosine(Device{}, static_cast<std::size_t>(num_rows_ * half) * sizeof(float));
  Buffer sine(Device{}, static_cast<std::size_t>(num_rows_ * half) * sizeof(float));
  for (std::int64_t row = 0; row < num_rows_; ++row) {
    const RopeFrequencies& frequencies = row < num_short_ ? of_short : of_longest;
    const auto position = static_cast<float>(row < num_short_ ? row : row - num_short_);
    for (std::int64_t i = 0; i < half; ++i) {
      const float angle = position * frequencies.radians[static_cast<std::size_t>(i)];
      const portable::SinCos both = portable::sin_cos(static_cast<double>(angle));
      const auto at = static_cast<std::size_t>(row * half + i);
      cosine.as<float>()[at] = static_cast<float>(both.cos) * frequencies.attention_factor;
      sine.as<float>()[at] = static_cast<float>(both.sin) * frequencies.attention_factor;
    }
  }
  cosine_ = on_device_of(ctx, std::move(cosine));
  sine_ = on_device_of(ctx, std::move(sine));
}

void rope(const Context& ctx, const Rope& args) {
  check(args);
  backend_of(ctx).rope(ctx, args);
}

}  // namespace zerofleet
