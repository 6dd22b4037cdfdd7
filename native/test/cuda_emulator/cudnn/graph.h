#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "test/cuda_emulator/cudnn/descriptors.h"

namespace zerofleet::fake_cudnn {

using Extents = std::array<std::int64_t, 4>;

inline constexpr int kFloat = 0, kHalf = 2, kInt32 = 4, kBFloat16 = 9, kBool = 11;  // cudnnDataType_t

inline std::int64_t id_of(const Node& tensor) { return tensor.get<std::int64_t>(906); }
inline bool is_virtual(const Node& tensor) { return tensor.get<bool>(907); }
inline Extents extents(const Node& tensor, int attribute) {
  const auto values = tensor.all<std::int64_t>(attribute);
  return {values[0], values[1], values[2], values[3]};
}
inline Extents dims_of(const Node& tensor) { return extents(tensor, 902); }

struct Ends {
  std::vector<int> inputs;
  int output;
};

/// Attributes with the tensors of an operation.
Ends ends_of(const Node& op);

inline const std::vector<std::shared_ptr<const Node>>& operations(const Node& graph) {
  return graph.values.at(801).nodes;
}

/// Faults of an engine.
enum class Fault : int { kNone, kHidesLastKey, kLeavesLastRow };

/// Each virtual tensor is the result of one earlier operation, tensors in memory are read or written, ids are those of
/// one tensor, and shapes fit.
Status check_graph(const Node& graph);

/// Memory behind a tensor, or for a number the number itself.
struct Bound {
  std::byte* data = nullptr;
  float number = 0;
};

/// Tensors that a variant pack must have.
std::map<std::int64_t, std::shared_ptr<const Node>> bound_tensors(const Node& graph);
/// The largest number of elements of scores, padded to 64 × 64, and of gradients of query heads that are summed.
std::int64_t workspace_bytes(const Node& graph);
/// Computes each operation in float64, rounded to the type of its result.
void run(const Node& graph, const std::map<std::int64_t, Bound>& bound, Fault fault);

}  // namespace zerofleet::fake_cudnn
