// The emulated runtime: launches, copies, streams, events. Every stream is a thread that does its work behind the
// host's back.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "test/cuda_emulator/emulator.h"
#include "test/cuda_emulator/memory.h"
#include "test/cuda_emulator/runtime_parts.h"
#include "test/cuda_emulator/stream_groups.h"
#include "test/cuda_emulator/work_queue.h"

using zerofleet::emulator::Mark;
using zerofleet::emulator::WorkQueue;

struct CUstream_st {
  int priority = 0;
  int group = zerofleet::emulator::new_stream_group();
  WorkQueue queue;
};

struct CUevent_st {
  unsigned flags = 0;
  std::mutex mutex;
  int group = -1;              // of the stream of the last record
  std::shared_ptr<Mark> mark;  // of the last record; null: none yet

  std::shared_ptr<Mark> last_mark() {
    const std::lock_guard lock(mutex);
    return mark;
  }
};

namespace zerofleet::emulator {
namespace {

/// All streams, for calls that wait for the whole device.
struct Streams {
  std::mutex mutex;
  std::set<CUstream_st*> all;
};

Streams& streams() {
  static Streams one;
  return one;
}

CUstream_st& default_stream() {
  static CUstream_st one;
  return one;
}

CUstream_st& or_default(cudaStream_t stream) { return stream == nullptr ? default_stream() : *stream; }

std::atomic<cudaError_t>& wanted_failure() {
  static std::atomic<cudaError_t> one{cudaSuccess};
  return one;
}
thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

Tally& tally() {
  static Tally one;
  return one;
}

WorkQueue& queue_of(cudaStream_t stream) {
  CUstream_st& used = or_default(stream);
  if (stream != nullptr) used_by_thread(used.group);
  return used.queue;
}

void wait_for_device() {
  std::vector<std::shared_ptr<Mark>> marks;
  {
    const std::lock_guard lock(streams().mutex);
    for (CUstream_st* stream : streams().all) {
      if (waits_for_group(stream->group)) marks.push_back(stream->queue.mark());
    }
  }
  marks.push_back(default_stream().queue.mark());
  for (const auto& mark : marks) mark->wait();
}

cudaError_t result(cudaError_t status) {
  if (status == cudaSuccess) status = wanted_failure();
  if (status != cudaSuccess) last_error = status;
  return status;
}

Counts counts() { return {tally().allocations, tally().pool_growths, tally().launches, tally().copies, tally().waits}; }
void fail_with(cudaError_t status) { wanted_failure() = status; }

namespace {

std::mutex shared_limits_mutex;
std::map<const void*, int> shared_limits;

std::size_t shared_limit(const void* kernel) {
  const std::lock_guard lock(shared_limits_mutex);
  const auto found = shared_limits.find(kernel);
  return found == shared_limits.end() ? std::size_t{48} << 10 : static_cast<std::size_t>(found->second);
}

}  // namespace

void look_for_host_pointers(const void* kernel, int argument, const void* value, std::size_t num_bytes) {
  static const bool wanted = std::getenv("ZF_EMULATED_ARGUMENTS") != nullptr;
  for (std::size_t at = 0; wanted && at + sizeof(std::uintptr_t) <= num_bytes; at += sizeof(std::uintptr_t)) {
    std::uintptr_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(value) + at, sizeof word);
    const void* address = reinterpret_cast<const void*>(word);
    const bool is_address = word >= std::uintptr_t{1} << 40 && word < std::uintptr_t{1} << 47;
    if (!is_address || on_device(address, 1) || is_pinned(address, 1)) continue;
    Dl_info symbol{};
    ::dladdr(kernel, &symbol);
    const auto offset = static_cast<const std::byte*>(kernel) - static_cast<const std::byte*>(symbol.dli_fbase);
    std::fprintf(stderr, "kernel at %#tx of the program: argument %d has a host address (%p) at byte %zu\n", offset,
                 argument, address, at);
  }
}

cudaError_t set_max_dynamic_shared(const void* kernel, int num_bytes) {
  if (num_bytes < 0 || num_bytes > (227 << 10)) return result(cudaErrorInvalidValue);
  const std::lock_guard lock(shared_limits_mutex);
  shared_limits[kernel] = num_bytes;
  return result(cudaSuccess);
}

cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, std::size_t argument_bytes,
                   std::function<void()> thread) {
  const dim3 &grid = config.gridDim, &block = config.blockDim;
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  if (threads < 1 || threads > 1024 || block.z > 64 || grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.x > INT32_MAX ||
      grid.y > 65535 || grid.z > 65535 || argument_bytes > 4096 || config.dynamicSmemBytes > shared_limit(kernel)) {
    return result(cudaErrorInvalidConfiguration);
  }
  if (const cudaError_t status = result(cudaSuccess); status != cudaSuccess) return status;
  fail_as_asked(++tally().launches);
  queue_of(config.stream).post([grid, block, shared = config.dynamicSmemBytes, thread = std::move(thread)] {
    run_grid(grid, block, shared, thread);
  });
  return cudaSuccess;
}

}  // namespace zerofleet::emulator

