#pragma once

#include <cstdint>
#include <vector>

#include "model/common/block.h"
#include "model/common/leaf_input.h"

namespace zerofleet {

/// A leaf without the ends of its sequences that change nothing: what follows the last target has no loss, and no token
/// before it sees it. With routers the tokens that they are balanced over stay, too. Documents that begin there do not
/// count: of a leaf without others the device's fastest attention can be used.
class TrimmedLeaf {
 public:
  enum class Lengths : std::uint8_t {
    kOwn,     // each sequence is cut to the length that it needs
    kCommon,  // all are cut to the longest of these lengths, rounded up to kCommonUnit tokens
  };
  /// Common lengths are multiples of it, so that a device chooses algorithms for few shapes.
  static constexpr std::int64_t kCommonUnit = 32;

  /// `leaf` is of `shape`, must outlive this, and was checked. `routed`: the model has routers.
  TrimmedLeaf(const LeafInput& leaf, const PassShape& shape, bool routed, Lengths lengths);
  TrimmedLeaf(const TrimmedLeaf&) = delete;
  TrimmedLeaf& operator=(const TrimmedLeaf&) = delete;

  const LeafInput& input() const { return input_; }
  const PassShape& shape() const { return shape_; }
  /// (M) Writes the position of each row's token within its document.
  void put_positions(std::span<std::int32_t> positions) const;

 private:
  /// @param counts how many tokens each sequence needs
  void set_shape(std::span<const std::int64_t> counts, Lengths lengths);
  /// Returns the first tokens of each sequence; without a copy where that is possible.
  std::span<const std::int32_t> cut(std::span<const std::int32_t> values, std::int64_t length,
                                    std::vector<std::int32_t>& copies) const;

  LeafInput input_;
  PassShape shape_;
  std::vector<std::int64_t> ends_;
  std::vector<std::int32_t> tokens_, targets_, document_starts_;
};

}  // namespace zerofleet
