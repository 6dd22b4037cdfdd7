// The operations of the CPU. Where an instruction set counts, their launchers choose
// (kernels/common/cpu/isa_dispatch.h). It has no row for an epilogue, which comes after its product, and none for rows
// of experts that a device groups and orders: the host does that.
#include "kernels/backends/tables.h"

// The rows of the table. Each calls the launcher of its name in kernels/<family>/cpu/.
#define ZF_CPU_ROWS(ROW)       \
  ROW(pack)                    \
  ROW(gemm)                    \
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
  ROW(packed_embedding)        \
  ROW(embedding_backward)      \
  ROW(cross_entropy)           \
  ROW(route)                   \
  ROW(route_backward)          \
  ROW(add_router_load)         \
  ROW(load_balancing_gradient) \
  ROW(gather_rows)             \
  ROW(sum_rows)                \
  ROW(combine_rows_backward)   \
  ROW(optimizer_update)        \
  ROW(lamb_prepare)            \
  ROW(quantize)                \
  ROW(dequantize)              \
  ROW(cast_from_f32)           \
  ROW(cast_to_f32)             \
  ROW(fold_pieces)             \
  ROW(block_stats)             \
  ROW(hash_blocks)

namespace zerofleet::cpu {

ZF_CPU_ROWS(ZF_DECLARE_LAUNCHER)

namespace {

std::string numerics(const Device&, CpuIsa isa) { return numerics_fingerprint(isa); }

constexpr Backend make_table() {
  Backend table;
  table.numerics = numerics;
  ZF_CPU_ROWS(ZF_SET_ROW)
  table.gemm_reads_packed = true;
  table.max_logits_bytes = std::int64_t{16}
                           << 20;  // few, so that they stay in the caches from their product to their softmax
  table.max_logit_gradient_bytes = std::int64_t{64} << 20;
  table.max_rows_at_once = 2048;
  return table;
}

constexpr Backend kTable = make_table();

}  // namespace
}  // namespace zerofleet::cpu

namespace zerofleet {

const Backend& cpu_backend() { return cpu::kTable; }

}  // namespace zerofleet
