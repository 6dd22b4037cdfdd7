#pragma once

#include <cstddef>
#include <string>

#include "core/device.h"

struct CUstream_st;
struct CUevent_st;

// The CUDA runtime as the rest of the core sees it, without its headers. The functions are there in every build: one
// without CUDA (core/cuda/absent.cc) has no device, and its functions throw Error{"device_unavailable"}. Otherwise a
// failing call of the runtime throws one of these errors, with the runtime's name and text of the failure:
// - Error{"out_of_memory"}
// - Error{"device_unavailable"}: no driver, no such device
// - Error{"gpu_memory_fault"}: memory that can't be corrected
// - Error{"gpu_lost"}: hardware or driver failed
// - Error{"gpu_fault"}: a kernel did what it must not
// - Error{"device_failed"}: all else
//
// Work fails behind the host's back: the call that throws is mostly not the one that failed.
// Every device is Device{kCuda, index}.
namespace zerofleet::cuda {

/// Returns true if this build has the CUDA backend; a device need not be present.
bool built_in();
/// Devices that can be used now; 0 where there is no driver, or an unusable one.
int num_devices();
/// Returns the reason for which an installed driver has no devices: it is too old for this build. Empty: it is not, or
/// there is no driver.
std::string driver_problem();
/// Version of the CUDA runtime in this build, e.g. 13.0; empty without CUDA.
std::string runtime_version();
/// Throws Error{"device_unavailable"} with the reason unless the device can be used; makes it the calling thread's.
void use(const Device& device);

/// Returns zeroed memory of the device, aligned to 256 bytes; num_bytes > 0. It comes from the device's pool (the
/// runtime's default one), which keeps returned memory: once a training has its memory, no step requests more from the
/// driver.
std::byte* allocate(const Device& device, std::size_t num_bytes);
/// Waits for all work of the device first.
void release(std::byte* data) noexcept;

/// Uncleared memory of the stream's device, taken and given back in the order of its stream; num_bytes > 0.
std::byte* allocate(CUstream_st* stream, std::size_t num_bytes);
void release(CUstream_st* stream, std::byte* data) noexcept;

/// Makes the pool hold `num_bytes` beyond those in use. Throws Error{"out_of_memory"} with the available amount.
void reserve(const Device& device, std::size_t num_bytes);

/// Bytes of a device.
struct DeviceMemory {
  std::size_t in_use = 0;    // of this process's pool
  std::size_t peak = 0;      // the most that was in use of it at one time, since reset_peak()
  std::size_t reserved = 0;  // that the pool holds
  std::size_t free = 0;      // beyond the pools of all processes
  std::size_t total = 0;
};
DeviceMemory memory_of(const Device& device);
void reset_peak(const Device& device);
/// Pins host memory, so that all devices can read and write it by themselves.
void pin(const Device& device, std::byte* data, std::size_t num_bytes);
void unpin(std::byte* data) noexcept;
/// Returns true if `data` lies in the memory of a CUDA device.
bool is_device_memory(const void* data);

/// is_urgent: its kernels get free multiprocessors before those of other streams.
CUstream_st* create_stream(const Device& device, bool is_urgent);
void destroy_stream(CUstream_st* stream) noexcept;
void synchronize(CUstream_st* stream);
/// Returns true if all work queued on the stream is done.
bool is_done(CUstream_st* stream);

CUevent_st* create_event(const Device& device, bool has_time);
void destroy_event(CUevent_st* event) noexcept;
void record(CUevent_st* event, CUstream_st* stream);
void synchronize(CUevent_st* event);
/// Returns true if all that was marked is done.
bool is_done(CUevent_st* event);
/// Both have times and are done.
double seconds_between(CUevent_st* begin, CUevent_st* end);
void wait(CUstream_st* stream, CUevent_st* event);

/// Queue a copy between any two memories, and zeros in memory of a device.
void copy(CUstream_st* stream, void* target, const void* source, std::size_t num_bytes);
void fill_zero(CUstream_st* stream, void* target, std::size_t num_bytes);

}  // namespace zerofleet::cuda
