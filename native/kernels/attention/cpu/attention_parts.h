#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/attention/simd/attention.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/simd/convert.h"
#include "kernels/elementwise/simd/dropout.h"
#include "kernels/gemm/packed_matrix.h"
#include "kernels/gemm/simd/gemm.h"
#include "kernels/gemm/simd/pack.h"

// Code shared by the forward and the backward of attention: the kernels of one path, and the conversion of matrices to
// operands of gemm_block(). The file also has the sizes of scratch arrays, and the two products with a triangle of
// zeros.
namespace zerofleet::cpu {

/// Query rows and keys that are worked on at once. Blocks of keys begin at multiples of kKeyRows, which is a multiple
/// of kQueryRows, so a block that a block of queries sees never begins behind it.
constexpr std::int64_t kQueryRows = 64;
constexpr std::int64_t kKeyRows = 256;

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
        finish(ZF_PICK_KERNEL(isa, attention_finish_rows)),
        backward(ZF_PICK_KERNEL(isa, attention_backward_rows)),
        dots(ZF_PICK_KERNEL(isa, row_dots)),
        convert(ZF_PICK_KERNEL(isa, convert_rows)),
        dropout(ZF_PICK_KERNEL(isa, dropout_rows)) {}

  decltype(&isa_generic::gemm_block) block;
  decltype(&isa_generic::pack_k_rows) pack_k_rows;
  decltype(&isa_generic::pack_k_cols) pack_k_cols;
  decltype(&isa_generic::copy_words) copy_words;
  decltype(&isa_generic::attention_softmax_rows) softmax;
  decltype(&isa_generic::attention_finish_rows) finish;
  decltype(&isa_generic::attention_backward_rows) backward;
  decltype(&isa_generic::row_dots) dots;
  decltype(&isa_generic::convert_rows) convert;
  decltype(&isa_generic::dropout_rows) dropout;
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
struct HeadOffsets {
  std::int64_t first_row, query_col, key_col, value_col, lse_index;
};

inline HeadOffsets offsets_of(const AttentionShape& shape, std::int64_t batch, std::int64_t head) {
  const std::int64_t kv_head = head / (shape.num_heads / shape.num_kv_heads);
  return {batch * shape.sequence_length, head * shape.head_dim, (shape.num_heads + kv_head) * shape.head_dim,
          (shape.num_heads + shape.num_kv_heads + kv_head) * shape.head_dim,
          (batch * shape.num_heads + head) * shape.sequence_length};
}

/// Keys of the largest block.
inline std::int64_t block_keys(const AttentionShape& shape) { return std::min(shape.sequence_length, kKeyRows); }

/// Elements from row to row of a block's scores and probabilities: whole cache lines, not a multiple of 4 KiB.
inline std::int64_t scores_stride(const AttentionShape& shape) { return (block_keys(shape) + 31) / 32 * 32 + 32; }

/// An even number of elements, so that a row of probabilities is whole words.
inline std::int64_t even(std::int64_t count) { return (count + 1) / 2 * 2; }

/// A as rows of words next to each other.
inline void set_row_major_a(GemmBlock& block, const std::uint32_t* words, std::int64_t stride) {
  block.a = words;
  block.a_row_stride = stride;
  block.a_step_stride = 1;
  block.a_group_stride = kPanel * stride;
}

/// A as the transpose of an operand that was packed with its rows as k.
inline void set_packed_a(GemmBlock& block, const std::uint32_t* panels, std::int64_t panel_stride) {
  block.a = panels;
  block.a_row_stride = 1;
  block.a_step_stride = kPanel;
  block.a_group_stride = panel_stride;
}

/// Some query rows of one head, and a block of the keys that they see.
struct QueryBlock {
  HeadOffsets offsets;
  std::int64_t row, rows;
};
struct KeyBlock {
  std::int64_t key, keys;
};

/// Blocks of a head's keys or values as operands, and their products with a block of query rows; a query sees the keys
/// up to itself.
struct HeadProducts {
  const AttentionKernels& kernels;
  const AttentionShape& shape;
  const Words& words;

  /// Offset of a block's columns in a packed (head_dim, T), and of its rows in a packed (T, head_dim).
  std::int64_t columns_at(const KeyBlock& keys) const { return keys.key * words.steps(shape.head_dim); }
  std::int64_t rows_at(const KeyBlock& keys) const { return keys.key / words.per_word() * kPanel; }

  /// A block of the keys or values that begin at `col`, packed into (head_dim, T).
  void pack_by_dim(const ConstMatrix& qkv, const HeadOffsets& offsets, std::int64_t col, const KeyBlock& keys,
                   std::uint32_t* target) const {
    const HeadRows rows{&qkv, offsets.first_row + keys.key, col, keys.keys, shape.head_dim};
    kernels.pack_k_cols(rows.to(target + columns_at(keys), words.steps(shape.head_dim) * kPanel, words));
  }

  /// The same into (T, head_dim).
  void pack_by_row(const ConstMatrix& qkv, const HeadOffsets& offsets, std::int64_t col, const KeyBlock& keys,
                   std::uint32_t* target) const {
    const HeadRows rows{&qkv, offsets.first_row + keys.key, col, keys.keys, shape.head_dim};
    kernels.pack_k_rows(rows.to(target + rows_at(keys), words.steps(shape.sequence_length) * kPanel, words));
  }

