#include "kernels/moe/moe.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "test/kernels/moe/routes.h"

using namespace zerofleet;
using namespace zerofleet::test;

TEST_CASE("rows of experts are gathered by expert in rising token, and no token is dropped") {
  const std::vector<std::int32_t> experts{2, 0, 2, 3, 0, 2, 3, 2};  // 4 tokens, 2 each, of 5 experts
  const ExpertGroups groups = group_by_expert(experts, 2, 5);
  CHECK(groups.first == std::vector<std::int64_t>{0, 2, 2, 6, 8, 8});
  CHECK(groups.tokens == std::vector<std::int64_t>{0, 2, 0, 1, 2, 3, 1, 3});
  CHECK(groups.rows == std::vector<std::int64_t>{2, 0, 3, 6, 1, 4, 7, 5});
}

namespace {

/// Groups of the choices, in host memory wherever they were made.
ExpertGroups grouped(const Context& ctx, const SharedValues<std::int32_t>& experts, std::int64_t chosen,
                     std::int64_t num_experts) {
  SharedValues<std::int32_t> memory(num_numbers(ctx, experts.size(), num_experts));
  ExpertGroups groups = group_by_expert(ctx, experts, chosen, num_experts, memory);
  if (ctx.device.kind == DeviceKind::kCpu) return groups;
  synchronize(ctx);
  groups.first.assign(groups.device_first, groups.device_first + num_experts + 1);
  groups.tokens.assign(groups.device_tokens, groups.device_tokens + groups.num_rows());
  groups.rows.assign(groups.device_rows, groups.device_rows + groups.num_rows());
  return groups;
}

}  // namespace

DEVICE_TEST_CASE("choices of experts are grouped alike on every device: of no token, of thousands, all of one expert") {
  struct Shape {
    std::int64_t tokens, chosen, num_experts, used;
  };
  for (const Device device : devices_here()) {
    DeviceMachine machine(device);
    for (const auto& [tokens, chosen, num_experts, used] : {Shape{1, 1, 1, 1},
                                                            {3, 2, 70, 70},
                                                            {700, 8, 9, 9},
                                                            {2049, 1, 5, 4},
                                                            {1024, 2, 4, 1},
                                                            {37, 8, 16, 3},
                                                            {0, 2, 3, 3}}) {
      CAPTURE(tokens);
      std::mt19937 random(113);
      SharedValues<std::int32_t> experts(static_cast<std::size_t>(tokens * chosen));
      // The last ones of those in use: the first have no rows.
      for (auto& expert : experts)
        expert = static_cast<std::int32_t>(num_experts - 1 -
                                           static_cast<std::int64_t>(random() % static_cast<unsigned>(used)));
      const ExpertGroups groups = grouped(machine.ctx, experts, chosen, num_experts);
      std::vector<std::int64_t> first(static_cast<std::size_t>(num_experts) + 1), at_tokens(experts.size()),
          rows(experts.size());
      std::int64_t row = 0;
      for (std::int64_t expert = 0; expert < num_experts; ++expert) {
        first[static_cast<std::size_t>(expert)] = row;
        for (std::size_t pair = 0; pair < experts.size(); ++pair) {
          if (experts[pair] != expert) continue;
          rows[pair] = row;
          at_tokens[static_cast<std::size_t>(row++)] = static_cast<std::int64_t>(pair) / chosen;
        }
      }
      first.back() = row;
      CHECK(groups.first == first);
      CHECK(groups.tokens == at_tokens);
      CHECK(groups.rows == rows);
    }
  }
}

