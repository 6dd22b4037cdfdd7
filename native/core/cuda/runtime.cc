#include <cstdint>
#include <string>

#include "core/cuda/check.h"
#include "core/cuda/cuda_runtime.h"

namespace zerofleet::cuda {

namespace {

/// 13000 → 13.0
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

bool built_in() { return true; }

int num_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

std::string driver_problem() {
  int count = 0, newest = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();
  // The status is the same where no driver is installed, which the version distinguishes.
  if (status != cudaErrorInsufficientDriver || cudaDriverGetVersion(&newest) != cudaSuccess || newest == 0) return "";
  return "the driver supports CUDA up to " + version_text(newest) + ", and this build has the runtime of CUDA " +
         runtime_version() + ": install a newer driver";
}

std::string runtime_version() {
  int version = 0;
  check(cudaRuntimeGetVersion(&version), "cudaRuntimeGetVersion");
  return version_text(version);
}

void use(const Device& device) {
  require(device.kind == DeviceKind::kCuda, "invalid_argument", to_string(device) + " is no CUDA device");
  const std::string call = "using " + to_string(device);
  const cudaError_t status = cudaSetDevice(device.index);
  const std::string problem = status == cudaErrorInsufficientDriver ? driver_problem() : "";
  require(problem.empty(), "device_unavailable", call + ": " + problem);
  check(status, call.c_str());
}

namespace {

/// The pool of the device, which is the calling thread's from now on; it keeps all that it ever got.
cudaMemPool_t pool_of(const Device& device) {
  use(device);
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, device.index), "cudaDeviceGetDefaultMemPool");
  std::uint64_t threshold = UINT64_MAX;
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold), "cudaMemPoolSetAttribute");
  return pool;
}

/// Memory with whatever is in it, once all that this thread's default stream had to do is done.
std::byte* take(const Device& device, std::size_t num_bytes, const char* purpose) {
  pool_of(device);
  void* data = nullptr;
  const cudaError_t status = cudaMallocAsync(&data, num_bytes, nullptr);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    const DeviceMemory memory = memory_of(device);
    const auto text = [](std::size_t bytes) { return std::to_string(bytes); };
    throw Error("out_of_memory", std::string(purpose) + " " + text(num_bytes) + " bytes on " + to_string(device) +
                                     ": " + text(memory.free) + " of " + text(memory.total) + " are free, and " +
                                     text(memory.in_use) + " of " + text(memory.reserved) + " are in use here");
  }
  check(status, purpose);
  return static_cast<std::byte*>(data);
}

std::size_t read(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  std::uint64_t value = 0;
  check(cudaMemPoolGetAttribute(pool, attribute, &value), "cudaMemPoolGetAttribute");
  return static_cast<std::size_t>(value);
}

}  // namespace

std::byte* allocate(const Device& device, std::size_t num_bytes) {
  std::byte* data = take(device, num_bytes, "cannot allocate");
  try {
    check(cudaMemsetAsync(data, 0, num_bytes, nullptr), "cudaMemsetAsync");
    // Streams of ours don't wait for the default stream, on which the memory was taken and is cleared.
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  } catch (...) {
    release(data);
    throw;
  }
  return data;
}

void release(std::byte* data) noexcept {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, data) == cudaSuccess) cudaSetDevice(attributes.device);
  cudaDeviceSynchronize();
  // Not by cudaFree(): on an H100 (CUDA 13.0, driver 580) the pool's counters still had such memory in use.
  cudaFreeAsync(data, nullptr);
  cudaStreamSynchronize(nullptr);
}

std::byte* allocate(CUstream_st* stream, std::size_t num_bytes) {
  void* data = nullptr;
  check(cudaMallocAsync(&data, num_bytes, stream), "allocating temporary memory of a kernel");
  return static_cast<std::byte*>(data);
}

void release(CUstream_st* stream, std::byte* data) noexcept { cudaFreeAsync(data, stream); }

void reserve(const Device& device, std::size_t num_bytes) {
  std::byte* data = take(device, num_bytes, "cannot reserve");
  check(cudaFreeAsync(data, nullptr), "cudaFreeAsync");
  check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

DeviceMemory memory_of(const Device& device) {
  cudaMemPool_t pool = pool_of(device);
  DeviceMemory memory;
  memory.in_use = read(pool, cudaMemPoolAttrUsedMemCurrent);
  memory.peak = read(pool, cudaMemPoolAttrUsedMemHigh);
  memory.reserved = read(pool, cudaMemPoolAttrReservedMemCurrent);
  check(cudaMemGetInfo(&memory.free, &memory.total), "cudaMemGetInfo");
  return memory;
}

void reset_peak(const Device& device) {
  std::uint64_t zero = 0;  // no other value is accepted; the peak becomes the amount in use
  check(cudaMemPoolSetAttribute(pool_of(device), cudaMemPoolAttrUsedMemHigh, &zero), "cudaMemPoolSetAttribute");
}

void pin(const Device& device, std::byte* data, std::size_t num_bytes) {
  use(device);
  const std::string call = "pinning " + std::to_string(num_bytes) + " bytes of host memory";
  check(cudaHostRegister(data, num_bytes, cudaHostRegisterPortable), call.c_str());
}

void unpin(std::byte* data) noexcept { cudaHostUnregister(data); }

bool is_device_memory(const void* data) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, data), "cudaPointerGetAttributes");
  return attributes.type == cudaMemoryTypeDevice;
}

CUstream_st* create_stream(const Device& device, bool is_urgent) {
  use(device);
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, is_urgent ? greatest : least),
        "cudaStreamCreateWithPriority");
  return stream;
}

void destroy_stream(CUstream_st* stream) noexcept { cudaStreamDestroy(stream); }

void synchronize(CUstream_st* stream) { check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); }

namespace {

bool is_done(cudaError_t status, const char* call) {
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check(status, call);
  return true;
}

}  // namespace

bool is_done(CUstream_st* stream) { return is_done(cudaStreamQuery(stream), "cudaStreamQuery"); }

CUevent_st* create_event(const Device& device, bool has_time) {
  use(device);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, has_time ? 0 : cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return event;
}

void destroy_event(CUevent_st* event) noexcept { cudaEventDestroy(event); }

void record(CUevent_st* event, CUstream_st* stream) { check(cudaEventRecord(event, stream), "cudaEventRecord"); }

void synchronize(CUevent_st* event) { check(cudaEventSynchronize(event), "cudaEventSynchronize"); }

bool is_done(CUevent_st* event) { return is_done(cudaEventQuery(event), "cudaEventQuery"); }

double seconds_between(CUevent_st* begin, CUevent_st* end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) / 1000;
}

void wait(CUstream_st* stream, CUevent_st* event) {
  check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
}

void copy(CUstream_st* stream, void* target, const void* source, std::size_t num_bytes) {
  // The runtime determines from the addresses where each side lies.
  check(cudaMemcpyAsync(target, source, num_bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
}

void fill_zero(CUstream_st* stream, void* target, std::size_t num_bytes) {
  check(cudaMemsetAsync(target, 0, num_bytes, stream), "cudaMemsetAsync");
}

}  // namespace zerofleet::cuda
