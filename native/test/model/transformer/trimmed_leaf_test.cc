#include "model/transformer/trimmed_leaf.h"

#include <doctest/doctest.h>

#include <numeric>
#include <span>
#include <vector>

using namespace zerofleet;

namespace {

using Numbers = std::vector<std::int32_t>;

constexpr std::int64_t kLength = 100;

/// A leaf whose tokens are their positions, and whose sequences have targets up to the given counts of tokens.
struct Leaf {
  explicit Leaf(const Numbers& counts) : shape{std::ssize(counts), kLength} {
    tokens.resize(static_cast<std::size_t>(shape.rows()));
    std::iota(tokens.begin(), tokens.end(), 0);
    for (std::int64_t row = 0; row < shape.rows(); ++row) {
      const bool counts_here = row % kLength < counts[static_cast<std::size_t>(row / kLength)];
      targets.push_back(counts_here ? tokens[static_cast<std::size_t>(row)] + 1 : -100);
    }
  }
  LeafInput input() const { return {tokens, targets, {}, document_starts, lengths}; }

  PassShape shape;
  Numbers tokens, targets, document_starts, lengths;
};

Numbers listed(std::span<const std::int32_t> values) { return {values.begin(), values.end()}; }

}  // namespace

TEST_CASE("a leaf is cut behind the last target of its sequences, at a multiple of 32") {
  const std::vector<std::pair<Numbers, std::int64_t>> cases{{{5}, 32},        {{32}, 32},    {{33}, 64},
                                                            {{5, 40, 9}, 64}, {{0, 0}, 32},  {{97, 3}, 100},
                                                            {{100, 1}, 100},  {{64, 64}, 64}};
  for (const auto& [counts, length] : cases) {
    const Leaf leaf(counts);
    const TrimmedLeaf trimmed(leaf.input(), leaf.shape, false);
    CHECK(trimmed.shape().length == length);
    CHECK(trimmed.shape().batch == leaf.shape.batch);
    Numbers tokens, targets;
    for (std::int64_t sequence = 0; sequence < leaf.shape.batch; ++sequence) {
      for (std::int64_t position = 0; position < length; ++position) {
        tokens.push_back(leaf.tokens[static_cast<std::size_t>(sequence * kLength + position)]);
        targets.push_back(leaf.targets[static_cast<std::size_t>(sequence * kLength + position)]);
      }
    }
    CHECK(listed(trimmed.input().tokens) == tokens);
    CHECK(listed(trimmed.input().targets) == targets);
    CHECK(trimmed.input().document_starts.empty());
  }
}

TEST_CASE("document starts are cut like tokens") {
  Leaf leaf({5, 40});
  for (std::int32_t row = 0; row < 2 * kLength; ++row) leaf.document_starts.push_back(row % kLength < 10 ? 0 : 10);
  const TrimmedLeaf trimmed(leaf.input(), leaf.shape, false);
  Numbers expected;
  for (std::int32_t row = 0; row < 2 * 64; ++row) expected.push_back(row % 64 < 10 ? 0 : 10);
  CHECK(listed(trimmed.input().document_starts) == expected);
}

TEST_CASE("documents of padding alone are left out") {
  Leaf leaf({5, 100});
  for (std::int32_t row = 0; row < 2 * kLength; ++row)
    leaf.document_starts.push_back(row < kLength && row >= 5 ? 5 : 0);
  CHECK(TrimmedLeaf(leaf.input(), leaf.shape, false).input().document_starts.empty());
  leaf.document_starts[4] = 4;
  CHECK(listed(TrimmedLeaf(leaf.input(), leaf.shape, false).input().document_starts) == leaf.document_starts);
}

TEST_CASE("with routers the tokens that they are balanced over stay") {
  Leaf leaf({5, 40});
  CHECK(TrimmedLeaf(leaf.input(), leaf.shape, true).shape().length == kLength);
  leaf.lengths = {70, 50};
  const TrimmedLeaf trimmed(leaf.input(), leaf.shape, true);
  CHECK(trimmed.shape().length == 96);
  CHECK(listed(trimmed.input().lengths) == leaf.lengths);
}
