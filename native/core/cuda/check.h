#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "core/error.h"

namespace zerofleet::cuda {

/// Throws the Error that core/cuda/cuda_runtime.h states, unless `status` is success. `call` names the failed call.
inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // a failure that has been reported must not turn up again at the next launch
  const std::string message = std::string(call) + ": " + cudaGetErrorName(status) + ": " + cudaGetErrorString(status);
  switch (status) {
    case cudaErrorMemoryAllocation:
      throw Error("out_of_memory", message);
    // The device's memory, or the contents of a page, can't be trusted any more.
    case cudaErrorECCUncorrectable:
#if CUDART_VERSION >= 12080
    case cudaErrorContained:
#endif
      throw Error("gpu_memory_fault", message);
    // A part of the machine failed, or the driver took the device away.
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceUninitialized:
    case cudaErrorContextIsDestroyed:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
      throw Error("gpu_lost", message);
    // Programming errors in this library.
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
      throw Error("gpu_fault", message);
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInvalidDevice:
    case cudaErrorStubLibrary:
    case cudaErrorSystemNotReady:
      throw Error("device_unavailable", message);
    default:
      throw Error("device_failed", message);
  }
}

}  // namespace zerofleet::cuda
