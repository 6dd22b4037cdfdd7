#include "kernels/attention/cuda/cudnn_plan.h"

#include <algorithm>

#include "core/error.h"

namespace zerofleet::cudnn {
namespace {

constexpr std::size_t kCandidates = 16;

bool is_deterministic(const std::shared_ptr<const Library>& library, const Descriptor& config) {
  std::vector<Descriptor> engine;
  engine.emplace_back(library, kEngine);
  config.get(kConfigEngine, engine);
  const std::vector<int> notes = engine.front().get_notes(kEngineNumericalNotes);
  return std::ranges::find(notes, int{kNondeterministic}) == notes.end();
}

/// Throws why there are no candidates: for a graph that the library does not know, or because the machine lacks
/// something.
[[noreturn]] void refuse_without_candidates(const Library& library) {
  const std::string reason = library.last_error();
  if (is_about_machine(reason)) throw Error("device_failed", library.name() + ": " + reason);
  throw Refusal(reason.empty() ? "it has no engine for it" : "it has no engine for it (" + reason + ")");
}

}  // namespace

std::vector<Descriptor> deterministic_configs(const std::shared_ptr<const Library>& library, const Graph& graph,
                                              const Descriptor* device) {
  library->last_error();  // that of an earlier call is of no interest
  Descriptor heuristics(library, kHeuristics);
  heuristics.set(kHeuristicsGraph, graph.descriptor);
  heuristics.set(kHeuristicsMode, kModeA);
  if (device != nullptr) heuristics.set(kHeuristicsDevice, *device);
  heuristics.finalize();
  std::vector<Descriptor> found;
  for (std::size_t i = 0; i < kCandidates; ++i) found.emplace_back(library, kEngineConfig);
  const std::size_t num_found = std::min(heuristics.get(kHeuristicsResults, found), kCandidates);
  if (num_found == 0) refuse_without_candidates(*library);
  found.erase(found.begin() + static_cast<std::ptrdiff_t>(num_found), found.end());
  std::erase_if(found, [&](const Descriptor& config) { return !is_deterministic(library, config); });
  if (found.empty()) throw Refusal("none of its engines is deterministic");
  return found;
}

Plan::Plan(std::shared_ptr<const Library> library, Handle* handle, std::shared_ptr<const Graph> graph,
           Descriptor config)
    : library_(std::move(library)),
      graph_(std::move(graph)),
      config_(std::move(config)),
      plan_(library_, kExecutionPlan) {
  plan_.set(kPlanHandle, handle);
  plan_.set(kPlanConfig, config_);
  plan_.finalize();
  workspace_bytes_ = static_cast<std::size_t>(plan_.get_int64(kPlanWorkspaceBytes));
}

void Plan::run(Handle* handle, const Operands& operands, void* workspace) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  for (const auto& [id, data] : operands) {
    ids.push_back(id);
    pointers.push_back(data);
  }
  for (const auto& [id, value] : graph_->numbers) {
    ids.push_back(id);
    pointers.push_back(const_cast<float*>(&value));  // only read
  }
  Descriptor pack(library_, kVariantPack);
  pack.set(kPackIds, std::span<const std::int64_t>(ids));
  pack.set(kPackPointers, std::span<void* const>(pointers));
  pack.set(kPackWorkspace, std::span<void* const>(&workspace, 1));
  pack.finalize();
  check(*library_, library_->execute(handle, plan_.get(), pack.get()), "cudnnBackendExecute");
}

}  // namespace zerofleet::cudnn
