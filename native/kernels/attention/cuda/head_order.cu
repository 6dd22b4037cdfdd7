// The order of heads in the columns of a row: a block reorders some columns of all heads of one row, in shared memory.
#include "core/device/context.h"
#include "kernels/attention/head_order.h"
#include "kernels/common/cuda/dynamic_shared.cuh"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_vector.cuh"

namespace zerofleet::cuda {
namespace {

constexpr unsigned kSlice = 16;  // columns of a head; 3 · 256 heads fill 48 KiB in fp32
constexpr int kOrderThreads = 256;

template <class T>
struct HeadOrderArguments {
  Rows<T> qkv;
  unsigned heads, head_dim;
  bool by_head;
};

template <class T>
__global__ void __launch_bounds__(kOrderThreads) head_order_kernel(const HeadOrderArguments<T> a) {
  T* old = dynamic_shared<T>();  // (3 · heads, width)
  T* row = a.qkv.row(blockIdx.x);
  const unsigned first = blockIdx.y * kSlice, rest = a.head_dim - first;
  const unsigned width = rest < kSlice ? rest : kSlice, count = 3 * a.heads * width;
  for (unsigned i = threadIdx.x; i < count; i += kOrderThreads)
    old[i] = row[i / width * a.head_dim + first + i % width];
  __syncthreads();
  for (unsigned i = threadIdx.x; i < count; i += kOrderThreads) {
    const unsigned to = i / width;
    const unsigned from = a.by_head ? to % 3 * a.heads + to / 3 : to % a.heads * 3 + to / a.heads;
    row[to * a.head_dim + first + i % width] = old[from * width + i % width];
  }
}

}  // namespace

void order_heads(const Context& ctx, const HeadOrder& args) {
  if (args.qkv.rows == 0) return;
  const std::int64_t head_dim = args.qkv.cols / (3 * args.num_heads);
  const dim3 blocks(num_blocks_for(args.qkv.rows, 1), num_blocks_across(head_dim, kSlice));
  with_element(args.qkv.dtype, [&]<class T>(T*) {
    const HeadOrderArguments<T> a{rows_of<T>(args.qkv), static_cast<unsigned>(args.num_heads),
                                  static_cast<unsigned>(head_dim), args.by_head};
    const auto shared_bytes = static_cast<std::size_t>(3 * args.num_heads * kSlice) * sizeof(T);
    launch("order_heads", stream_of(ctx), {blocks, kOrderThreads, shared_bytes}, head_order_kernel<T>, a);
  });
}

}  // namespace zerofleet::cuda
