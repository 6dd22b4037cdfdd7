#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "core/grad_sink.h"
#include "kernels/attention/rope.h"
#include "kernels/common/indices.h"
#include "kernels/common/scratch.h"
#include "kernels/elementwise/dropout.h"
#include "kernels/gemm/packed_matrix.h"
#include "kernels/quantize/quantized_matrix.h"
#include "model/common/leaf_input.h"
#include "model/common/row_part.h"
#include "model/common/tensor.h"
#include "model/common/values.h"
#include "model/common/weight_use.h"
#include "model/config/frozen_params.h"
#include "model/config/model_config.h"
#include "model/config/param_table.h"

// Types shared by all blocks of a layer (norms, attention, MLPs). A block has its parameters' indices, their packed
// copies, what it keeps from forward to backward (Kept) and what its backward works in (Work). There is one Kept per
// layer, or one in all with activation checkpointing. All layers share Work. The sizes of both stand beside their
// allocations, because a memory estimate repeats them. There:
// - D is hidden_size, I intermediate_size, H heads.
// - Q = H · head_dim, KV = key/value heads · head_dim, QKV = Q + 2·KV.
// - M is micro-batch · sequence length, R = rows_at_once(M), e the bytes of an element of the compute dtype.
// - row(c) is the bytes of a tensor's row: c·e rounded up to 16, plus 64 where that is a multiple of 2048 (see Tensor).
// - packed(k, n) is the bytes of an operand: 4 · steps(k) · (n rounded up to 32) (see PackedMatrix). With pairs (bf16
//   on a path that multiplies bf16) steps(k) is k/2 rounded up, else k.
namespace zerofleet {

class RouterTally;
class RowExchange;

/// Device, compute types and settings that all parts of a model share.
struct ModelContext {
  Context ctx;
  ModelConfig config;
  DType dtype = DType::kF32;
  Scratch* scratch = nullptr;
  const RopeTable* rotations = nullptr;
  WeightLayout layout = WeightLayout::kOutIn;
  RowExchange* row_exchange = nullptr;           // to experts that other ranks hold; null: all are here
  WeightUse weights = WeightUse::kPackedCopies;  // of the blocks that all tokens pass through
  DType weight_gradients = DType::kF32;          // that products make in one go: fp32 or `dtype`
  FrozenParams frozen = {};
  const Tensor* dropped =
      nullptr;  // room for an adapter's input after dropout, of any shape; null: nothing is dropped there
  const RopeTable* local_rotations = nullptr;
  bool adapters_on = true;  // off: passes leave the products of adapters out; not for a backward
  PackedWords packed_words = PackedWords::kFastest;  // of packed copies for the forward
  /// The most rows that a dense MLP, or the backward of a product with a weight, computes at once (row_part.h). The
  /// MLP's backward of more rows computes their activations again.
  std::int64_t max_rows_at_once = 0;  // 0: all

  bool trains(std::size_t param) const { return !frozen.has(param); }
  /// Gives a gradient to the sink, unless the parameter is frozen.
  void emit(std::size_t param, std::span<const float> grad, GradSink& sink) const {
    if (trains(param)) sink.take(param, grad);
  }

  /// A tensor of the compute dtype.
  Tensor tensor(std::int64_t rows, std::int64_t cols) const { return Tensor(ctx, dtype, rows, cols); }
};

/// Rows that are computed at once, of a pass of `rows`.
inline std::int64_t rows_at_once(const ModelContext& model, std::int64_t rows) {
  return model.max_rows_at_once == 0 ? rows : part_rows(rows, model.max_rows_at_once);
}

/// Shape of a pass: a number of sequences, whose rows follow one another.
struct PassShape {
  std::int64_t batch = 0;
  std::int64_t length = 0;                  // tokens of each sequence, or the most that one has
  std::span<const std::int64_t> ends = {};  // (B) the row behind each sequence; empty: all have `length` tokens

  std::int64_t end(std::int64_t sequence) const {
    return ends.empty() ? (sequence + 1) * length : ends[static_cast<std::size_t>(sequence)];
  }
  std::int64_t begin(std::int64_t sequence) const { return sequence == 0 ? 0 : end(sequence - 1); }
  std::int64_t rows() const { return begin(batch); }
};

struct KvCache;
struct AdaptedRows;

/// The pass in hand.
struct Pass {
  PassShape shape;
  /// (M) row of each token in the table of positions, learned or of rotations; or empty: its position in the sequence,
  /// and no block asks.
  Indices positions;
  Indices document_starts;                    // (M) as in LeafInput, or empty
  const LeafKey* dropout = nullptr;           // null: nothing is dropped
  KvCache* kv_cache = nullptr;                // of the sequences whose new rows these are; null: whole sequences
  std::span<const AdaptedRows> adapted = {};  // rows with adapters of their own, over a model without one
  RouterTally* load = nullptr;                // tally of the routers' choices, in the first forward of a layer
  std::span<const float> dprobs = {};         // (E) for the backward of routers, from the auxiliary loss; or empty
  Indices lengths = {};                       // (B) as in LeafInput, or empty
  RowPart part = {};                          // of the rows that a Linear is called with

  std::int64_t rows() const { return shape.rows(); }
  /// Requires that dropout is not null.
  DropoutKey dropout_key(std::uint32_t site) const {
    return {dropout->seed, dropout->step, dropout->leaf, site, 0, part.first};
  }
};

/// Calls body(pass, rows_of) for parts of `most` rows of a pass that has `rows`; rows_of(matrix) are a part's rows.
template <class Body>
void for_row_parts(Pass pass, std::int64_t rows, std::int64_t most, const Body& body) {
  for (std::int64_t first = 0; first < rows; first += most) {
    const std::int64_t count = std::min(most, rows - first);
    pass.part = {first, first == 0, first + count == rows};
    body(pass, [&](const Matrix& matrix) { return matrix.row_slice(first, count); });
  }
}

/// Parameters: for each a pointer to elements of the compute dtype, or null and the quantized matrix.
struct ParamPointers {
  std::span<const std::byte* const> elements;
  std::span<const QuantizedMatrix* const> quantized = {};  // empty: no parameter is quantized

  const std::byte* operator[](std::size_t param) const { return elements[param]; }
};

/// Values for the gradient of a vector of parameters, made where they are not there.
inline std::span<float> values_for(const ModelContext& model, Values<float>& values, std::int64_t count) {
  if (values.num_bytes() == 0) values = Values<float>(model.ctx, count);
  return values.span();
}

inline std::size_t bytes_of(const std::vector<float>& values) { return values.size() * sizeof(float); }

/// Bytes of tensors, operands and other things that know theirs, together.
template <class... Parts>
std::size_t bytes_of(const Parts&... parts) {
  return (parts.num_bytes() + ...);
}

}  // namespace zerofleet
