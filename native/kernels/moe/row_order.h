#pragma once

#include <cstdint>
#include <span>

#include "core/device/context.h"
#include "kernels/common/matrix.h"

// Rows that several leaves have for the experts of a rank, on a CUDA device. The rows arrive leaf by leaf, each leaf's
// sorted by expert. They are wanted expert by expert, each expert's leaf by leaf. Here there are R rows in all, of P
// leaves for E experts.
namespace zerofleet {

/// counts[e] = first[e + 1] - first[e]. first: of all experts, as in ExpertGroups.
void count_rows(const Context& ctx, std::span<const std::int32_t> first, std::span<std::int32_t> counts);

/// Both orders, in memory of the device.
struct RowOrder {
  std::span<std::int32_t> first;    // (E + 1) the rows of expert e are [first[e], first[e + 1])
  std::span<std::int32_t> arrived;  // (R) arrival number of each of the experts' rows
  std::span<std::int32_t> wanted;   // (R) wanted number of each row that arrived
};

/// counts: (P, E) rows of each leaf for each expert, R in all.
void order_rows(const Context& ctx, std::span<const std::int32_t> counts, const RowOrder& order);

/// target[r] = source[numbers[r]] for each row of target.
void pick_rows(const Context& ctx, const ConstMatrix& source, std::span<const std::int32_t> numbers,
               const Matrix& target);

// All throw Error{"invalid_argument"} where sizes or types do not fit, and on a CPU, where the host knows the rows and
// copies them run by run.

}  // namespace zerofleet
