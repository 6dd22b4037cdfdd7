#include "kernels/elementwise/bias.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "test/kernels/every_path.h"

using namespace zerofleet;
using namespace zerofleet::test;

DEVICE_TEST_CASE("bias_gradient sums the rows, to the same bits with one, two and three threads") {
  on_every_device([](const Context& ctx, DType dtype) {
    for (const auto& [rows, cols] :
         {std::pair<std::int64_t, std::int64_t>{1, 3}, {64, 40}, {331, 37}, {64 * 256 + 1, 4}}) {
      std::mt19937 random(83);
      HostMatrix dy = HostMatrix::random(dtype, rows, cols, random, 2);
      SharedValues<float> dbias(std::vector<float>(static_cast<std::size_t>(cols), -7.0F));
      bias_gradient(ctx, dy.view(), dbias);
      synchronize(ctx);
      Table expected(1, std::vector<double>(static_cast<std::size_t>(cols)));
      for (const auto& row : table_of(dy)) expected = added(expected, {row});
      CHECK(relative_error(row_of(dbias), expected) < 2e-6);
      SharedValues<float> in_parts(dbias.size());
      const std::int64_t first = std::min<std::int64_t>(64, rows);
      bias_gradient(ctx, dy.view().first_rows(first), in_parts);
      if (first < rows) bias_gradient(ctx, dy.view().row_slice(first, rows - first), in_parts, true);
      synchronize(ctx);
      CHECK(relative_error(row_of(in_parts), expected) < 2e-6);
      if (ctx.device.kind != DeviceKind::kCpu) continue;
      CHECK(in_parts == dbias);
      for (const int threads : {1, 3}) {
        Machine machine(ctx.cpu_isa, threads);
        SharedValues<float> again(dbias.size());
        bias_gradient(machine.ctx, dy.view(), again);
        CHECK(again == dbias);
      }
    }
  });
}

TEST_CASE("bias_gradient refuses a gradient of another width") {
  Machine machine(best_cpu_isa(), 1);
  HostMatrix dy(DType::kF32, 3, 4);
  std::vector<float> dbias(5);
  CHECK_THROWS_AS(bias_gradient(machine.ctx, dy.view(), dbias), Error);
}
