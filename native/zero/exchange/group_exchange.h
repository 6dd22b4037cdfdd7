#pragma once

#include <vector>

#include "core/device/buffer.h"
#include "zero/exchange/grad_exchange.h"

namespace zerofleet {

/// For worlds of whole groups: ranks kG to kG + G - 1 compute the lanes of group k of a round, add them up among themselves, and
/// send only the sum to the other groups.
///
/// Rank r = kG + i adds up what the ranks i, G + i, 2G + i … own: it receives these blocks of its group's lanes, and sends the sums to
/// those ranks, one in each group. If a node has G ranks, 1/G of a bucket leaves it through each of them; the ranks of an exchange
/// between nodes have the same place on theirs. A rank sends as many bytes as in a LaneExchange: (1 - 1/G) + (1/G - 1/N) of a bucket.
class GroupExchange final : public GradExchange {
 public:
  GroupExchange(CommQueue& queue, const ShardLayout& layout, const LeafSchedule& schedule,
                Communicator& communicator, DType reduce_dtype);

  GradTerms exchange(std::int64_t round, std::int64_t bucket, std::span<std::byte> contents) override;
  std::size_t staging_bytes() const override;

 private:
  /// Returns the parts of a bucket that the ranks of place i own, in the order of their groups, as ranges of bytes that follow each other.
  std::vector<Range> chunk_of(std::int64_t bucket, int place) const;
  int rank_at(int group, int place) const { return group * group_size_ + place; }
  /// Lanes of the group's ranks → their sum, in terms of the exchange; empty without lanes.
  std::span<std::byte> sum_in_group(std::int64_t bucket, int num_lanes, std::span<std::byte> contents);
  GradTerms swap_sums(std::int64_t bucket, int num_groups, std::span<std::byte> sums);

  CommQueue& queue_;
  const ShardLayout& layout_;
  LeafSchedule schedule_;
  Communicator& communicator_;
  DType dtype_;  // of buckets
  int group_size_, num_groups_, group_, place_;
  Buffer lanes_;  // (G, chunk)
  Buffer sums_;   // (chunk) of fp32
  Buffer sent_;   // (chunk)
  Buffer terms_;  // (num_groups, owned)
};

}  // namespace zerofleet
