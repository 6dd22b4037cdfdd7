#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "kernels/attention/cuda/cudnn_call.h"
#include "kernels/attention/cuda/cudnn_graph.h"

namespace zerofleet::cudnn {

/// Configurations of engines for a graph, in the order of the library's heuristic, without those that the library says
/// are not deterministic. device: of a graph without a handle. Throws Refusal where there is none.
std::vector<Descriptor> deterministic_configs(const std::shared_ptr<const Library>& library, const Graph& graph,
                                              const Descriptor* device = nullptr);

/// A graph and how the library computes it.
class Plan {
 public:
  /// Throws Refusal.
  Plan(std::shared_ptr<const Library> library, Handle* handle, std::shared_ptr<const Graph> graph, Descriptor config);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Queues it. Throws Refusal.
  void run(Handle* handle, const Operands& operands, void* workspace) const;

 private:
  std::shared_ptr<const Library> library_;
  std::shared_ptr<const Graph> graph_;
  Descriptor config_, plan_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace zerofleet::cudnn
