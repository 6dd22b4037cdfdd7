#pragma once

// Elementary functions in fp32. CUDA's own are within 2 ulp.
namespace zerofleet::cuda {

/// 1 / (1 + e^-x)
__device__ inline float sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }

}  // namespace zerofleet::cuda
