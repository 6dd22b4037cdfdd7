// The runtime's calls about memory.
#include <cstdint>
#include <cstring>
#include <vector>

#include "test/cuda_emulator/memory.h"
#include "test/cuda_emulator/memory_pool.h"
#include "test/cuda_emulator/runtime_parts.h"

using namespace zerofleet::emulator;

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const MemorySizes sizes = memory_sizes();
  const PoolSizes pool = pool_sizes();
  *total = sizes.limit;
  const std::size_t taken = sizes.used + pool.reserved - pool.in_use;
  *free = sizes.limit - (taken < sizes.limit ? taken : sizes.limit);
  return result(cudaSuccess);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  *pool = nullptr;  // the only one
  return result(cudaSuccess);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void* value) {
  const std::uint64_t number = *static_cast<const std::uint64_t*>(value);
  if (attribute == cudaMemPoolAttrReleaseThreshold) {
    set_pool_threshold(number);
  } else if (attribute == cudaMemPoolAttrUsedMemHigh && number == 0) {
    reset_pool_peak();
  } else {
    return result(cudaErrorInvalidValue);
  }
  return result(cudaSuccess);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void* value) {
  const PoolSizes sizes = pool_sizes();
  auto& number = *static_cast<std::uint64_t*>(value);
  switch (attribute) {
    case cudaMemPoolAttrReservedMemCurrent:
      number = sizes.reserved;
      break;
    case cudaMemPoolAttrUsedMemCurrent:
      number = sizes.in_use;
      break;
    case cudaMemPoolAttrUsedMemHigh:
      number = sizes.peak;
      break;
    case cudaMemPoolAttrReleaseThreshold:
      return result(cudaErrorInvalidValue);
  }
  return result(cudaSuccess);
}

cudaError_t cudaMallocAsync(void** data, std::size_t num_bytes, cudaStream_t) {
  if (const cudaError_t status = result(cudaSuccess); status != cudaSuccess) return status;
  ++tally().allocations;
  bool grew = false;
  *data = take_from_pool(num_bytes, grew);
  if (grew) ++tally().pool_growths;
  return result(*data == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  ++tally().allocations;
  if (!free_in_pool(data)) return result(cudaErrorInvalidValue);
  queue_of(stream).post([data] { give_back(data); });
  return result(cudaSuccess);
}
cudaError_t cudaFree(void* data) {
  if (data == nullptr) return cudaSuccess;
  ++tally().allocations;
  // Memory of a pool is free at once, whatever still uses it; of other memory there is none here.
  return result(free_in_pool(data) && give_back(data) ? cudaSuccess : cudaErrorInvalidValue);
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

cudaError_t cudaMemsetAsync(void* target, int value, std::size_t num_bytes, cudaStream_t stream) {
  if (!on_device(target, num_bytes)) return result(cudaErrorInvalidValue);
  queue_of(stream).post([=] { std::memset(target, value, num_bytes); });
  return result(cudaSuccess);
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t num_bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  const bool to_device = on_device(target, 1), from_device = on_device(source, 1);
  if ((to_device && !on_device(target, num_bytes)) || (from_device && !on_device(source, num_bytes)))
    return result(cudaErrorInvalidValue);
  if (const cudaError_t status = result(cudaSuccess); status != cudaSuccess) return status;
  ++tally().copies;
  WorkQueue& queue = queue_of(stream);
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
