// The operations of CUDA devices.
#include "kernels/backends/cuda/numerics.h"
#include "kernels/backends/tables.h"

// The rows of the table. Each calls the launcher of its name in kernels/<family>/cuda/.
#define ZF_CUDA_ROWS(ROW)      \
  ROW(pack)                    \
  ROW(gemm)                    \
  ROW(gemm_with_epilogue)      \
  ROW(attention)               \
  ROW(attention_backward)      \
  ROW(page_bytes)              \
  ROW(paged_attention)         \
  ROW(rope)                    \
  ROW(order_heads)             \
  ROW(rmsnorm)                 \
  ROW(rmsnorm_backward)        \
  ROW(layernorm)               \
  ROW(layernorm_backward)      \
  ROW(head_norm)               \
  ROW(head_norm_backward)      \
  ROW(gelu)                    \
  ROW(gelu_backward)           \
  ROW(glu)                     \
  ROW(glu_backward)            \
  ROW(soft_cap)                \
  ROW(add_gated)               \
  ROW(add_gated_backward)      \
  ROW(bias_gradient)           \
  ROW(dropout)                 \
  ROW(direction_norms)         \
  ROW(scale_columns)           \
  ROW(magnitude_gradient)      \
  ROW(embedding)               \
  ROW(embedding_backward)      \
  ROW(cross_entropy)           \
  ROW(route)                   \
  ROW(route_backward)          \
  ROW(add_router_load)         \
  ROW(load_balancing_gradient) \
  ROW(group_by_expert)         \
  ROW(add_token_rows)          \
  ROW(gather_rows)             \
  ROW(sum_rows)                \
  ROW(combine_rows_backward)   \
  ROW(count_rows)              \
  ROW(order_rows)              \
  ROW(pick_rows)               \
  ROW(optimizer_update)        \
  ROW(lamb_prepare)            \
  ROW(quantize)                \
  ROW(dequantize)              \
  ROW(cast_from_f32)           \
  ROW(cast_to_f32)             \
  ROW(fold_pieces)             \
  ROW(block_stats)             \
  ROW(hash_blocks)

namespace zerofleet::cuda {

ZF_CUDA_ROWS(ZF_DECLARE_LAUNCHER)

namespace {

constexpr Backend make_table() {
  Backend table;
  table.numerics = numerics;
  ZF_CUDA_ROWS(ZF_SET_ROW)
  table.products_round_gradients = true;
  table.row_unit = 64;
  table.sequences_keep_lengths = false;
  // No cache holds the weight of a head, which each product reads. No cache holds its gradient either, which each chunk
  // of rows after the first reads and writes. So chunks are as long as memory allows, and have one product of each
  // kind.
  table.max_logits_bytes = std::int64_t{1} << 30;
  table.max_rows_at_once = 16384;
  return table;
}

constexpr Backend kTable = make_table();

}  // namespace
}  // namespace zerofleet::cuda

namespace zerofleet {

const Backend* cuda_backend() { return &cuda::kTable; }

}  // namespace zerofleet
