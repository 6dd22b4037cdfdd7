#pragma once

// Marks functions that are compiled for CUDA devices and for the host alike: the host's tests run them against the CPU
// kernels. They use only correctly rounded operations, and both compilers fuse none, so both give equal bits.
#if defined(__CUDACC__)
#define ZF_HOST_DEVICE __host__ __device__
#else
#define ZF_HOST_DEVICE
#endif

// Marks the functions of formulas (kernels/*/formulas/), which SIMD sources use besides. SIMD sources are compiled once
// per instruction set, so there a function must never be emitted, but always go into its caller.
#if defined(__CUDACC__)
#define ZF_FORMULA __host__ __device__ inline
#else
#define ZF_FORMULA inline __attribute__((always_inline))
#endif

#define ZF_PRAGMA(text) _Pragma(#text)

// Unrolls the loop that follows in device code: several loads are then in progress at once.
#if defined(__CUDA_ARCH__)
#define ZF_DEVICE_UNROLL(times) ZF_PRAGMA(unroll times)
#else
#define ZF_DEVICE_UNROLL(times)
#endif

// The same in the loops of formulas everywhere: what depends on the loop's index alone becomes a constant.
#if defined(__CUDACC__)
#define ZF_UNROLL(times) ZF_DEVICE_UNROLL(times)
#else
#define ZF_UNROLL(times) ZF_PRAGMA(GCC unroll times)
#endif
