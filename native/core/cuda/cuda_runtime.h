#pragma once

#include <cstddef>
#include <string>

#include "core/device.h"

struct CUstream_st;
struct CUevent_st;

// The CUDA runtime as the rest of the core sees it, without its headers. The functions are there in every build: one
// without CUDA (core/cuda/absent.cc) has no device, and its functions throw Error{"device_unavailable"}. Otherwise a
// failing call of the runtime throws Error{"out_of_memory"}, Error{"device_unavailable"} (no driver, no such device) or
// Error{"device_failed"} with the runtime's name and text of the failure. Every device is Device{kCuda, index}.
namespace zerofleet::cuda {

/// Whether this build has the CUDA backend; a device need not be there.
bool built_in();
/// Devices that can be used now; 0 where there is no driver.
int num_devices();
/// Throws Error{"device_unavailable"} with the reason unless the device can be used; makes it the calling thread's.
void use(const Device& device);

/// Zeroed memory of the device, aligned to 256 bytes; num_bytes > 0.
std::byte* allocate(const Device& device, std::size_t num_bytes);
void release(std::byte* data) noexcept;
/// Pins host memory, so that all devices can read and write it by themselves.
void pin(const Device& device, std::byte* data, std::size_t num_bytes);
void unpin(std::byte* data) noexcept;
/// Whether `data` lies in the memory of a CUDA device.
bool is_device_memory(const void* data);

CUstream_st* create_stream(const Device& device);
void destroy_stream(CUstream_st* stream) noexcept;
void synchronize(CUstream_st* stream);
/// Whether all work queued on the stream is done.
bool is_done(CUstream_st* stream);

CUevent_st* create_event(const Device& device);
void destroy_event(CUevent_st* event) noexcept;
void record(CUevent_st* event, CUstream_st* stream);
void synchronize(CUevent_st* event);
void wait(CUstream_st* stream, CUevent_st* event);

/// Queue a copy between any two places, and zeros in memory of a device.
void copy(CUstream_st* stream, void* target, const void* source, std::size_t num_bytes);
void fill_zero(CUstream_st* stream, void* target, std::size_t num_bytes);

}  // namespace zerofleet::cuda
