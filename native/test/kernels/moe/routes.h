#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/moe/moe.h"
#include "kernels/moe/moe_router.h"
#include "test/kernels/every_path.h"

namespace zerofleet::test {

/// Choices of a router.
struct Routes {
  Routes(std::int64_t rows, std::int64_t num_experts, std::int64_t k)
      : probs(static_cast<std::size_t>(rows * num_experts)),
        experts(static_cast<std::size_t>(rows * k)),
        weights(static_cast<std::size_t>(rows * k)) {}
  SharedValues<float> probs;
  SharedValues<std::int32_t> experts;
  SharedValues<float> weights;
  friend bool operator==(const Routes&, const Routes&) = default;
};

inline Routes routes_of(const Context& ctx, HostMatrix logits, std::int64_t k, bool shares = true) {
  Routes routes(logits.rows(), logits.cols(), k);
  route(ctx, {logits.view(), k, routes.probs, routes.experts, routes.weights, shares});
  synchronize(ctx);
  return routes;
}

/// Size of the memory that groups on a device need.
inline std::size_t num_numbers(const Context& ctx, std::size_t rows, std::int64_t num_experts) {
  return static_cast<std::size_t>(num_group_numbers(ctx, static_cast<std::int64_t>(rows), num_experts));
}

}  // namespace zerofleet::test
