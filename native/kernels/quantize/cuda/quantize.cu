// Quantized matrices. Quantizing happens once for a matrix: a block of threads has a group of scales, a thread one of
// them and its elements. Dequantizing is one pass over memory: a thread has four bytes of codes.
#include "core/device/context.h"
#include "kernels/common/cuda/elements.cuh"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/matrix.h"
#include "kernels/quantize/formulas/blocks.h"

namespace zerofleet::cuda {
namespace {

constexpr int kQuantizeThreads = 256;  // a block per group, a thread for each of its blocks of elements
static_assert(kQuantizeThreads == kQuantGroup);
constexpr int kUnpackThreads = 256;

/// The elements of a quantization block as they lie in their row.
template <class T>
struct BlockOfRow {
  __device__ BlockOfRow(const Rows<const T>& source, std::int64_t cols, std::int64_t block) {
    const std::int64_t of_row = quant_blocks_of_row(cols);
    first = source.row(block / of_row) + block % of_row * kQuantBlock;
    count = elements_of_block(cols, block % of_row);
  }
  __device__ float at(int index) const { return index < count ? to_float(first[index]) : 0.0F; }

  const T* first;
  int count;
};

template <class T>
__device__ float magnitude_of(const BlockOfRow<T>& values) {
  float largest = 0;
  for (int i = 0; i < values.count; ++i) largest = larger_or_nan(largest, fabsf(values.at(i)));
  return largest;
}

template <class T>
__device__ void write_codes(QuantFormat format, const BlockOfRow<T>& values, float scale, std::uint8_t* target) {
  if (format == QuantFormat::kInt8) {
    for (int i = 0; i < kQuantBlock; ++i) {
      target[i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(int8_code(quotient_of(values.at(i), scale))));
    }
    return;
  }
  for (int i = 0; i < kQuantBlock / 2; ++i) {
    const int low = static_cast<int>(nf4_code(quotient_of(values.at(i), scale)));
    const int high = static_cast<int>(nf4_code(quotient_of(values.at(i + kQuantBlock / 2), scale)));
    target[i] = static_cast<std::uint8_t>(low | high << 4);
  }
}

template <class T>
__global__ void __launch_bounds__(kQuantizeThreads)
    quantize_kernel(const Rows<const T> source, const QuantBlocks target) {
  __shared__ float scales[kQuantGroup];
  __shared__ QuantGroup group;
  const std::int64_t blocks = target.rows * quant_blocks_of_row(target.cols);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kQuantGroup, block = first + threadIdx.x;
  const int thread = static_cast<int>(threadIdx.x);
  if (block < blocks) {
    scales[thread] = scale_of(target.format, magnitude_of(BlockOfRow<T>(source, target.cols, block)));
  }
  __syncthreads();
  if (thread == 0) {
    group = group_of(scales, static_cast<int>(blocks - first < kQuantGroup ? blocks - first : kQuantGroup));
    target.groups[blockIdx.x] = group;
  }
  __syncthreads();
  if (block >= blocks) return;
  const std::int8_t code = scale_code(group, scales[thread]);
  target.scale_codes[block] = code;
  write_codes(target.format, BlockOfRow<T>(source, target.cols, block), restored_scale(group, code),
              target.codes + block * code_bytes_of_block(target.format));
}

template <class T>
struct Restored {
  Rows<T> rows;
  std::int64_t cols;
  bool aligned;

  /// Four elements, of which those beyond the end of the row are left out.
  __device__ void write(std::int64_t row, std::int64_t col, const Vec4& x) const {
    const std::int64_t left = cols - col;
    if (left <= 0) return;
    const int count = left < 4 ? static_cast<int>(left) : 4;
    store4_as<T>(reinterpret_cast<std::byte*>(rows.row(row)), {col, count, aligned && count == 4}, x);
  }
};

template <class T>
__global__ void __launch_bounds__(kUnpackThreads)
    dequantize_kernel(const ConstQuantBlocks source, const Restored<T> target) {
  __shared__ float levels[16];
  ZF_DEVICE_UNROLL(16)
  for (int code = 0; code < 16; ++code) {
    if (threadIdx.x == static_cast<unsigned>(code)) levels[code] = nf4_level(code);
  }
  __syncthreads();
  const std::int64_t word = static_cast<std::int64_t>(blockIdx.x) * kUnpackThreads + threadIdx.x;
  const std::int64_t words_of_block = code_bytes_of_block(source.format) / 4, of_row = quant_blocks_of_row(source.cols);
  const std::int64_t block = word / words_of_block;
  if (block >= source.rows * of_row) return;
  const float scale = scale_at(source, block);
  const Four<std::uint8_t> codes = reinterpret_cast<const Four<std::uint8_t>*>(source.codes)[word];
  const std::int64_t row = block / of_row, col = block % of_row * kQuantBlock + word % words_of_block * 4;
  Vec4 low, high;
  if (source.format == QuantFormat::kInt8) {
    ZF_DEVICE_UNROLL(4)
    for (int k = 0; k < 4; ++k) low.v[k] = static_cast<float>(static_cast<std::int8_t>(codes.v[k])) * scale;
    return target.write(row, col, low);
  }
  ZF_DEVICE_UNROLL(4)
  for (int k = 0; k < 4; ++k) {
    low.v[k] = levels[codes.v[k] & 15] * scale;
    high.v[k] = levels[codes.v[k] >> 4] * scale;
  }
  target.write(row, col, low);
  target.write(row, col + kQuantBlock / 2, high);
}

}  // namespace

void quantize(const Context& ctx, const ConstMatrix& source, const QuantBlocks& target) {
  const Stream& stream = stream_of(ctx);
  const unsigned groups = num_blocks_for(target.rows * quant_blocks_of_row(target.cols), kQuantGroup);
  with_element(source.dtype, [&]<class T>(T*) {
    launch("quantize", stream, {groups, kQuantizeThreads}, quantize_kernel<T>, rows_of<T>(source), target);
  });
}

void dequantize(const Context& ctx, const ConstQuantBlocks& source, const Matrix& target) {
  const Stream& stream = stream_of(ctx);
  const std::int64_t words = source.rows * quant_blocks_of_row(source.cols) * code_bytes_of_block(source.format) / 4;
  const bool aligned = aligned_for_four(target.data, target.dtype) && target.stride % 4 == 0;
  with_element(target.dtype, [&]<class T>(T*) {
    launch("dequantize", stream, {num_blocks_for(words, kUnpackThreads), kUnpackThreads}, dequantize_kernel<T>, source,
           Restored<T>{rows_of<T>(target), target.cols, aligned});
  });
}

}  // namespace zerofleet::cuda
