#include "model/objective/mismatched_leaf.h"

#include <doctest/doctest.h>

#include <vector>

#include "test/error_code.h"

using namespace zerofleet;
using zerofleet::test::code_of;

using Tokens = std::vector<std::int32_t>;

TEST_CASE("objectives: KTO's mismatched leaf has each prompt before the completion of the leaf's next sequence") {
  const Tokens tokens = {1,  2,  3,  4,  0,     // 1 2 | 3 4 5
                         11, 12, 13, 14, 15,    // 11 | 12 13 (14) 15 16, of which 14 is no target
                         21, 22, 23, 24, 0};    // 21 22 23 24 | 25
  const Tokens targets = {-100, 3,    4,    5,  -100,  //
                          12,   13,   -100, 15, 16,    //
                          -100, -100, -100, 25, -100};
  const MismatchedLeaf leaf = mismatched_leaf({tokens, targets}, 3);
  CHECK(leaf.tokens == Tokens{1,  2,  12, 13, 14,  // cut off
                              11, 0,  0,  0,  0,
                              21, 22, 23, 24, 3});
  CHECK(leaf.targets == Tokens{-100, 12,   13,   -100, 15,  //
                               25,   -100, -100, -100, -100,
                               -100, -100, -100, 3,    4});
}

TEST_CASE("objectives: rows of KTO's mismatched leaf have no targets where one of both sequences has none") {
  const Tokens tokens = {1, 2, 3, 4, 5, 6}, targets = {2, 3, -100, -100, 6, 7};
  const MismatchedLeaf leaf = mismatched_leaf({tokens, targets}, 3);
  CHECK(leaf.targets == Tokens{-100, -100, -100, -100, 2, 3});
  CHECK(leaf.tokens == Tokens{0, 0, 0, 0, 5, 2});
  CHECK(code_of([&] { mismatched_leaf({tokens, targets}, 1); }) == "invalid_argument");
  CHECK(code_of([&] { mismatched_leaf({tokens, targets}, 4); }) == "invalid_argument");
}
