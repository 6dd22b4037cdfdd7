// A libcudnn for tests: the entry points that kernels/attention/cuda/cudnn_library.h names, over the memory of the
// emulated device and in the order of its streams. It refuses the descriptors, graphs and variant packs that cuDNN's
// documentation refuses. It computes a graph operation by operation, so the tests cover the graph itself.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "test/cuda_emulator/cudnn/graph.h"

#define ZF_EXPORT extern "C" __attribute__((visibility("default")))

using namespace zerofleet::fake_cudnn;

namespace {

std::atomic<int> version{92400}, cuda_version{13000}, offer{0}, num_heuristics{0}, num_runs{0}, num_backwards{0};
std::atomic<Fault> fault{Fault::kNone};
std::atomic<bool> only_faulty{false};
thread_local std::string last_error;

// Attributes of the nodes that the heuristic makes.
constexpr int kEngineOfConfig = 300, kGraphOfEngine = 1300, kIndexOfEngine = 1301, kNotes = 1303;
constexpr int kFaultOfEngine = -1, kBytesOfEngine = -2;
constexpr int kWorkspaceOfPlan = 402, kNondeterministic = 4;
enum Offered : int { kAll, kNone, kOnlyNondeterministic, kWithoutCompiler };

struct Handle {
  cudaStream_t stream = nullptr;
};

Node engine(const std::shared_ptr<const Node>& graph, std::vector<int> notes, Fault with, std::int64_t more_bytes) {
  Node node{kEngine, true, {}};
  node.values[kGraphOfEngine].nodes = {graph};
  node.values[kNotes].bytes.resize(notes.size() * sizeof(int));
  std::memcpy(node.values[kNotes].bytes.data(), notes.data(), notes.size() * sizeof(int));
  node.put(kFaultOfEngine, with);
  node.put(kBytesOfEngine, workspace_bytes(*graph) + more_bytes);
  return node;
}

std::vector<Node> engines(const std::shared_ptr<const Node>& graph) {
  std::vector<Node> found;
  const auto add = [&](std::vector<int> notes, Fault with, std::int64_t more_bytes) {
    found.push_back(engine(graph, std::move(notes), with, more_bytes));
    found.back().put(kIndexOfEngine, static_cast<std::int64_t>(found.size()));
  };
  const auto say = [](const std::string& why) {
    last_error = "engine 1\nWarning: NOT_SUPPORTED_" + why + "\nWarning: NOT_SUPPORTED; Reason: isSupported()\n";
  };
  if (offer == kNone) say("SHAPE; Reason: too wide");
  if (offer == kWithoutCompiler) say("RUNTIME_PREREQUISITE_MISSING; Reason: no compiler");
  if (offer == kNone || offer == kWithoutCompiler) return found;
  add({0, kNondeterministic}, Fault::kNone, 0);
  if (offer == kOnlyNondeterministic) return found;
  add({0}, Fault::kNone, std::int64_t{1} << 30);
  if (fault != Fault::kNone) add({0}, fault, 0);
  if (!only_faulty) add({0}, Fault::kNone, 0);
  return found;
}

bool is_backward(const Node& graph) { return workspace_bytes(graph) > 256; }

struct Job {
  std::shared_ptr<const Node> graph;
  std::map<std::int64_t, Bound> bound;
  std::byte* workspace;
  std::size_t workspace_bytes;
  Fault fault;
};

int fail(int status, const char* why) {
  if (status != kSuccess) last_error = why;
  return status;
}

}  // namespace

ZF_EXPORT int zf_cudnn_num_heuristics() { return num_heuristics; }
ZF_EXPORT int zf_cudnn_num_runs() { return num_runs; }
ZF_EXPORT int zf_cudnn_num_backwards() { return num_backwards; }
ZF_EXPORT void zf_cudnn_set_version(int value) { version = value; }
ZF_EXPORT void zf_cudnn_set_cuda_version(int value) { cuda_version = value; }
ZF_EXPORT void zf_cudnn_offer(int which) { offer = which; }
ZF_EXPORT void zf_cudnn_have_fault(int which, bool alone) {
  fault = static_cast<Fault>(which);
  only_faulty = alone;
}

ZF_EXPORT std::size_t cudnnGetVersion() { return static_cast<std::size_t>(version.load()); }
ZF_EXPORT std::size_t cudnnGetCudartVersion() { return static_cast<std::size_t>(cuda_version.load()); }
ZF_EXPORT const char* cudnnGetErrorString(int) { return "from the test's cuDNN"; }
ZF_EXPORT void cudnnGetLastErrorString(char* message, std::size_t num_bytes) {
  std::snprintf(message, num_bytes, "%s", last_error.c_str());
  last_error.clear();
}
ZF_EXPORT int cudnnCreate(Handle** handle) {
  *handle = std::make_unique<Handle>().release();
  return kSuccess;
}
ZF_EXPORT int cudnnDestroy(Handle* handle) {
  const std::unique_ptr<Handle> owner(handle);
  return kSuccess;
}
ZF_EXPORT int cudnnSetStream(Handle* handle, cudaStream_t stream) {
  handle->stream = stream;
  return kSuccess;
}

