#include "kernels/moe.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "core/error.h"
#include "core/transfer.h"
#include "kernels/cpu/launch.h"
#include "kernels/cuda/model_launch.h"

namespace zerofleet {
namespace {

void check(const ExpertGroups& groups, const ConstMatrix& tokens, const ConstMatrix& rows) {
  require(tokens.rows == groups.num_tokens && rows.rows == std::ssize(groups.tokens) && tokens.cols == rows.cols &&
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

void copy_to_device(const Context& ctx, ExpertGroups& groups, std::span<std::int32_t> memory) {
  const std::size_t pairs = groups.rows.size();
  require(memory.size() == 2 * pairs && groups.tokens.size() == pairs && pairs <= INT32_MAX, "invalid_argument",
          "experts: the groups' numbers on a device need memory for two per row");
  std::vector<std::int32_t> numbers(2 * pairs);
  const auto narrow = [](std::int64_t number) { return static_cast<std::int32_t>(number); };
  std::ranges::transform(groups.tokens, numbers.begin(), narrow);
  std::ranges::transform(groups.rows, numbers.begin() + std::ssize(groups.tokens), narrow);
  copy_bytes(ctx, std::as_writable_bytes(memory), ctx.device, std::as_bytes(std::span(numbers)), Device{});
  groups.device_tokens = memory.data();
  groups.device_rows = memory.data() + pairs;
}

void gather_rows(const Context& ctx, const ExpertGroups& groups, const ConstMatrix& x, const Matrix& rows) {
  check(groups, x, rows);
  switch (ctx.device.kind) {
    case DeviceKind::kCpu: return cpu::gather_rows(ctx, groups, x, rows);
    case DeviceKind::kCuda: return cuda::gather_rows(ctx, groups, x, rows);
  }
}

void gather_rows_backward(const Context& ctx, const ExpertGroups& groups, const ConstMatrix& drows, const Matrix& dx) {
  check(groups, dx, drows);
  switch (ctx.device.kind) {
    case DeviceKind::kCpu: return cpu::sum_rows(ctx, groups, {}, drows, dx);
    case DeviceKind::kCuda: return cuda::sum_rows(ctx, groups, {}, drows, dx);
  }
}

void combine_rows(const Context& ctx, const ExpertGroups& groups, std::span<const float> weights,
                  const ConstMatrix& rows, const Matrix& y) {
  check(groups, y, rows);
  require(weights.size() == groups.rows.size(), "invalid_argument", "experts: needs one weight for each row");
  switch (ctx.device.kind) {
    case DeviceKind::kCpu: return cpu::sum_rows(ctx, groups, weights, rows, y);
    case DeviceKind::kCuda: return cuda::sum_rows(ctx, groups, weights, rows, y);
  }
}

void combine_rows_backward(const Context& ctx, const CombineBackward& args) {
  require(args.groups != nullptr, "invalid_argument", "experts: the groups are missing");
  check(*args.groups, args.dy, args.rows);
  check(*args.groups, args.dy, args.drows);
  require(args.weights.size() == args.groups->rows.size() && args.dweights.size() == args.weights.size(),
          "invalid_argument", "experts: needs one weight and one gradient for each row");
  switch (ctx.device.kind) {
    case DeviceKind::kCpu: return cpu::combine_rows_backward(ctx, args);
    case DeviceKind::kCuda: return cuda::combine_rows_backward(ctx, args);
  }
}

}  // namespace zerofleet
