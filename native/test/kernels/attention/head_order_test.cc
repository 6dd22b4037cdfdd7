#include "kernels/attention/head_order.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "test/kernels/every_path.h"

using namespace zerofleet;
using namespace zerofleet::test;

DEVICE_TEST_CASE("order_heads: the columns of each head move together, and back") {
  on_every_device([](const Context& ctx, DType dtype) {
    for (const auto& [rows, heads, dim] :
         {std::tuple<std::int64_t, std::int64_t, std::int64_t>{1, 1, 5}, {70, 3, 4}, {3, 16, 36}}) {
      std::mt19937 random(83);
      HostMatrix qkv = HostMatrix::random(dtype, rows, 3 * heads * dim, random, 2);
      const Table by_head = table_of(qkv);
      order_heads(ctx, {qkv.view(), heads, false});
      synchronize(ctx);
      const Table by_kind = table_of(qkv);
      for (std::size_t row = 0; row < by_head.size(); ++row) {
        for (std::int64_t i = 0; i < 3 * heads * dim; ++i) {
          const std::int64_t kind = i / (heads * dim), head = i / dim % heads;
          const auto at = static_cast<std::size_t>((3 * head + kind) * dim + i % dim);
          REQUIRE(by_kind[row][static_cast<std::size_t>(i)] == by_head[row][at]);
        }
      }
      order_heads(ctx, {qkv.view(), heads, true});
      synchronize(ctx);
      CHECK(table_of(qkv) == by_head);
    }
  });
}

TEST_CASE("order_heads refuses columns that are no whole heads") {
  Machine machine(best_cpu_isa(), 1);
  HostMatrix qkv(DType::kF32, 2, 10);
  CHECK_THROWS_AS(order_heads(machine.ctx, {qkv.view(), 2, false}), Error);
}