using namespace zerofleet::emulator;

const char* cudaGetErrorName(cudaError_t status) {
  switch (status) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorECCUncorrectable:
      return "cudaErrorECCUncorrectable";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    default:
      return "an error of the emulated device";
  }
}
const char* cudaGetErrorString(cudaError_t) { return "from the emulated CUDA device"; }
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaGetDeviceCount(int* count) {
  const cudaError_t status = status_of_driver();
  *count = status == cudaSuccess ? num_visible_devices() : 0;
  return result(status);
}
cudaError_t cudaSetDevice(int device) {
  const cudaError_t status = status_of_driver();
  return result(status == cudaSuccess && device != 0 ? cudaErrorInvalidDevice : status);
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return result(cudaSuccess);
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = 2;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = 8;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      break;
  }
  return result(cudaSuccess);
}
cudaError_t cudaDeviceSynchronize() {
  ++tally().waits;
  wait_for_device();
  return result(cudaSuccess);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return result(cudaSuccess);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int priority) {
  if (const cudaError_t status = result(cudaSuccess); status != cudaSuccess) return status;
  *stream = std::make_unique<CUstream_st>().release();
  (*stream)->priority = priority;
  const std::lock_guard lock(streams().mutex);
  streams().all.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::unique_ptr<CUstream_st> owner(stream);
  const std::lock_guard lock(streams().mutex);
  streams().all.erase(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  *priority = stream->priority;
  return result(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  ++tally().waits;
  WorkQueue& queue = queue_of(stream);
  queue.wait(queue.mark());
  return result(cudaSuccess);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (!queue_of(stream).is_empty()) return result(cudaErrorNotReady);
  return result(cudaSuccess);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(event->mutex);
  if (event->mark == nullptr) return result(cudaSuccess);
  if (stream != nullptr && event->group >= 0) unite_groups(stream->group, event->group);
  queue_of(stream).post([mark = event->mark] { mark->wait(); });
  return result(cudaSuccess);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*function)(void*), void* data) {
  if (const cudaError_t status = result(cudaSuccess); status != cudaSuccess) return status;
  queue_of(stream).post([function, data] { function(data); });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t status = result(cudaSuccess); status != cudaSuccess) return status;
  *event = std::make_unique<CUevent_st>().release();
  (*event)->flags = flags;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::unique_ptr<CUevent_st> owner(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(event->mutex);
  event->mark = queue_of(stream).mark();
  event->group = stream == nullptr ? -1 : stream->group;
  return result(cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  ++tally().waits;
  const std::shared_ptr<Mark> mark = event->last_mark();
  if (mark != nullptr) mark->wait();
  return result(cudaSuccess);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::shared_ptr<Mark> mark = event->last_mark();
  return result(mark != nullptr && !mark->reached_at() ? cudaErrorNotReady : cudaSuccess);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const std::shared_ptr<Mark> first = begin->last_mark(), last = end->last_mark();
  const bool have_times = ((begin->flags | end->flags) & cudaEventDisableTiming) == 0;
  if (!have_times || first == nullptr || last == nullptr) return result(cudaErrorInvalidResourceHandle);
  if (!first->reached_at() || !last->reached_at()) return result(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(*last->reached_at() - *first->reached_at()).count();
  return result(cudaSuccess);
}
