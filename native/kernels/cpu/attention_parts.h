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

// What the forward and the backward of attention share: the kernels of one path, how matrices become operands of
// gemm_block(), and the sizes of scratch arrays.
namespace zerofleet::cpu {

/// Query rows that are worked on at once.
constexpr std::int64_t kQueryRows = 64;

/// Words of operands: pairs of bf16 or fp32 elements, see simd/gemm.h.
struct Words {
  bool pairs = false;
  std::int64_t steps(std::int64_t k) const { return pairs ? (k + 1) / 2 : k; }
  std::int64_t per_word() const { return pairs ? 2 : 1; }
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
    return {matrix->at(row, col),          matrix->stride, rows, cols, target, target_stride,
            matrix->dtype == DType::kBF16, words.pairs};
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

}  // namespace zerofleet::cpu
