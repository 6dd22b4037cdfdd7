#include "kernels/moe/row_order.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "core/error.h"
#include "test/kernels/every_path.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

struct Leaves {
  std::size_t num_leaves, num_experts;
  std::int32_t most;  // rows of a leaf for an expert
};

/// Random counts, some of them 0; of one leaf and one expert all.
SharedValues<std::int32_t> counts_of(const Leaves& leaves, std::mt19937& random) {
  SharedValues<std::int32_t> counts(leaves.num_leaves * leaves.num_experts);
  for (std::int32_t& count : counts)
    count = std::max(0, static_cast<std::int32_t>(random() % static_cast<unsigned>(leaves.most + 2)) - 1);
  return counts;
}

/// The same, one row after the other.
struct ExpectedOrder {
  ExpectedOrder(const Leaves& leaves, const SharedValues<std::int32_t>& counts) {
    std::vector<std::vector<std::int32_t>> of_experts(leaves.num_experts);
    std::int32_t row = 0;
    for (std::size_t leaf = 0; leaf < leaves.num_leaves; ++leaf) {
      for (std::size_t expert = 0; expert < leaves.num_experts; ++expert) {
        for (std::int32_t i = 0; i < counts[leaf * leaves.num_experts + expert]; ++i)
          of_experts[expert].push_back(row++);
      }
    }
    wanted.resize(static_cast<std::size_t>(row));
    for (const auto& rows : of_experts) {
      first.push_back(static_cast<std::int32_t>(arrived.size()));
      for (const std::int32_t number : rows) {
        wanted[static_cast<std::size_t>(number)] = static_cast<std::int32_t>(arrived.size());
        arrived.push_back(number);
      }
    }
    first.push_back(row);
  }
  std::vector<std::int32_t> first, arrived, wanted;
};

std::vector<std::int32_t> values_of(const SharedValues<std::int32_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace

DEVICE_TEST_CASE("rows of leaves are put in the order of experts, and back") {
  for (const Device device : cuda_devices_here()) {
    DeviceMachine machine(device);
    std::mt19937 random(17);
    for (const Leaves& leaves : {Leaves{2, 3, 4}, {3, 1, 300}, {8, 5, 9}, {4, 20, 2}, {2, 2, 0}}) {
      CAPTURE(leaves.num_experts);
      const SharedValues<std::int32_t> counts = counts_of(leaves, random);
      const ExpectedOrder expected(leaves, counts);
      SharedValues<std::int32_t> first(leaves.num_experts + 1), arrived(expected.arrived.size()),
          wanted(arrived.size());
      order_rows(machine.ctx, counts, {first, arrived, wanted});
      synchronize(machine.ctx);
      CHECK(values_of(first) == expected.first);
      CHECK(values_of(arrived) == expected.arrived);
      CHECK(values_of(wanted) == expected.wanted);
      SharedValues<std::int32_t> per_expert(leaves.num_experts);
      count_rows(machine.ctx, first, per_expert);
      synchronize(machine.ctx);
      CHECK(std::accumulate(per_expert.begin(), per_expert.end(), 0) == expected.first.back());
      for (std::size_t e = 0; e < per_expert.size(); ++e)
        CHECK(per_expert[e] == expected.first[e + 1] - expected.first[e]);
    }
  }
}

DEVICE_TEST_CASE("rows are picked by number, of any width") {
  for (const Device device : cuda_devices_here()) {
    DeviceMachine machine(device);
    std::mt19937 random(19);
    for (const DType dtype : kAllDTypes) {
      for (const std::int64_t cols : {1, 24, 37, 520}) {
        HostMatrix source = HostMatrix::random(dtype, 9, cols, random, 8), target(dtype, 7, cols, 16);
        SharedValues<std::int32_t> numbers(std::vector<std::int32_t>{8, 0, 0, 3, 7, 1, 5});
        pick_rows(machine.ctx, source.view(), numbers, target.view());
        synchronize(machine.ctx);
        for (std::int64_t row = 0; row < 7; ++row) {
          for (std::int64_t col = 0; col < cols; ++col) {
            REQUIRE(target.at(row, col) == source.at(numbers[static_cast<std::size_t>(row)], col));
          }
        }
      }
    }
  }
}

TEST_CASE("orders of rows are for CUDA devices") {
  Machine machine(best_cpu_isa(), 1);
  std::vector<std::int32_t> first(3), counts(2), rows(4);
  HostMatrix matrix(DType::kF32, 4, 2);
  CHECK_THROWS_AS(count_rows(machine.ctx, first, counts), Error);
  CHECK_THROWS_AS(order_rows(machine.ctx, counts, {first, rows, rows}), Error);
  CHECK_THROWS_AS(pick_rows(machine.ctx, matrix.view(), rows, matrix.view()), Error);
}
