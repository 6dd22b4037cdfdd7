#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/attention.h"
#include "kernels/cpu/isa_dispatch.h"
#include "kernels/cpu/simd/attention.h"
#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/gemm.h"
#include "kernels/cpu/simd/pack.h"
#include "kernels/packed_matrix.h"
#include "kernels/scratch.h"

// What the forward and the backward of attention share: the kernels of one path, how matrices become operands of
// gemm_block(), the sizes of scratch arrays, the two products with a triangle of zeros, and how the work is cut.
namespace zerofleet::cpu {

/// Query rows that are worked on at once.
constexpr std::int64_t kQueryRows = 64;

/// Words of operands: pairs of bf16 or fp32 elements, see simd/gemm.h.
struct Words {
  bool pairs = false;
  std::int64_t steps(std::int64_t k) const { return pairs ? (k + 1) / 2 : k; }
  std::int64_t per_word() const { return pairs ? 2 : 1; }
  DType dtype() const { return pairs ? DType::kBF16 : DType::kF32; }
  std::int64_t panel_words(std::int64_t k, std::int64_t n) const {
    return (n + kPanel - 1) / kPanel * kPanel * steps(k);
  }
};

struct AttentionKernels {
  explicit AttentionKernels(CpuIsa isa)
      : block(ZF_PICK_KERNEL(isa, gemm_block)),
        pack_k_rows(ZF_PICK_KERNEL(isa, pack_k_rows)),
        pack_k_cols(ZF_PICK_KERNEL(isa, pack_k_cols)),
        copy_words(ZF_PICK_KERNEL(isa, copy_words)),
        softmax(ZF_PICK_KERNEL(isa, attention_softmax_rows)),
        backward(ZF_PICK_KERNEL(isa, attention_backward_rows)),
        dots(ZF_PICK_KERNEL(isa, row_dots)),
        convert(ZF_PICK_KERNEL(isa, convert_rows)) {}

  decltype(&isa_generic::gemm_block) block;
  decltype(&isa_generic::pack_k_rows) pack_k_rows;
  decltype(&isa_generic::pack_k_cols) pack_k_cols;
  decltype(&isa_generic::copy_words) copy_words;
  decltype(&isa_generic::attention_softmax_rows) softmax;
  decltype(&isa_generic::attention_backward_rows) backward;
  decltype(&isa_generic::row_dots) dots;
  decltype(&isa_generic::convert_rows) convert;
};

/// Some rows of one head's columns in a (B·T, …) matrix.
struct HeadRows {
  const ConstMatrix* matrix;
  std::int64_t row, col, rows, cols;

  PackArgs to(std::uint32_t* target, std::int64_t target_stride, const Words& words) const {
    return {matrix->at(row, col), matrix->stride, rows, cols, target, target_stride, matrix->dtype, words.pairs};
  }
};

/// Columns of one (batch, query head) in the matrices, and its first row.
struct HeadPlace {
  std::int64_t first_row, query_col, key_col, value_col, lse_index;
};

inline HeadPlace place_of(const AttentionShape& shape, std::int64_t batch, std::int64_t head) {
  const std::int64_t kv_head = head / (shape.num_heads / shape.num_kv_heads);
  return {batch * shape.sequence_length, head * shape.head_dim, (shape.num_heads + kv_head) * shape.head_dim,
          (shape.num_heads + shape.num_kv_heads + kv_head) * shape.head_dim,
          (batch * shape.num_heads + head) * shape.sequence_length};
}

/// Elements from row to row of scores and probabilities: whole cache lines, not a multiple of 4 KiB.
inline std::int64_t scores_stride(std::int64_t sequence_length) { return (sequence_length + 31) / 32 * 32 + 32; }

/// An even number of elements, so that a row of probabilities is whole words.
inline std::int64_t even(std::int64_t count) { return (count + 1) / 2 * 2; }

/// A as rows of words next to each other.
inline void set_row_major_a(GemmBlock& block, const std::uint32_t* words, std::int64_t stride) {
  block.a = words;
  block.a_row_stride = stride;
  block.a_step_stride = 1;
  block.a_group_stride = kPanel * stride;
}

/// A as the transpose of what was packed with its rows as k.
inline void set_packed_a(GemmBlock& block, const std::uint32_t* panels, std::int64_t panel_stride) {
  block.a = panels;
  block.a_row_stride = 1;
  block.a_step_stride = kPanel;
  block.a_group_stride = panel_stride;
}

/// The products of a block of query rows [row, row + rows) of one head with the keys that it sees: those before
/// row + rows, each query row those up to itself.
struct QueryProducts {
  const AttentionKernels& kernels;
  const AttentionShape& shape;
  const Words& words;

