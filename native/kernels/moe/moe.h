#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// The (token, choice) pairs of M tokens with k experts each, sorted by expert and within an expert by token. Each pair
/// is one row of the experts' matrices, so that an expert's rows lie next to each other and no token is dropped.
struct ExpertGroups {
  std::int64_t num_tokens = 0;
  std::int64_t experts_per_token = 0;
  // On a CPU:
  std::vector<std::int64_t> first;   // (E + 1) the rows of expert e are [first[e], first[e + 1])
  std::vector<std::int64_t> tokens;  // (M · k) the token of each row
  std::vector<std::int64_t> rows;    // (M, k) the row of each pair
  // The same in memory of a CUDA device, which makes the groups itself. The host neither knows them nor waits for them.
  const std::int32_t* device_first = nullptr;
  const std::int32_t* device_tokens = nullptr;
  const std::int32_t* device_rows = nullptr;

  std::int64_t num_rows() const { return num_tokens * experts_per_token; }
};

/// experts: (M, k) as route() chose. Throws Error{"invalid_argument"} for an expert outside [0, num_experts).
ExpertGroups group_by_expert(std::span<const std::int32_t> experts, std::int64_t experts_per_token,
                             std::int64_t num_experts);

/// The same where the context's device has the experts. On a CUDA device the groups lie in `memory` of
/// num_group_numbers(), which must stay as long as the groups are used. The host does not look at experts there: those
/// outside [0, num_experts) are in no group.
ExpertGroups group_by_expert(const Context& ctx, std::span<const std::int32_t> experts, std::int64_t experts_per_token,
                             std::int64_t num_experts, std::span<std::int32_t> memory);
/// 2 · rows + num_experts + 1 on a CUDA device, 0 on a CPU.
std::int64_t num_group_numbers(const Context& ctx, std::int64_t rows, std::int64_t num_experts);

/// The groups with one more row per token, for gather_rows_backward(). These rows follow all others, each as the last
/// of its token. memory: (M · (k + 1)) on a CUDA device, as above.
ExpertGroups with_token_rows(const Context& ctx, const ExpertGroups& groups, std::span<std::int32_t> memory);

/// Device memory for the groups that a CUDA device writes.
struct DeviceGroups {
  std::span<std::int32_t> first, tokens, rows;
};

/// rows[r] = x[token of r]. x: (M, D), rows: (M · k, D) of one dtype.
void gather_rows(const Context& ctx, const ExpertGroups& groups, const ConstMatrix& x, const Matrix& rows);

/// dx[m] = Σ of drows over the rows of token m, in rising choice, in fp32. drows: (M · k, D), dx: (M, D).
void gather_rows_backward(const Context& ctx, const ExpertGroups& groups, const ConstMatrix& drows, const Matrix& dx);

/// y[m] = Σ of weight · row over the rows of token m, in rising choice, in fp32. rows: (M · k, D), weights: (M, k),
/// y: (M, D).
void combine_rows(const Context& ctx, const ExpertGroups& groups, std::span<const float> weights,
                  const ConstMatrix& rows, const Matrix& y);

/// drows[r] = weight · dy[token of r], and dweights[m, c] = Σ over columns of dy[m] · its row.
struct CombineBackward {
  const ExpertGroups* groups = nullptr;
  std::span<const float> weights;  // (M, k)
  ConstMatrix rows;                // (M · k, D) of the forward
  ConstMatrix dy;                  // (M, D)
  Matrix drows;                    // (M · k, D); may be rows
  std::span<float> dweights;       // (M, k)
};
void combine_rows_backward(const Context& ctx, const CombineBackward& args);

// All throw Error{"invalid_argument"} where sizes or types do not fit, and for groups of another kind of device.

}  // namespace zerofleet
