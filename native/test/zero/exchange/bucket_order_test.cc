#include "zero/exchange/bucket_order.h"

#include <doctest/doctest.h>

#include <vector>

using namespace zerofleet;

TEST_CASE("bucket_order: full buckets are posted in turn, and those that wait for another part are known") {
  constexpr BucketId kShared0{0, 0}, kShared1{0, 1}, kExpert0{1, 0}, kExpert1{1, 1};
  const std::vector<BucketId> all{kShared0, kExpert0, kExpert1, kShared1};
  std::vector<BucketId> posted;
  BucketOrder order(all, [&](const BucketId& id, Buffer) { posted.push_back(id); });
  for (int round = 0; round < 2; ++round) {
    posted.clear();
    order.begin();
    CHECK(!order.waits_for_others(0));
    order.add(kShared1, Buffer());
    CHECK(!order.waits_for_others(0));  // it waits for its own part
    CHECK(!order.waits_for_others(1));
    order.add(kExpert0, Buffer());
    CHECK(order.waits_for_others(1));
    CHECK(posted.empty());
    order.add(kShared0, Buffer());
    CHECK(posted == std::vector<BucketId>{kShared0, kExpert0});
    CHECK(order.waits_for_others(0));
    CHECK(!order.waits_for_others(1));
    order.add(kExpert1, Buffer());
    CHECK(posted == all);
    for (const std::size_t part : {0U, 1U}) CHECK(!order.waits_for_others(part));
  }
  CHECK(!BucketOrder().waits_for_others(0));
}
