#include "model/mlp/row_exchange.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/device/transfer.h"
#include "model/transformer/transformer.h"
#include "test/model/expert_sets.h"
#include "test/model/family_configs.h"
#include "test/shared_bytes.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// Rows that RowExchange moves: 3 leaves with different numbers of rows for 6 experts.
struct Rows {
  static constexpr std::int64_t kSets = 3, kExperts = 6;
  std::int64_t cols;
  std::int64_t more = 0;  // rows for each that has some

  /// Set 1 gets none of leaf 2, and expert 5 none at all.
  std::int64_t count(std::int64_t leaf, std::int64_t expert) const {
    if (expert == 5 || (leaf == 2 && (expert == 2 || expert == 3))) return 0;
    return (leaf + 2 * expert) % 4 + 1 + more;
  }
  static float mark(std::int64_t leaf, std::int64_t expert, std::int64_t row) {
    return static_cast<float>(10000 * leaf + 100 * expert + row);
  }
  /// The expert of each choice of a leaf, in disorder.
  std::vector<std::int32_t> choices(std::int64_t leaf) const {
    std::vector<std::int32_t> experts;
    for (std::int64_t e = kExperts - 1; e >= 0; --e)
      experts.insert(experts.end(), static_cast<std::size_t>(count(leaf, e)), static_cast<std::int32_t>(e));
    return experts;
  }
};

/// Each element of a row has the row's value.
void store(const Context& ctx, const Matrix& to, const std::vector<float>& rows) {
  std::vector<float> values;
  for (const float value : rows) values.insert(values.end(), static_cast<std::size_t>(to.stride), value);
  copy_bytes(ctx, {static_cast<std::byte*>(to.data), values.size() * sizeof(float)}, ctx.device,
             std::as_bytes(std::span(values)), Device{});
}

/// The last element of each row.
std::vector<float> last_column(const Context& ctx, const Matrix& matrix) {
  const std::vector<float> all =
      fetched(ctx, {static_cast<const float*>(matrix.data), static_cast<std::size_t>(matrix.rows * matrix.stride)});
  std::vector<float> column;
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    column.push_back(all[static_cast<std::size_t>(row * matrix.stride + matrix.cols - 1)]);
  return column;
}

std::vector<std::int64_t> fetched_numbers(const Context& ctx, std::span<const std::int32_t> numbers) {
  std::vector<std::int32_t> here(numbers.size());
  copy_bytes(ctx, std::as_writable_bytes(std::span(here)), Device{}, std::as_bytes(numbers), ctx.device);
  return {here.begin(), here.end()};
}

void check_rows(RowExchange& exchange, RowPlan& plan, const Rows& rows, std::int64_t set, const Context& ctx) {
  const std::vector<std::int32_t> choices = rows.choices(set);
  SharedValues<std::int32_t> experts(choices);
  SharedValues<std::int32_t> memory(
      static_cast<std::size_t>(num_group_numbers(ctx, static_cast<std::int64_t>(choices.size()), Rows::kExperts)));
  const ExpertGroups groups = group_by_expert(ctx, experts, 1, Rows::kExperts, memory);
  std::vector<float> of_leaf, of_experts;
  for (std::int64_t e = 0; e < Rows::kExperts; ++e) {
    for (std::int64_t row = 0; row < rows.count(set, e); ++row) of_leaf.push_back(Rows::mark(set, e, row));
    if (e < exchange.experts().begin || e >= exchange.experts().end) continue;
    for (std::int64_t leaf = 0; leaf < Rows::kSets; ++leaf) {
      for (std::int64_t row = 0; row < rows.count(leaf, e); ++row) of_experts.push_back(Rows::mark(leaf, e, row));
    }
  }
  exchange.plan(groups, plan);
  REQUIRE(plan.num_rows() == static_cast<std::int64_t>(of_experts.size()));
  std::int64_t end = 0;
  for (std::int64_t e = exchange.experts().begin; e < exchange.experts().end; ++e) {
    CHECK(plan.first[static_cast<std::size_t>(e - exchange.experts().begin)] == end);
    for (std::int64_t leaf = 0; leaf < Rows::kSets; ++leaf) end += rows.count(leaf, e);
  }
  const auto num_rows = static_cast<std::int64_t>(of_leaf.size());
  Tensor leaf_rows(ctx, DType::kF32, num_rows, rows.cols), back(ctx, DType::kF32, num_rows, rows.cols);
  store(ctx, leaf_rows.view(), of_leaf);
  const Matrix room = exchange.room(DType::kF32, plan.num_rows(), rows.cols);
  exchange.to_experts(plan, leaf_rows.view(), room);
  CHECK(last_column(ctx, room) == of_experts);
  exchange.to_leaves(plan, room, back.view());
  CHECK(last_column(ctx, back.view()) == of_leaf);
}

ModelConfig config_with_experts() {
  for (const auto& [name, config] : family_configs()) {
    if (config.num_experts > 0) return config;
  }
  throw Error("internal", "there is no family with experts");
}

}  // namespace

DEVICE_TEST_CASE(
    "row_exchange: an expert's rows stand leaf by leaf, and find their way back, in a plan that was used before") {
  for (const Device device : devices_here()) {
    for (const std::int64_t cols : {5, 512}) {  // of 512, rows are padded
      CAPTURE(to_string(device));
      const auto codes = on_sets(
          Rows::kSets,
          [&](ExpertExchange& ranks, const Context& ctx) {
            RowExchange exchange(ctx, ranks, Rows::kExperts);
            RowPlan plan;
            for (const std::int64_t more : {0, 40, 7}) {
              check_rows(exchange, plan, {cols, more}, ranks.set(), ctx);
              if (ctx.device.kind == DeviceKind::kCpu) continue;
              CHECK(fetched_numbers(ctx, plan.device_first.span()) == plan.first);
            }
          },
          device);
      CHECK(codes == all_well(Rows::kSets));
    }
  }
}

TEST_CASE("row_exchange: sets that don't divide the experts are refused") {
  const auto codes = on_sets(2, [&](ExpertExchange& ranks, const Context& ctx) {
    CHECK(code_of([&] { RowExchange(ctx, ranks, 5); }) == "invalid_argument");
    CHECK(code_of([&] { RowExchange(ctx, ranks, 0); }) == "invalid_argument");
    ModelConfig five = config_with_experts();
    five.num_experts = 5;
    Transformer(ctx, five, DType::kF32, 1, 4, {.experts = &ranks});
  });
  CHECK(codes == std::vector<std::string>(2, "invalid_argument"));
}
