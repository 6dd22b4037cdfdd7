#pragma once

#include <cstdint>
#include <span>

#include "core/context.h"
#include "kernels/indices.h"
#include "kernels/matrix.h"

namespace zerofleet {

/// rows[m] = table[tokens[m]]. table: (V, D); tokens: (M) in [0, V); rows: (M, D) of the table's dtype.
void embedding(const Context& ctx, const ConstMatrix& table, const Indices& tokens, const Matrix& rows);

/// dtable[t] = Σ of drows[m] over the m with tokens[m] = t, in rising m; with `accumulate` on top of what dtable holds.
/// drows: (M, D); dtable: (V, D) fp32.
void embedding_backward(const Context& ctx, const Indices& tokens, const ConstMatrix& drows,
                        const Matrix& dtable, bool accumulate);

// Both throw Error{"token_out_of_vocab"}, and Error{"invalid_argument"} where shapes or types do not fit.

}  // namespace zerofleet
