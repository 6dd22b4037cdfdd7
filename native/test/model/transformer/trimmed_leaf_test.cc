#include "model/transformer/trimmed_leaf.h"

#include <doctest/doctest.h>

#include <array>
#include <numeric>
#include <span>
#include <vector>

using namespace zerofleet;

namespace {

using Numbers = std::vector<std::int32_t>;

constexpr std::int64_t kLength = 100;
constexpr auto kCommon = TrimmedLeaf::Lengths::kCommon, kOwn = TrimmedLeaf::Lengths::kOwn;

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

TEST_CASE("a common length is a multiple of 32 behind the last target of all sequences") {
  const std::vector<std::pair<Numbers, std::int64_t>> cases{{{5}, 32},        {{32}, 32},    {{33}, 64},
                                                            {{5, 40, 9}, 64}, {{0, 0}, 32},  {{97, 3}, 100},
                                                            {{100, 1}, 100},  {{64, 64}, 64}};
  for (const auto& [counts, length] : cases) {
    const Leaf leaf(counts);
    const TrimmedLeaf trimmed(leaf.input(), leaf.shape, false, kCommon);
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
  const TrimmedLeaf trimmed(leaf.input(), leaf.shape, false, kCommon);
  Numbers expected;
  for (std::int32_t row = 0; row < 2 * 64; ++row) expected.push_back(row % 64 < 10 ? 0 : 10);
  CHECK(listed(trimmed.input().document_starts) == expected);
}

TEST_CASE("documents of padding alone are left out") {
  Leaf leaf({5, 100});
  for (std::int32_t row = 0; row < 2 * kLength; ++row)
    leaf.document_starts.push_back(row < kLength && row >= 5 ? 5 : 0);
  CHECK(TrimmedLeaf(leaf.input(), leaf.shape, false, kCommon).input().document_starts.empty());
  leaf.document_starts[4] = 4;
  CHECK(listed(TrimmedLeaf(leaf.input(), leaf.shape, false, kCommon).input().document_starts) == leaf.document_starts);
}

TEST_CASE("with routers the tokens that they are balanced over stay") {
  Leaf leaf({5, 40});
  CHECK(TrimmedLeaf(leaf.input(), leaf.shape, true, kCommon).shape().length == kLength);
  leaf.lengths = {70, 50};
  const TrimmedLeaf trimmed(leaf.input(), leaf.shape, true, kCommon);
  CHECK(trimmed.shape().length == 96);
  CHECK(listed(trimmed.input().lengths) == leaf.lengths);
}

TEST_CASE("own lengths end at the last target of each sequence") {
  Leaf leaf({5, 0, 40});
  for (std::int32_t row = 0; row < 3 * kLength; ++row) leaf.document_starts.push_back(row % kLength < 3 ? 0 : 3);
  const TrimmedLeaf trimmed(leaf.input(), leaf.shape, false, kOwn);
  const PassShape& shape = trimmed.shape();
  CHECK(shape.batch == 3);
  CHECK(shape.length == 40);
  CHECK(shape.rows() == 45);
  for (const auto& [sequence, begin, end] :
       std::vector<std::array<std::int64_t, 3>>{{0, 0, 5}, {1, 5, 5}, {2, 5, 45}}) {
    CHECK(shape.begin(sequence) == begin);
    CHECK(shape.end(sequence) == end);
  }
  Numbers tokens(45), starts(45, 3);
  std::iota(tokens.begin(), tokens.begin() + 5, 0);
  std::iota(tokens.begin() + 5, tokens.end(), 2 * kLength);
  for (const std::size_t row : {0, 1, 2, 5, 6, 7}) starts[row] = 0;
  CHECK(listed(trimmed.input().tokens) == tokens);
  CHECK(trimmed.input().targets[44] == 2 * kLength + 40);
  CHECK(listed(trimmed.input().document_starts) == starts);
}

TEST_CASE("own lengths that are equal are one length") {
  for (const std::int32_t count : {7, 100}) {
    const Leaf leaf({count, count});
    const TrimmedLeaf trimmed(leaf.input(), leaf.shape, false, kOwn);
    CHECK(trimmed.shape().ends.empty());
    CHECK(trimmed.shape().length == count);
  }
}

TEST_CASE("a leaf without targets has a row of each sequence") {
  const Leaf leaf({0, 0});
  const TrimmedLeaf trimmed(leaf.input(), leaf.shape, false, kOwn);
  CHECK(trimmed.shape().rows() == 2);
  CHECK(listed(trimmed.input().targets) == Numbers{-100, -100});
}

TEST_CASE("with routers own lengths are those of the sequences, and all tokens count") {
  Leaf leaf({5, 40});
  leaf.lengths = {70, 50};
  const TrimmedLeaf trimmed(leaf.input(), leaf.shape, true, kOwn);
  CHECK(trimmed.shape().rows() == 120);
  CHECK(trimmed.shape().end(0) == 70);
  CHECK(trimmed.input().lengths.empty());
}
