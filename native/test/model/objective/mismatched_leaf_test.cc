#include "model/objective/mismatched_leaf.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "test/error_code.h"

using namespace zerofleet;
using zerofleet::test::code_of;

using Tokens = std::vector<std::int32_t>;

namespace {

/// The leaf's sequences, each of which `length` tokens, in the order that begins with the second one.
Tokens rotated(Tokens rows, std::size_t length) {
  std::ranges::rotate(rows, rows.begin() + static_cast<std::ptrdiff_t>(length));
  return rows;
}

MismatchedLeaf with_next(const Tokens& tokens, const Tokens& targets, std::int64_t batch, std::size_t length) {
  const Tokens next_tokens = rotated(tokens, length), next_targets = rotated(targets, length);
  return mismatched_leaf({tokens, targets}, {next_tokens, next_targets}, batch);
}

}  // namespace

TEST_CASE("objectives: KTO's mismatched leaf has each prompt before the completion of another sequence") {
  const Tokens tokens = {1,  2,  3,  4,  0,            // 1 2 | 3 4 5
                         11, 12, 13, 14, 15,           // 11 | 12 13 (14) 15 16, of which 14 is no target
                         21, 22, 23, 24, 0};           // 21 22 23 24 | 25
  const Tokens targets = {-100, 3,    4,    5,  -100,  //
                          12,   13,   -100, 15, 16,    //
                          -100, -100, -100, 25, -100};
  const MismatchedLeaf leaf = with_next(tokens, targets, 3, 5);
  CHECK(leaf.tokens == Tokens{1, 2, 12, 13, 14,  // cut off
                              11, 0, 0, 0, 0, 21, 22, 23, 24, 3});
  CHECK(leaf.targets == Tokens{-100, 12, 13, -100, 15,  //
                               25, -100, -100, -100, -100, -100, -100, -100, 3, 4});
}

TEST_CASE("objectives: rows of KTO's mismatched leaf have no targets where one of both sequences has none") {
  const Tokens tokens = {1, 2, 3, 4, 5, 6}, targets = {2, 3, -100, -100, 6, 7};
  const MismatchedLeaf leaf = with_next(tokens, targets, 3, 2);
  CHECK(leaf.targets == Tokens{-100, -100, -100, -100, 2, 3});
  CHECK(leaf.tokens == Tokens{0, 0, 0, 0, 5, 2});
  const LeafInput whole{tokens, targets}, part{std::span(tokens).first(4), std::span(targets).first(4)};
  CHECK(code_of([&] { mismatched_leaf(whole, whole, 4); }) == "invalid_argument");
  CHECK(code_of([&] { mismatched_leaf(whole, part, 2); }) == "invalid_argument");
}
