#pragma once

#include <cstdint>
#include <vector>

#include "model/common/block.h"
#include "model/common/leaf_input.h"

namespace zerofleet {

/// A leaf without the ends of its sequences that change nothing: what follows the last target has no loss, and no token
/// before it sees it. With routers the tokens that they are balanced over stay, too. All sequences are cut to one
/// length, the longest that is needed, rounded up to kLengthUnit tokens. Documents that begin there do not count: of a
/// leaf without others the device's fastest attention can be used.
class TrimmedLeaf {
 public:
  /// Even, so that tokens stay in the pairs that products read. A device has few shapes to choose algorithms for.
  static constexpr std::int64_t kLengthUnit = 32;

  /// `leaf` is of `shape`, must outlive this, and was checked. `routed`: the model has routers.
  TrimmedLeaf(const LeafInput& leaf, const PassShape& shape, bool routed);
  TrimmedLeaf(const TrimmedLeaf&) = delete;
  TrimmedLeaf& operator=(const TrimmedLeaf&) = delete;

  const LeafInput& input() const { return input_; }
  const PassShape& shape() const { return shape_; }

 private:
  /// Returns the first tokens of each sequence; without a copy where that is possible.
  std::span<const std::int32_t> cut(std::span<const std::int32_t> values, std::int64_t length,
                                    std::vector<std::int32_t>& copies) const;

  LeafInput input_;
  PassShape shape_;
  std::vector<std::int32_t> tokens_, targets_, document_starts_;
};

}  // namespace zerofleet