namespace {

/// In float64: sums of rows by token, weighted and plain, and the gradients of the weighted ones.
struct ExpectedRows {
  Table sums, plain, row_gradients, weight_gradients;
};

ExpectedRows expected_rows(const Routes& routes, const ExpertGroups& groups, const HostMatrix& rows,
                           const HostMatrix& dy) {
  const auto m = static_cast<std::size_t>(dy.rows()), d = static_cast<std::size_t>(dy.cols());
  const Table zeros(m, std::vector<double>(d));
  ExpectedRows expected{zeros, zeros, Table(routes.experts.size(), std::vector<double>(d)), Table(1)};
  for (std::size_t pair = 0; pair < routes.experts.size(); ++pair) {
    const std::size_t token = pair / static_cast<std::size_t>(groups.experts_per_token),
                      row = static_cast<std::size_t>(groups.rows[pair]);
    const double weight = static_cast<double>(routes.weights[pair]);
    double product = 0;
    for (std::size_t j = 0; j < d; ++j) {
      const double value = rows.at(groups.rows[pair], static_cast<std::int64_t>(j)),
                   from_above = dy.at(static_cast<std::int64_t>(token), static_cast<std::int64_t>(j));
      expected.sums[token][j] += weight * value;
      expected.plain[token][j] += value;
      expected.row_gradients[row][j] = weight * from_above;
      product += from_above * value;
    }
    expected.weight_gradients[0].push_back(product);
  }
  return expected;
}

void check_rows_of_experts(const Context& ctx, DType dtype, std::int64_t num_tokens, std::int64_t cols,
                           std::int64_t gap) {
  constexpr std::int64_t kExperts = 6, kChosen = 3;
  std::mt19937 random(109);
  const Routes routes = routes_of(ctx, HostMatrix::random(DType::kF32, num_tokens, kExperts, random), kChosen);
  SharedValues<std::int32_t> on_device(num_numbers(ctx, routes.experts.size(), kExperts));
  ExpertGroups groups = group_by_expert(ctx, routes.experts, kChosen, kExperts, on_device);
  if (ctx.device.kind != DeviceKind::kCpu) {  // the expected result is made of the host's
    const ExpertGroups here = group_by_expert(routes.experts, kChosen, kExperts);
    std::tie(groups.first, groups.rows) = std::tie(here.first, here.rows);
  }
  HostMatrix x = HostMatrix::random(dtype, num_tokens, cols, random, 2 * gap),
             rows(dtype, num_tokens * kChosen, cols, gap);
  gather_rows(ctx, groups, x.view(), rows.view());
  synchronize(ctx);
  for (std::size_t pair = 0; pair < routes.experts.size(); ++pair) {
    const std::int64_t row = groups.rows[pair], token = static_cast<std::int64_t>(pair) / kChosen;
    const auto expert = static_cast<std::size_t>(routes.experts[pair]);
    CHECK((row >= groups.first[expert] && row < groups.first[expert + 1]));
    for (std::int64_t j = 0; j < cols; ++j) REQUIRE(rows.at(row, j) == x.at(token, j));
  }

  HostMatrix results = HostMatrix::random(dtype, num_tokens * kChosen, cols, random, 3 * gap),
             y(dtype, num_tokens, cols);
  HostMatrix dy = HostMatrix::random(dtype, num_tokens, cols, random),
             drows(dtype, num_tokens * kChosen, cols, 2 * gap), dx(dtype, num_tokens, cols);
  SharedValues<float> dweights(routes.weights.size());
  combine_rows(ctx, groups, routes.weights, results.view(), y.view());
  combine_rows_backward(ctx, {&groups, routes.weights, results.view(), dy.view(), drows.view(), dweights});
  gather_rows_backward(ctx, groups, results.view(), dx.view());
  synchronize(ctx);
  const ExpectedRows expected = expected_rows(routes, groups, results, dy);
  CHECK(relative_error(y, expected.sums) < tolerance(dtype));
  CHECK(relative_error(dx, expected.plain) < tolerance(dtype));
  CHECK(relative_error(drows, expected.row_gradients) < tolerance(dtype));
  CHECK(relative_error(row_of(dweights), expected.weight_gradients) < 2e-6);

  HostMatrix all_rows = HostMatrix::random(dtype, num_tokens * (kChosen + 1), cols, random),
             all_dx(dtype, num_tokens, cols);
  SharedValues<std::int32_t> memory(ctx.device.kind == DeviceKind::kCpu ? 0
                                                                        : static_cast<std::size_t>(all_rows.rows()));
  gather_rows_backward(ctx, with_token_rows(ctx, groups, memory), all_rows.view(), all_dx.view());
  synchronize(ctx);
  Table with_tokens = expected_rows(routes, groups, all_rows, dy).plain;
  for (std::int64_t i = 0; i < num_tokens; ++i) {
    for (std::int64_t j = 0; j < cols; ++j)
      with_tokens[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] += all_rows.at(num_tokens * kChosen + i, j);
  }
  CHECK(relative_error(all_dx, with_tokens) < tolerance(dtype));

  const auto check_again = [&](const Context& other) {  // and with the gradients over the rows
    HostMatrix again_y(dtype, num_tokens, cols), again_dx(dtype, num_tokens, cols), in_place = results;
    SharedValues<float> again_dweights(dweights.size());
    combine_rows(other, groups, routes.weights, results.view(), again_y.view());
    gather_rows_backward(other, groups, results.view(), again_dx.view());
    combine_rows_backward(other,
                          {&groups, routes.weights, in_place.view(), dy.view(), in_place.view(), again_dweights});
    synchronize(other);
    CHECK(again_y == y);
    CHECK(again_dx == dx);
    CHECK(again_dweights == dweights);
    for (std::int64_t i = 0; i < in_place.rows(); ++i) {
      for (std::int64_t j = 0; j < cols; ++j) REQUIRE(in_place.at(i, j) == drows.at(i, j));
    }
  };
  check_again(ctx);
  if (ctx.device.kind != DeviceKind::kCpu) return;
  for (const int threads : {1, 3}) {
    Machine machine(ctx.cpu_isa, threads);
    check_again(machine.ctx);
  }
}

}  // namespace

DEVICE_TEST_CASE(
    "gathering and combining rows of experts, and their backward, match float64 with any number of threads") {
  on_every_device([](const Context& ctx, DType dtype) {
    check_rows_of_experts(ctx, dtype, 150, 37, 1);
    check_rows_of_experts(ctx, dtype, 5, 40, 8);
    check_rows_of_experts(ctx, dtype, 3, 1032, 8);  // rows for a whole block of threads
  });
}

TEST_CASE("rows of experts refuse shapes that do not fit") {
  Machine machine(best_cpu_isa(), 1);
  HostMatrix x(DType::kF32, 2, 3), rows(DType::kF32, 4, 3), other(DType::kBF16, 4, 3);
  const std::vector<std::int32_t> experts{0, 1, 3, 2};
  const std::vector<float> weights(4, 0.5F), few(3);
  CHECK_THROWS_AS(group_by_expert(std::vector<std::int32_t>{0, 4}, 2, 4), Error);
  CHECK_THROWS_AS(group_by_expert(std::vector<std::int32_t>{0, -1}, 2, 4), Error);
  CHECK_THROWS_AS(group_by_expert(std::vector<std::int32_t>{0, 1, 2}, 2, 4), Error);
  const ExpertGroups groups = group_by_expert(experts, 2, 4);
  CHECK_THROWS_AS(gather_rows(machine.ctx, groups, x.view(), other.view()), Error);
  CHECK_THROWS_AS(gather_rows(machine.ctx, groups, x.view(), rows.view().first_rows(3)), Error);
  CHECK_THROWS_AS(combine_rows(machine.ctx, groups, few, rows.view(), x.view()), Error);
  CHECK_THROWS_AS(combine_rows_backward(machine.ctx, {&groups, weights, rows.view(), x.view(), rows.view(), {}}),
                  Error);
}
