#include "kernels/moe/moe.h"

#include <iterator>
#include <string>

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

void check(const ExpertGroups& groups, const ConstMatrix& tokens, const ConstMatrix& rows) {
  require(tokens.rows == groups.num_tokens && rows.rows == groups.num_rows() && tokens.cols == rows.cols &&
              tokens.dtype == rows.dtype,
          "invalid_argument", "experts: the matrices of tokens and of rows do not fit the groups");
}

}  // namespace

ExpertGroups group_by_expert(std::span<const std::int32_t> experts, std::int64_t experts_per_token,
                             std::int64_t num_experts) {
  require(experts_per_token >= 1 && num_experts >= 1 && std::ssize(experts) % experts_per_token == 0,
          "invalid_argument", "experts: needs experts_per_token choices for each token");
  ExpertGroups groups;
  groups.num_tokens = std::ssize(experts) / experts_per_token;
  groups.experts_per_token = experts_per_token;
  groups.first.resize(static_cast<std::size_t>(num_experts) + 1);
  groups.tokens.resize(experts.size());
  groups.rows.resize(experts.size());
  for (const std::int32_t expert : experts) {
    require(expert >= 0 && expert < num_experts, "invalid_argument",
            "experts: expert " + std::to_string(expert) + " of " + std::to_string(num_experts));
    ++groups.first[static_cast<std::size_t>(expert) + 1];
  }
  for (std::size_t e = 0; e + 1 < groups.first.size(); ++e) groups.first[e + 1] += groups.first[e];
  std::vector<std::int64_t> next = groups.first;
  for (std::size_t pair = 0; pair < experts.size(); ++pair) {
    const std::int64_t row = next[static_cast<std::size_t>(experts[pair])]++;
    groups.rows[pair] = row;
    groups.tokens[static_cast<std::size_t>(row)] = static_cast<std::int64_t>(pair) / experts_per_token;
  }
  return groups;
}

std::int64_t num_group_numbers(const Context& ctx, std::int64_t rows, std::int64_t num_experts) {
  return backend_of(ctx).group_by_expert.is_there() ? 2 * rows + num_experts + 1 : 0;
}

ExpertGroups group_by_expert(const Context& ctx, std::span<const std::int32_t> experts, std::int64_t experts_per_token,
                             std::int64_t num_experts, std::span<std::int32_t> memory) {
  const auto& group = backend_of(ctx).group_by_expert;
  if (!group.is_there()) return group_by_expert(experts, experts_per_token, num_experts);
  const std::int64_t rows = std::ssize(experts);
  require(experts_per_token >= 1 && num_experts >= 1 && rows % experts_per_token == 0 && rows <= INT32_MAX / 2,
          "invalid_argument", "experts: needs experts_per_token choices for each token");
  require(std::ssize(memory) == num_group_numbers(ctx, rows, num_experts), "invalid_argument",
          "experts: groups on a device need memory for two numbers per row, and one per expert and one more");
  const DeviceGroups to{memory.first(static_cast<std::size_t>(num_experts) + 1),
                        memory.last(2 * experts.size()).first(experts.size()), memory.last(experts.size())};
  group(ctx, experts, experts_per_token, to);
  ExpertGroups groups;
  groups.num_tokens = rows / experts_per_token;
  groups.experts_per_token = experts_per_token;
  groups.device_first = to.first.data();
  groups.device_tokens = to.tokens.data();
  groups.device_rows = to.rows.data();
  return groups;
}

ExpertGroups with_token_rows(const Context& ctx, const ExpertGroups& groups, std::span<std::int32_t> memory) {
  ExpertGroups all;
  all.num_tokens = groups.num_tokens;
  all.experts_per_token = groups.experts_per_token + 1;
  if (const auto& add_token_rows = backend_of(ctx).add_token_rows; add_token_rows.is_there()) {
    require(std::ssize(memory) == all.num_rows(), "invalid_argument",
            "experts: the rows of tokens need memory for all");
    add_token_rows(ctx, groups, memory);
    all.device_rows = memory.data();
    return all;
  }
  all.tokens = groups.tokens;
  for (std::int64_t token = 0; token < groups.num_tokens; ++token) {
    const auto begin = groups.rows.begin() + token * groups.experts_per_token;
    all.rows.insert(all.rows.end(), begin, begin + groups.experts_per_token);
    all.rows.push_back(groups.num_rows() + token);
    all.tokens.push_back(token);
  }
  return all;
}

void gather_rows(const Context& ctx, const ExpertGroups& groups, const ConstMatrix& x, const Matrix& rows) {
  check(groups, x, rows);
  backend_of(ctx).gather_rows(ctx, groups, x, rows);
}

void gather_rows_backward(const Context& ctx, const ExpertGroups& groups, const ConstMatrix& drows, const Matrix& dx) {
  check(groups, dx, drows);
  backend_of(ctx).sum_rows(ctx, groups, {}, drows, dx);
}

void combine_rows(const Context& ctx, const ExpertGroups& groups, std::span<const float> weights,
                  const ConstMatrix& rows, const Matrix& y) {
  check(groups, y, rows);
  require(std::ssize(weights) == groups.num_rows(), "invalid_argument", "experts: needs one weight for each row");
  backend_of(ctx).sum_rows(ctx, groups, weights, rows, y);
}

void combine_rows_backward(const Context& ctx, const CombineBackward& args) {
  require(args.groups != nullptr, "invalid_argument", "experts: the groups are missing");
  check(*args.groups, args.dy, args.rows);
  check(*args.groups, args.dy, args.drows);
  require(std::ssize(args.weights) == args.groups->num_rows() && args.dweights.size() == args.weights.size(),
          "invalid_argument", "experts: needs one weight and one gradient for each row");
  backend_of(ctx).combine_rows_backward(ctx, args);
}

}  // namespace zerofleet
