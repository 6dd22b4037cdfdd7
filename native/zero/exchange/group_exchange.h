#pragma once

#include <vector>

#include "core/device/buffer.h"
#include "zero/exchange/grad_exchange.h"

namespace zerofleet {

/// Exchange for worlds of whole groups. The ranks kG to kG + G - 1 compute the lanes of group k of a round. They sum
/// the lanes among themselves, and send only the sum to other groups.
///
/// Rank r = kG + i sums the blocks that the ranks i, G + i, 2G + i … own. It receives these blocks of its group's
/// lanes, and sends the sums to these ranks, one per group. If a node has G ranks, each of them sends 1/G of a bucket
/// to other nodes, and its peers have the same index on theirs. A rank sends as many bytes as in a LaneExchange: (1 -
/// 1/G) + (1/G - 1/N) of a bucket.
class GroupExchange final : public GradExchange {
 public:
  GroupExchange(CommQueue& queue, const ShardLayout& layout, Communicator& communicator, DType reduce_dtype,
                int group_size);

  GradTerms exchange(const LaneRound& round, std::int64_t bucket, std::span<std::byte> contents) override;
  std::size_t staging_bytes() const override;

 private:
  /// Returns the parts of a bucket that the members i of all groups own, in the order of groups, as consecutive ranges
  /// of bytes.
  std::vector<Range> chunk_of(std::int64_t bucket, int member) const;
  int rank_at(int group, int member) const { return group * group_size_ + member; }
  /// Sums the lanes of the group's ranks, rounded as terms. Empty without lanes.
  std::span<std::byte> sum_in_group(std::int64_t bucket, int num_lanes, std::span<std::byte> contents);
  GradTerms swap_sums(std::int64_t bucket, int num_groups, std::span<std::byte> sums);

  CommQueue& queue_;
  const ShardLayout& layout_;
  Communicator& communicator_;
  DType dtype_;  // of buckets
  int group_size_, num_groups_, group_, member_;
  Buffer lanes_;  // (G, chunk)
  Buffer sums_;   // (chunk) of fp32
  Buffer sent_;   // (chunk)
  Buffer terms_;  // (num_groups, owned)
};

}  // namespace zerofleet
