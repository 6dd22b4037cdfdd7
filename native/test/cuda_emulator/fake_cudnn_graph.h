#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "test/cuda_emulator/fake_cudnn_descriptors.h"

namespace zerofleet::fake_cudnn {

using Extents = std::array<std::int64_t, 4>;

/// Faults of an engine.
enum class Fault : int { kNone, kHidesLastKey, kLeavesLastRow };

/// Each virtual tensor is the result of one earlier operation, tensors in memory are read or written, ids are those of one
/// tensor, and shapes fit.
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
