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
#include "test/cuda_emulator/work_queue.h"

using zerofleet::emulator::Mark;
using zerofleet::emulator::WorkQueue;

struct CUstream_st {
  WorkQueue queue;
};

struct CUevent_st {
  std::mutex mutex;
  std::shared_ptr<Mark> mark;  // of the last record; null: none yet
};

namespace zerofleet::emulator {
namespace {

struct Tally {
  std::atomic<std::int64_t> allocations{0}, launches{0}, copies{0}, waits{0};
};

Tally& tally() {
  static Tally one;
  return one;
}

/// All streams there are, for what waits for the whole device.
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

void wait_for_device() {
  std::vector<std::shared_ptr<Mark>> marks;
  {
    const std::lock_guard lock(streams().mutex);
    for (CUstream_st* stream : streams().all) marks.push_back(stream->queue.mark());
  }
  marks.push_back(default_stream().queue.mark());
  for (const auto& mark : marks) mark->wait();
}

std::atomic<cudaError_t>& wanted_failure() {
  static std::atomic<cudaError_t> one{cudaSuccess};
  return one;
}
thread_local cudaError_t last_error = cudaSuccess;

cudaError_t result(cudaError_t status) {
  if (status == cudaSuccess) status = wanted_failure();
  if (status != cudaSuccess) last_error = status;
  return status;
}

}  // namespace

Counts counts() { return {tally().allocations, tally().launches, tally().copies, tally().waits}; }
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
  or_default(config.stream).queue.post([grid, block, shared = config.dynamicSmemBytes, thread = std::move(thread)] {
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
  *count = num_visible_devices();
  return result(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}
cudaError_t cudaSetDevice(int device) {
  const bool is_there = device == 0 && num_visible_devices() > 0;
  return result(is_there ? cudaSuccess : num_visible_devices() == 0 ? cudaErrorNoDevice : cudaErrorInvalidDevice);
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
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const MemorySizes sizes = memory_sizes();
  *total = sizes.limit;
  *free = sizes.limit - sizes.used;
  return result(cudaSuccess);
}

cudaError_t cudaMalloc(void** data, std::size_t num_bytes) {
  if (const cudaError_t status = result(cudaSuccess); status != cudaSuccess) return status;
  ++tally().allocations;
  *data = take(num_bytes);
  return result(*data == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaFree(void* data) {
  if (data == nullptr) return cudaSuccess;
  ++tally().allocations;
  wait_for_device();  // as CUDA's does
  return result(give_back(data) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaMallocAsync(void** data, std::size_t num_bytes, cudaStream_t) { return cudaMalloc(data, num_bytes); }
cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  ++tally().allocations;
  or_default(stream).queue.post([data] { give_back(data); });
  return result(cudaSuccess);
}

cudaError_t cudaHostRegister(void* data, std::size_t num_bytes, unsigned) {
  if (const cudaError_t status = result(cudaSuccess); status != cudaSuccess) return status;
  return result(pin(data, num_bytes) ? cudaSuccess : cudaErrorHostMemoryAlreadyRegistered);
}
cudaError_t cudaHostUnregister(void* data) {
  return result(unpin(data) ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  const bool device = on_device(data, 1);
  attributes->type = device               ? cudaMemoryTypeDevice
                     : is_pinned(data, 1) ? cudaMemoryTypeHost
                                          : cudaMemoryTypeUnregistered;
  attributes->device = 0;
  return result(cudaSuccess);
}

cudaError_t cudaMemset(void* target, int value, std::size_t num_bytes) {
  return cudaMemsetAsync(target, value, num_bytes, nullptr);
}
cudaError_t cudaMemsetAsync(void* target, int value, std::size_t num_bytes, cudaStream_t stream) {
  if (!on_device(target, num_bytes)) return result(cudaErrorInvalidValue);
  or_default(stream).queue.post([=] { std::memset(target, value, num_bytes); });
  return result(cudaSuccess);
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t num_bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  const bool to_device = on_device(target, 1), from_device = on_device(source, 1);
  if ((to_device && !on_device(target, num_bytes)) || (from_device && !on_device(source, num_bytes)))
    return result(cudaErrorInvalidValue);
  if (const cudaError_t status = result(cudaSuccess); status != cudaSuccess) return status;
  ++tally().copies;
  WorkQueue& queue = or_default(stream).queue;
  if (!from_device && !is_pinned(source, num_bytes)) {
    const auto* begin = static_cast<const std::byte*>(source);
    queue.post([target, bytes = std::vector<std::byte>(begin, begin + num_bytes)] {
      std::memcpy(target, bytes.data(), bytes.size());
    });
  } else {
    queue.post([=] { std::memcpy(target, source, num_bytes); });
  }
  if (!to_device && !is_pinned(target, num_bytes)) queue.wait(queue.mark());  // such a copy returns when it is done
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  if (const cudaError_t status = result(cudaSuccess); status != cudaSuccess) return status;
  *stream = std::make_unique<CUstream_st>().release();
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
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  ++tally().waits;
  WorkQueue& queue = or_default(stream).queue;
  queue.wait(queue.mark());
  return result(cudaSuccess);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (!or_default(stream).queue.is_empty()) return result(cudaErrorNotReady);
  return result(cudaSuccess);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(event->mutex);
  if (event->mark != nullptr) or_default(stream).queue.post([mark = event->mark] { mark->wait(); });
  return result(cudaSuccess);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*function)(void*), void* data) {
  if (const cudaError_t status = result(cudaSuccess); status != cudaSuccess) return status;
  or_default(stream).queue.post([function, data] { function(data); });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  if (const cudaError_t status = result(cudaSuccess); status != cudaSuccess) return status;
  *event = std::make_unique<CUevent_st>().release();
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::unique_ptr<CUevent_st> owner(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(event->mutex);
  event->mark = or_default(stream).queue.mark();
  return result(cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  ++tally().waits;
  std::shared_ptr<Mark> mark;
  {
    const std::lock_guard lock(event->mutex);
    mark = event->mark;
  }
  if (mark != nullptr) mark->wait();
  return result(cudaSuccess);
}
