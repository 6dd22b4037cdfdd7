#include <bit>
#include <numeric>
#include <vector>

#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/temporary.h"
#include "kernels/common/cuda/vec4.h"
#include "kernels/gemm/cuda/noise_trial.h"

namespace zerofleet::cuda {
namespace {

constexpr unsigned kChecksumBlocks = 64;

using EpilogueKind = GemmEpilogue::Kind;

/// The finalizer of MurmurHash3 for 64 bits.
ZF_HOST_DEVICE std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

struct Elements {
  std::byte* data;
  DType dtype;
  std::int64_t numel, cols, stride;

  explicit Elements(const Matrix& m)
      : data(static_cast<std::byte*>(m.data)), dtype(m.dtype), numel(m.rows * m.cols), cols(m.cols), stride(m.stride) {}
  ZF_HOST_DEVICE Place4 place_of(std::int64_t index) const { return {index / cols * stride + index % cols, 1, false}; }
};

/// Values of both signs and of sizes so different (2^−11 to 2) that each sum has to be rounded, and shows its order.
__global__ void __launch_bounds__(kFlatThreads) noise_kernel(const Elements m, std::uint64_t seed) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kFlatThreads + threadIdx.x;
  if (index >= m.numel) return;
  const std::uint64_t bits = mixed(static_cast<std::uint64_t>(index) + seed);
  const float scale = 1.0F / static_cast<float>(1 << (bits >> 8) % 12),
              size = scale * (1.0F + static_cast<float>(bits & 127) / 128);
  store4(m.data, m.dtype, m.place_of(index), Vec4{{(bits >> 63) != 0 ? -size : size, 0, 0, 0}});
}

/// Each thread's sum over its elements.
__global__ void __launch_bounds__(kFlatThreads) checksum_kernel(const Elements m, std::uint64_t* sums) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kFlatThreads + threadIdx.x;
  std::uint64_t sum = 0;
  for (std::int64_t index = thread; index < m.numel;
       index += static_cast<std::int64_t>(kChecksumBlocks) * kFlatThreads) {
    const float value = load4(m.data, m.dtype, m.place_of(index)).v[0];
    sum += mixed(static_cast<std::uint64_t>(index) << 32 | std::bit_cast<std::uint32_t>(value));
  }
  sums[thread] = sum;
}

void fill_with_noise(const Context& ctx, const Matrix& m, std::uint64_t seed) {
  launch("gemm", stream_of(ctx), {num_blocks_for(m.rows * m.cols, kFlatThreads), kFlatThreads}, noise_kernel,
         Elements(m), seed);
}

std::uint64_t checksum_of(const Context& ctx, const Matrix& m) {
  Results<std::uint64_t> sums(ctx, static_cast<std::size_t>(kChecksumBlocks) * kFlatThreads);
  launch("gemm", stream_of(ctx), {kChecksumBlocks, kFlatThreads}, checksum_kernel, Elements(m), sums.data());
  const std::vector<std::uint64_t> of_threads = sums.fetch();
  return std::accumulate(of_threads.begin(), of_threads.end(), std::uint64_t{0});
}

/// Memory of a trial, which it may write.
Matrix writable(const ConstMatrix& m) { return {const_cast<void*>(m.data), m.dtype, m.rows, m.cols, m.stride}; }

}  // namespace

NoiseTrial::NoiseTrial(const Context& ctx, const Matmul& trial) : ctx_(ctx), product_(trial) {
  product_.accumulate = false;
  fill_with_noise(ctx, writable(product_.a), 1);
  fill_with_noise(ctx, writable(product_.b), std::uint64_t{1} << 60);
  if (product_.bias != nullptr) {
    const Matrix& c = product_.c;
    fill_with_noise(ctx, writable({product_.bias, c.dtype, 1, c.cols, c.cols}), std::uint64_t{1} << 61);
  }
  if (product_.epilogue.kind == EpilogueKind::kGeluBackward)
    fill_with_noise(ctx, product_.epilogue.inner, std::uint64_t{1} << 62);
}

std::uint64_t NoiseTrial::checksum() const {
  const std::uint64_t of_result = checksum_of(ctx_, product_.c);
  return product_.epilogue.kind == EpilogueKind::kGelu ? mixed(of_result) + checksum_of(ctx_, product_.epilogue.inner)
                                                       : of_result;
}

}  // namespace zerofleet::cuda