  /// c (rows, keys) = a (rows, head_dim) · b (head_dim, keys). Elements beyond a row's own key keep what stands there.
  void against_keys(const std::uint32_t* a, const std::uint32_t* b, float* c, std::int64_t row,
                    std::int64_t rows) const {
    const std::int64_t head_steps = words.steps(shape.head_dim);
    GemmBlock block;
    set_row_major_a(block, a, head_steps);
    block.b = b;
    block.b_panel_stride = head_steps * kPanel;
    block.c = c;
    block.c_stride = scores_stride(shape.sequence_length);
    block.rows = rows;
    block.cols = row + rows;
    block.steps = head_steps;
    block.pairs = words.pairs;
    block.left_out = Triangle::kColsAbove;
    block.diagonal = row;
    kernels.block(block);
  }

  /// The head's columns of c (rows, head_dim) = a (rows, keys) · b (keys, head_dim); a is zero beyond a row's own key.
  void over_keys(const std::uint32_t* a, const std::uint32_t* b, const Matrix& c, const HeadPlace& place,
                 std::int64_t row, std::int64_t rows) const {
    GemmBlock block;
    set_row_major_a(block, a, scores_stride(shape.sequence_length) / words.per_word());
    block.b = b;
    block.b_panel_stride = words.steps(shape.sequence_length) * kPanel;
    block.c = c.at(place.first_row + row, place.query_col);
    block.c_stride = c.stride;
    block.c_dtype = c.dtype;
    block.rows = rows;
    block.cols = shape.head_dim;
    block.steps = words.steps(row + rows);
    block.pairs = words.pairs;
    block.left_out = Triangle::kStepsAbove;
    block.diagonal = row;
    kernels.block(block);
  }
};

/// Calls body(place, row, rows) for each query head that uses the key/value head, and each block of its query rows.
template <class Body>
void for_query_blocks(const AttentionShape& shape, std::int64_t batch, std::int64_t kv_head, const Body& body) {
  const std::int64_t group = shape.num_heads / shape.num_kv_heads;
  for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (std::int64_t row = 0; row < shape.sequence_length; row += kQueryRows) {
      body(place_of(shape, batch, head), row, std::min(kQueryRows, shape.sequence_length - row));
    }
  }
}

/// Runs one Task per (batch, key/value head), in parallel, each with Task::Areas in its worker's scratch memory.
template <class Task, class Args>
void run_attention(const Context& ctx, Scratch& scratch, const Args& args) {
  const AttentionKernels kernels(ctx.cpu_isa);
  const Words words{packs_pairs(ctx, args.qkv.dtype)};
  Carver measure;
  typename Task::Areas(measure, args.shape, words);
  scratch.reserve(measure.used());
  const std::int64_t kv_heads = args.shape.num_kv_heads;
  ctx.pool->parallel_for(args.shape.batch * kv_heads, [&](std::int64_t task, int worker) {
    Carver carver(scratch.of(worker));
    const typename Task::Areas areas(carver, args.shape, words);
    Task(kernels, args, words, areas).run(task / kv_heads, task % kv_heads);
  });
}

}  // namespace zerofleet::cpu
