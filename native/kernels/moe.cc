#include "kernels/moe.h"

#include <iterator>
#include <string>

#include "core/error.h"
#include "kernels/cpu/launch.h"

namespace zerofleet {
namespace {

void check(const ExpertGroups& groups, const ConstMatrix& tokens, const ConstMatrix& rows) {
  require(tokens.rows == groups.num_tokens && rows.rows == std::ssize(groups.tokens) && tokens.cols == rows.cols &&
              tokens.dtype == rows.dtype,
          "invalid_argument", "experts: the matrices of tokens and of rows do not fit the groups");
}

[[noreturn]] void unavailable(const Context& ctx) {
  throw Error("device_unavailable", "no rows of experts for " + to_string(ctx.device) + " in this build");
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

void gather_rows(const Context& ctx, const ExpertGroups& groups, const ConstMatrix& x, const Matrix& rows) {
  check(groups, x, rows);
  if (ctx.device.kind != DeviceKind::kCpu) unavailable(ctx);
  cpu::gather_rows(ctx, groups, x, rows);
}

void gather_rows_backward(const Context& ctx, const ExpertGroups& groups, const ConstMatrix& drows, const Matrix& dx) {
  check(groups, dx, drows);
  if (ctx.device.kind != DeviceKind::kCpu) unavailable(ctx);
  cpu::sum_rows(ctx, groups, {}, drows, dx);
}

void combine_rows(const Context& ctx, const ExpertGroups& groups, std::span<const float> weights,
                  const ConstMatrix& rows, const Matrix& y) {
  check(groups, y, rows);
  require(weights.size() == groups.rows.size(), "invalid_argument", "experts: needs one weight for each row");
  if (ctx.device.kind != DeviceKind::kCpu) unavailable(ctx);
  cpu::sum_rows(ctx, groups, weights, rows, y);
}

void combine_rows_backward(const Context& ctx, const CombineBackward& args) {
  require(args.groups != nullptr, "invalid_argument", "experts: the groups are missing");
  check(*args.groups, args.dy, args.rows);
  check(*args.groups, args.dy, args.drows);
  require(args.weights.size() == args.groups->rows.size() && args.dweights.size() == args.weights.size(),
          "invalid_argument", "experts: needs one weight and one gradient for each row");
  if (ctx.device.kind != DeviceKind::kCpu) unavailable(ctx);
  cpu::combine_rows_backward(ctx, args);
}

}  // namespace zerofleet