ZF_EXPORT int cudnnBackendCreateDescriptor(int kind, Descriptor** descriptor) {
  *descriptor = created(kind);
  return *descriptor == nullptr ? fail(kNotSupported, "unknown descriptor") : int{kSuccess};
}
ZF_EXPORT int cudnnBackendDestroyDescriptor(Descriptor* descriptor) {
  const std::unique_ptr<Descriptor> owner(descriptor);
  return kSuccess;
}
ZF_EXPORT int cudnnBackendSetAttribute(Descriptor* descriptor, int attribute, int type, std::int64_t count,
                                       const void* values) {
  return fail(set(*descriptor, attribute, type, count, values), "an attribute that does not fit");
}
ZF_EXPORT int cudnnBackendFinalize(Descriptor* descriptor) {
  if (const int status = finalize(*descriptor); status != kSuccess)
    return fail(status, "a descriptor that is not complete");
  Node& node = *descriptor->node;
  if (node.kind != kPlan) return kSuccess;
  const Node& engine = node.node(401).node(kEngineOfConfig);
  node.put(kWorkspaceOfPlan, engine.get<std::int64_t>(kBytesOfEngine));
  return kSuccess;
}

ZF_EXPORT int cudnnBackendGetAttribute(const Descriptor* descriptor, int attribute, int type, std::int64_t requested,
                                       std::int64_t* count, void* values) {
  const Node& node = *descriptor->node;
  if (!node.is_final) return fail(kNotFinalized, "reads a descriptor that is not finalized");
  if (node.kind == kHeuristics && attribute == 202 && type == 15) {
    ++num_heuristics;
    const std::vector<Node> found = engines(node.values.at(201).nodes.front());
    *count = std::min<std::int64_t>(std::ssize(found), requested);
    for (std::int64_t i = 0; i < *count; ++i) {
      Node& config = *static_cast<Descriptor**>(values)[i]->node;
      if (config.kind != kEngineConfig || config.is_final)
        return fail(kWrongDescriptorType, "results are engine configs");
      config.values[kEngineOfConfig].nodes = {std::make_shared<const Node>(found[static_cast<std::size_t>(i)])};
      config.is_final = true;
    }
    return kSuccess;
  }
  if (node.kind == kEngineConfig && attribute == kEngineOfConfig && type == 15 && requested == 1) {
    *count = 1;
    *static_cast<Descriptor**>(values)[0]->node = node.node(kEngineOfConfig);
    return kSuccess;
  }
  const bool is_number = type == 3 && (attribute == kWorkspaceOfPlan || attribute == kIndexOfEngine);
  if (!node.has(attribute) || !(is_number || (type == 11 && attribute == kNotes)))
    return fail(kBadParameter, "no such attribute");
  const std::vector<std::byte>& bytes = node.values.at(attribute).bytes;
  *count = static_cast<std::int64_t>(bytes.size() / (is_number ? 8 : 4));
  if (*count > requested) return fail(kBadParameter, "too few entries");
  std::memcpy(values, bytes.data(), bytes.size());
  return kSuccess;
}

ZF_EXPORT int cudnnBackendExecute(Handle* handle, Descriptor* plan, Descriptor* pack) {
  if (plan->node->kind != kPlan || pack->node->kind != kPack || !plan->node->is_final || !pack->node->is_final)
    return fail(kNotFinalized, "executes a plan with a variant pack");
  const Node& engine_node = plan->node->node(401).node(kEngineOfConfig);
  const auto notes = engine_node.all<int>(kNotes);
  if (std::ranges::find(notes, kNondeterministic) != notes.end())
    return fail(kBadParameter, "this project wants the same bits");
  Job job{engine_node.values.at(kGraphOfEngine).nodes.front(),
          {},
          static_cast<std::byte*>(pack->node->get<void*>(1003)),
          static_cast<std::size_t>(engine_node.get<std::int64_t>(kBytesOfEngine)),
          engine_node.get<Fault>(kFaultOfEngine)};
  const auto ids = pack->node->all<std::int64_t>(1000);
  const auto pointers = pack->node->all<void*>(1001);
  const auto tensors = bound_tensors(*job.graph);
  if (ids.size() != tensors.size() || job.workspace == nullptr)
    return fail(kBadParameter, "a variant pack that lacks something");
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto tensor = tensors.find(ids[i]);
    if (tensor == tensors.end() || pointers[i] == nullptr) return fail(kBadParameter, "a pointer for no tensor");
    if (tensor->second->get<bool>(908)) {
      std::memcpy(&job.bound[ids[i]].number, pointers[i], sizeof(float));
      continue;
    }
    if (reinterpret_cast<std::uintptr_t>(pointers[i]) % tensor->second->get<std::uint64_t>(900) != 0)
      return fail(kMisaligned, "a pointer that is not aligned");
    job.bound[ids[i]].data = static_cast<std::byte*>(pointers[i]);
  }
  ++num_runs;
  if (is_backward(*job.graph)) ++num_backwards;
  auto queued = std::make_unique<Job>(std::move(job));
  const cudaError_t status = cudaLaunchHostFunc(
      handle->stream,
      [](void* data) {
        const std::unique_ptr<Job> owner(static_cast<Job*>(data));
        std::memset(owner->workspace, 0xff, owner->workspace_bytes);
        run(*owner->graph, owner->bound, owner->fault);
      },
      queued.get());
  if (status != cudaSuccess) return kBadParameter;
  queued.release();
  return kSuccess;
}