  /// c (rows, keys) = a (rows, head_dim) · b (head_dim, T). Elements beyond a row's own key keep what stands there.
  void against_keys(const std::uint32_t* a, const std::uint32_t* b, float* c, const QueryBlock& queries,
                    const KeyBlock& keys) const {
    const std::int64_t head_steps = words.steps(shape.head_dim);
    GemmBlock block;
    set_row_major_a(block, a, head_steps);
    block.b_panel_stride = head_steps * kPanel;
    block.b = b + columns_at(keys);
    block.c = c;
    block.c_stride = scores_stride(shape);
    block.rows = queries.rows;
    block.cols = keys.keys;
    block.steps = head_steps;
    block.pairs = words.pairs;
    block.left_out = Triangle::kColsAbove;
    block.diagonal = queries.row - keys.key;
    kernels.block(block);
  }

  /// sums (rows, head_dim) += a (rows, keys) · b (T, head_dim), or = where it is the first; a is zero beyond a row's
  /// own key.
  void over_keys(const std::uint32_t* a, const std::uint32_t* b, float* sums, const QueryBlock& queries,
                 const KeyBlock& keys, bool first) const {
    GemmBlock block;
    set_row_major_a(block, a, scores_stride(shape) / words.per_word());
    block.b = b + rows_at(keys);
    block.b_panel_stride = words.steps(shape.sequence_length) * kPanel;
    block.c = sums;
    block.c_stride = shape.head_dim;
    block.rows = queries.rows;
    block.cols = shape.head_dim;
    block.steps = words.steps(keys.keys);
    block.pairs = words.pairs;
    block.accumulate = !first;
    block.left_out = Triangle::kStepsAbove;
    block.diagonal = queries.row - keys.key;
    kernels.block(block);
  }
};

/// The first key that the query at `position` of the sequence whose first row is `first_row` sees, by the window and
/// the documents. It never falls with the position.
inline std::int64_t first_key_of(const AttentionOptions& options, std::int64_t first_row, std::int64_t position) {
  const std::int64_t first = options.window == 0 ? 0 : std::max<std::int64_t>(0, position + 1 - options.window);
  if (options.document_starts.empty()) return first;
  return std::max<std::int64_t>(first, options.document_starts[static_cast<std::size_t>(first_row + position)]);
}

/// The first key that each row of a block of queries sees.
class FirstKeys {
 public:
  FirstKeys(const AttentionOptions& options, const QueryBlock& queries)
      : all_zero_(options.window == 0 && options.document_starts.empty()) {
    if (all_zero_) return;
    for (std::int64_t i = 0; i < queries.rows; ++i) {
      keys_[static_cast<std::size_t>(i)] = first_key_of(options, queries.offsets.first_row, queries.row + i);
    }
  }

  std::int64_t lowest() const { return keys_[0]; }
  const std::int64_t* data() const { return all_zero_ ? nullptr : keys_.data(); }

 private:
  bool all_zero_;
  std::array<std::int64_t, kQueryRows> keys_{};
};

/// The part of a block of keys that some row of the queries sees, from a whole panel on; may be empty.
inline KeyBlock seen_of(const KeyBlock& keys, const QueryBlock& queries, const FirstKeys& first_keys) {
  const std::int64_t begin = std::max(keys.key, first_keys.lowest() / kPanel * kPanel);
  return {begin, std::max<std::int64_t>(0, std::min(keys.key + keys.keys, queries.row + queries.rows) - begin)};
}

/// Arguments of the element-wise kernels for a block.
inline AttentionRowsArgs rows_args(const AttentionShape& shape, const Words& words, const QueryBlock& queries,
                                   const KeyBlock& keys, const FirstKeys& first_keys) {
  AttentionRowsArgs args;
  args.scores_stride = scores_stride(shape);
  args.probs_stride = args.scores_stride;
  args.scale = shape.score_scale();
  args.soft_cap = static_cast<float>(shape.soft_cap);
  args.rows = queries.rows;
  args.keys = keys.keys;
  args.first_valid = queries.row + 1 - keys.key;
  args.first_keys = first_keys.data();
  args.first_key = keys.key;
  args.padded = even(keys.keys);
  args.probs_dtype = words.dtype();
  return args;
}

/// The dropout of a call's probabilities, or none.
class AttentionDropout {
 public:
  AttentionDropout(const AttentionKernels& kernels, const AttentionShape& shape, const AttentionOptions& options)
      : kernels_(kernels),
        shape_(shape),
        rule_(dropout_rule(options.dropout_key, options.dropout)),
        active_(options.dropout > 0) {}

  /// Applies the mask to a block's (rows, keys) probabilities or their gradients, in place.
  void apply(void* values, DType dtype, const QueryBlock& queries, const KeyBlock& keys) const {
    if (!active_) return;
    DropoutArgs args;
    args.stream = rule_.stream;
    args.dropped_below = rule_.dropped_below;
    args.scale = rule_.scale;
    args.x = {values, scores_stride(shape_)};
    args.y = {values, scores_stride(shape_)};
    args.elements_per_row = static_cast<std::uint64_t>(shape_.sequence_length);
    const auto row = static_cast<std::uint64_t>(queries.offsets.lse_index + queries.row);
    args.first_element = row * args.elements_per_row + static_cast<std::uint64_t>(keys.key);
    args.rows = queries.rows;
    args.cols = keys.keys;
    args.dtype = dtype;
    kernels_.dropout(args);
  }

 private:
  const AttentionKernels& kernels_;
  const AttentionShape& shape_;
  DropoutRule rule_;
  bool active_;
};

}  // namespace zerofleet::cpu
