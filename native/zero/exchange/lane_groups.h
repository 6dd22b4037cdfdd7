#pragma once

#include <memory>

#include "core/device/buffer.h"
#include "zero/exchange/grad_exchange.h"

namespace zerofleet {

/// Sums lanes to groups on the owner, for worlds whose rounds do not consist of whole groups. Keeps the sum of a group
/// that continues in the next round.
class LaneGroups final : public GradExchange {
 public:
  /// `lanes`: brings single lanes to this rank.
  LaneGroups(const Context& context, const ShardLayout& layout, int rank, const LeafSchedule& schedule,
             DType reduce_dtype, std::unique_ptr<GradExchange> lanes);

  GradTerms exchange(const LaneRound& round, std::int64_t bucket, std::span<std::byte> contents) override;
  std::size_t staging_bytes() const override;

 private:
  /// Returns the sums of the open group for the owned blocks of a bucket.
  std::span<float> sums_of(std::int64_t bucket);

  Context context_;
  const ShardLayout& layout_;
  int rank_;
  std::int64_t group_size_;
  bool spans_rounds_;  // of the pass with the most lanes, a group may continue in the next round
  DType dtype_;        // of buckets
  std::unique_ptr<GradExchange> lanes_;
  Buffer sums_;   // fp32, of all owned blocks; with one round per pass, of one bucket
  Buffer terms_;  // of one bucket
};

}  // namespace zerofleet
