#include "core/cuda/check.h"
#include "core/cuda/cuda_runtime.h"

namespace zerofleet::cuda {

bool built_in() { return true; }

int num_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

void use(const Device& device) {
  require(device.kind == DeviceKind::kCuda, "invalid_argument", to_string(device) + " is no CUDA device");
  check(cudaSetDevice(device.index), ("using " + to_string(device)).c_str());
}

std::byte* allocate(const Device& device, std::size_t num_bytes) {
  use(device);
  void* data = nullptr;
  const std::string call = "allocating " + std::to_string(num_bytes) + " bytes on " + to_string(device);
  check(cudaMalloc(&data, num_bytes), call.c_str());
  try {
    check(cudaMemset(data, 0, num_bytes), "cudaMemset");
    // Streams of ours don't wait for the default stream, on which the memory is cleared.
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  } catch (...) {
    release(static_cast<std::byte*>(data));
    throw;
  }
  return static_cast<std::byte*>(data);
}

void release(std::byte* data) noexcept { cudaFree(data); }

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

CUstream_st* create_stream(const Device& device) {
  use(device);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return stream;
}

void destroy_stream(CUstream_st* stream) noexcept { cudaStreamDestroy(stream); }

void synchronize(CUstream_st* stream) { check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); }

bool is_done(CUstream_st* stream) {
  const cudaError_t status = cudaStreamQuery(stream);
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check(status, "cudaStreamQuery");
  return true;
}

CUevent_st* create_event(const Device& device) {
  use(device);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return event;
}

void destroy_event(CUevent_st* event) noexcept { cudaEventDestroy(event); }

void record(CUevent_st* event, CUstream_st* stream) { check(cudaEventRecord(event, stream), "cudaEventRecord"); }

void synchronize(CUevent_st* event) { check(cudaEventSynchronize(event), "cudaEventSynchronize"); }

void wait(CUstream_st* stream, CUevent_st* event) { check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent"); }

void copy(CUstream_st* stream, void* target, const void* source, std::size_t num_bytes) {
  // The runtime tells from the addresses where each side lies.
  check(cudaMemcpyAsync(target, source, num_bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
}

void fill_zero(CUstream_st* stream, void* target, std::size_t num_bytes) {
  check(cudaMemsetAsync(target, 0, num_bytes, stream), "cudaMemsetAsync");
}

}  // namespace zerofleet::cuda
