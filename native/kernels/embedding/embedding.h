#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "kernels/common/indices.h"
#include "kernels/common/matrix.h"
#include "kernels/gemm/packed_matrix.h"

namespace zerofleet {

/// rows[m] = table[tokens[m]]. table: (V, D); tokens: (M) in [0, V); rows: (M, D) of the table's dtype.
void embedding(const Context& ctx, const ConstMatrix& table, const Indices& tokens, const Matrix& rows);

/// The same from a table that is packed as the right operand (D, V) of a product. CPUs only.
void packed_embedding(const Context& ctx, const PackedMatrix& table, const Indices& tokens, const Matrix& rows);

/// order: the positions 0, 1 … sorted by token, then by position. starts: the index in `order` at which each distinct
/// token begins, then the number of positions.
struct SortedPositions {
  explicit SortedPositions(std::span<const std::int32_t> tokens);
  std::vector<std::int32_t> order, starts;
};

/// The same in memory of a CUDA device.
struct PositionGroups {
  const std::int32_t* order = nullptr;   // (M)
  const std::int32_t* starts = nullptr;  // (count + 1)
  std::int64_t count = 0;                // of tokens that occur
};

/// dtable[t] = Σ of drows[m] over the m with tokens[m] = t, in rising m. `accumulate` adds it to the contents of
/// dtable. drows: (M, D). dtable: (V, D) fp32. groups: the tokens' groups, unused on a CPU.
void embedding_backward(const Context& ctx, const Indices& tokens, const PositionGroups& groups,
                        const ConstMatrix& drows, const Matrix& dtable, bool accumulate);

// embedding() and embedding_backward() throw Error{"token_out_of_vocab"}, and Error{"invalid_argument"} where shapes or
// types do not fit.

}  // namespace zerofleet
