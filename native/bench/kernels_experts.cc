// Mixture of experts around its products: routing, and rows in transit to experts and back.
#include "bench/kernel_bench.h"
#include "core/device/buffer.h"
#include "kernels/moe/moe.h"
#include "kernels/moe/moe_router.h"

namespace zerofleet::bench {
namespace {

/// A model without experts is measured with 8, of which a token takes 2.
std::int64_t num_experts(const KernelBench& bench) {
  return bench.config.num_experts > 0 ? bench.config.num_experts : 8;
}
std::int64_t chosen(const KernelBench& bench) {
  return bench.config.num_experts > 0 ? bench.config.experts_per_token : 2;
}

/// A routed micro-batch.
struct Routed {
  std::span<float> probs, weights;
  std::span<std::int32_t> chosen;
  ExpertGroups groups;
  std::span<std::int32_t> group_memory;
};

std::span<std::int32_t> numbers(KernelBench& bench, std::int64_t count) {
  return bench.keep(Buffer(bench.ctx.device, static_cast<std::size_t>(count) * sizeof(std::int32_t)))
      .as<std::int32_t>();
}

void group(const KernelBench& bench, Routed& routed) {
  routed.groups = group_by_expert(bench.ctx, routed.chosen, chosen(bench), num_experts(bench), routed.group_memory);
}

RouterForward router_args(KernelBench& bench, Routed& routed) {
  const std::int64_t rows = bench.rows();
  routed.probs = bench.random_floats(rows * num_experts(bench));
  routed.weights = bench.random_floats(rows * chosen(bench));
  routed.chosen = numbers(bench, rows * chosen(bench));
  return {bench.random(rows, num_experts(bench)), chosen(bench), routed.probs, routed.chosen, routed.weights};
}

Routed& routed_in(KernelBench& bench) {
  Routed& routed = bench.keep(Routed{});
  if (!bench.has_operands()) return routed;
  route(bench.ctx, router_args(bench, routed));
  routed.group_memory = numbers(bench, num_group_numbers(bench.ctx, bench.rows() * chosen(bench), num_experts(bench)));
  group(bench, routed);
  return routed;
}

KernelCase router_forward(KernelBench& bench) {
  Routed& routed = bench.keep(Routed{});
  const RouterForward args = router_args(bench, routed);
  KernelCase made{shape_text({bench.rows(), num_experts(bench)})};
  made.bytes = static_cast<double>(bench.rows()) * ((bench.element() + 4) * static_cast<double>(num_experts(bench)) +
                                                    8 * static_cast<double>(chosen(bench)));
  made.run = [&bench, args] { route(bench.ctx, args); };
  made.results = {as_row(args.probs), as_row(args.weights)};
  return made;
}

KernelCase router_back(KernelBench& bench) {
  Routed& routed = routed_in(bench);
  const RouterBackward args{chosen(bench),
                            routed.probs,
                            routed.chosen,
                            bench.random_floats(bench.rows() * chosen(bench)),
                            bench.random_floats(num_experts(bench)),
                            bench.random(bench.rows(), num_experts(bench))};
  KernelCase made{shape_text({bench.rows(), num_experts(bench)})};
  made.bytes = static_cast<double>(bench.rows()) * ((bench.element() + 4) * static_cast<double>(num_experts(bench)) +
                                                    8 * static_cast<double>(chosen(bench)));
  made.run = [&bench, args] { route_backward(bench.ctx, args); };
  made.results = {args.dlogits};
  return made;
}

KernelCase grouping(KernelBench& bench) {
  Routed& routed = routed_in(bench);
  KernelCase made{shape_text({bench.rows(), chosen(bench)})};
  made.bytes = static_cast<double>(bench.rows() * chosen(bench)) * (4 + 8 + 8);
  made.run = [&bench, &routed] { group(bench, routed); };
  made.results = {as_row(routed.weights)};
  return made;
}

/// Tokens' rows (M, D), and those that go to experts (M · k, D).
Matrix tokens(KernelBench& bench) { return bench.random(bench.rows(), bench.config.hidden_size); }
Matrix expert_rows(KernelBench& bench) { return bench.random(bench.rows() * chosen(bench), bench.config.hidden_size); }

KernelCase case_over(const KernelBench& bench, std::int64_t matrices, std::function<void()> run, const Matrix& result) {
  KernelCase made{shape_text({bench.rows(), chosen(bench), bench.config.hidden_size})};
  made.bytes = bench.element() * static_cast<double>(matrices * bench.rows() * bench.config.hidden_size);
  made.run = std::move(run);
  made.results = {result};
  return made;
}

KernelCase gather(KernelBench& bench) {
  const Routed& routed = routed_in(bench);
  const Matrix x = tokens(bench), rows = expert_rows(bench);
  return case_over(
      bench, 1 + chosen(bench), [&bench, &routed, x, rows] { gather_rows(bench.ctx, routed.groups, x, rows); }, rows);
}

KernelCase gather_back(KernelBench& bench) {
  const Routed& routed = routed_in(bench);
  const Matrix drows = expert_rows(bench), dx = tokens(bench);
  return case_over(
      bench, 1 + chosen(bench),
      [&bench, &routed, drows, dx] { gather_rows_backward(bench.ctx, routed.groups, drows, dx); }, dx);
}

KernelCase combine(KernelBench& bench) {
  const Routed& routed = routed_in(bench);
  const Matrix rows = expert_rows(bench), y = tokens(bench);
  return case_over(
      bench, 1 + chosen(bench),
      [&bench, &routed, rows, y] { combine_rows(bench.ctx, routed.groups, routed.weights, rows, y); }, y);
}

KernelCase combine_back(KernelBench& bench) {
  const Routed& routed = routed_in(bench);
  const CombineBackward args{&routed.groups, routed.weights,     expert_rows(bench),
                             tokens(bench),  expert_rows(bench), bench.random_floats(bench.rows() * chosen(bench))};
  return case_over(
      bench, 1 + 2 * chosen(bench), [&bench, args] { combine_rows_backward(bench.ctx, args); }, args.drows);
}

constexpr KernelEntry kExpertKernels[] = {
    {"moe_router.forward", router_forward}, {"moe_router.backward", router_back}, {"moe_group", grouping},
    {"moe_gather.forward", gather},         {"moe_gather.backward", gather_back}, {"moe_combine.forward", combine},
    {"moe_combine.backward", combine_back},
};

}  // namespace

std::span<const KernelEntry> expert_kernels() { return kExpertKernels; }

}  // namespace zerofleet::bench
