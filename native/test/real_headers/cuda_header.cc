// The emulated device's header beside CUDA's own: the emulator's tests are worth what its numbers are.
#include "test/real_headers/real_headers.h"

#if __has_include(<cuda_runtime_api.h>)
#include <cstddef>

namespace emulated {
#include "test/cuda_emulator/include/cuda_runtime_api.h"

// Macros in CUDA's header.
constexpr unsigned kNonBlocking = cudaStreamNonBlocking, kDisableTiming = cudaEventDisableTiming,
                   kPortable = cudaHostRegisterPortable;
}  // namespace emulated

#undef CUDART_VERSION
#include <cuda_runtime_api.h>

namespace {

#define ZF_COMPARE(name) static_assert(static_cast<long>(emulated::name) == static_cast<long>(::name))
ZF_COMPARE(cudaSuccess);
ZF_COMPARE(cudaErrorInvalidValue);
ZF_COMPARE(cudaErrorMemoryAllocation);
ZF_COMPARE(cudaErrorInvalidConfiguration);
ZF_COMPARE(cudaErrorStubLibrary);
ZF_COMPARE(cudaErrorInsufficientDriver);
ZF_COMPARE(cudaErrorNoDevice);
ZF_COMPARE(cudaErrorInvalidDevice);
ZF_COMPARE(cudaErrorDevicesUnavailable);
ZF_COMPARE(cudaErrorDeviceUninitialized);
ZF_COMPARE(cudaErrorECCUncorrectable);
ZF_COMPARE(cudaErrorNvlinkUncorrectable);
#if CUDART_VERSION >= 12080
ZF_COMPARE(cudaErrorContained);
#endif
ZF_COMPARE(cudaErrorInvalidResourceHandle);
ZF_COMPARE(cudaErrorNotReady);
ZF_COMPARE(cudaErrorIllegalAddress);
ZF_COMPARE(cudaErrorContextIsDestroyed);
ZF_COMPARE(cudaErrorAssert);
ZF_COMPARE(cudaErrorHostMemoryAlreadyRegistered);
ZF_COMPARE(cudaErrorHostMemoryNotRegistered);
ZF_COMPARE(cudaErrorHardwareStackError);
ZF_COMPARE(cudaErrorIllegalInstruction);
ZF_COMPARE(cudaErrorMisalignedAddress);
ZF_COMPARE(cudaErrorInvalidAddressSpace);
ZF_COMPARE(cudaErrorInvalidPc);
ZF_COMPARE(cudaErrorLaunchFailure);
ZF_COMPARE(cudaErrorSystemNotReady);
ZF_COMPARE(cudaErrorExternalDevice);
ZF_COMPARE(cudaErrorUnknown);
ZF_COMPARE(cudaMemcpyHostToDevice);
ZF_COMPARE(cudaMemcpyDeviceToHost);
ZF_COMPARE(cudaMemcpyDeviceToDevice);
ZF_COMPARE(cudaMemcpyDefault);
ZF_COMPARE(cudaMemPoolAttrReleaseThreshold);
ZF_COMPARE(cudaMemPoolAttrReservedMemCurrent);
ZF_COMPARE(cudaMemPoolAttrUsedMemCurrent);
ZF_COMPARE(cudaMemPoolAttrUsedMemHigh);
ZF_COMPARE(cudaMemoryTypeUnregistered);
ZF_COMPARE(cudaMemoryTypeHost);
ZF_COMPARE(cudaMemoryTypeDevice);
ZF_COMPARE(cudaFuncAttributeMaxDynamicSharedMemorySize);
ZF_COMPARE(cudaDevAttrMultiProcessorCount);
ZF_COMPARE(cudaDevAttrComputeCapabilityMajor);
ZF_COMPARE(cudaDevAttrComputeCapabilityMinor);
static_assert(emulated::kNonBlocking == cudaStreamNonBlocking);
static_assert(emulated::kDisableTiming == cudaEventDisableTiming);
static_assert(emulated::kPortable == cudaHostRegisterPortable);
#undef ZF_COMPARE

}  // namespace

std::string zerofleet::test::compared_cuda_header() {
  return std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
}
#else
std::string zerofleet::test::compared_cuda_header() { return ""; }
#endif
