#pragma once

#include <cstdint>
#include <span>

namespace zerofleet {

/// Identity of a micro-batch in a training. The masks of dropout depend on it, on their site in the model and on the
/// element, and on nothing else.
struct LeafKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint64_t leaf = 0;
};

/// A micro-batch of B sequences of T tokens.
struct LeafInput {
  std::span<const std::int32_t> tokens;   // (B, T)
  std::span<const std::int32_t> targets;  // (B, T); -100 does not count
  LeafKey key = {};
  /// (B, T) the position within its sequence where the document of this token begins, or empty: 0. A token sees its own
  /// document only, and its position counts from there. Within a sequence they never fall.
  std::span<const std::int32_t> document_starts = {};
  /// (B) how many tokens each sequence has, or empty: T. What follows them is padding, which does not count in the
  /// auxiliary loss of routers.
  std::span<const std::int32_t> lengths = {};
};

}  // namespace zerofleet
