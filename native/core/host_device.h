#pragma once

// Marks functions that are compiled for CUDA devices and for the host alike: the host's tests run them against the CPU
// kernels. They use only correctly rounded operations, and both compilers fuse none, so both give equal bits.
#if defined(__CUDACC__)
#define ZF_HOST_DEVICE __host__ __device__
#else
#define ZF_HOST_DEVICE
#endif

// Unrolls the loop that follows in device code: several loads are then under way at once.
#if defined(__CUDA_ARCH__)
#define ZF_PRAGMA(text) _Pragma(#text)
#define ZF_DEVICE_UNROLL(times) ZF_PRAGMA(unroll times)
#else
#define ZF_DEVICE_UNROLL(times)
#endif
