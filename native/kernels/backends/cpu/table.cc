// The operations of the CPU. Where an instruction set counts, their launchers choose (kernels/common/cpu/isa_dispatch.h). It has no row
// for an epilogue, which comes after its product, and none for rows of experts that a device groups and orders: the host does that.
#include "kernels/backends/tables.h"
#include "kernels/adapter/cpu/launch.h"
#include "kernels/attention/cpu/launch.h"
#include "kernels/elementwise/cpu/launch.h"
#include "kernels/embedding/cpu/launch.h"
#include "kernels/flat/cpu/launch.h"
#include "kernels/gemm/cpu/launch.h"
#include "kernels/loss/cpu/launch.h"
#include "kernels/moe/cpu/launch.h"
#include "kernels/norm/cpu/launch.h"
#include "kernels/optimizer/cpu/launch.h"
#include "kernels/quantize/cpu/launch.h"

namespace zerofleet::cpu {
namespace {

std::string numerics(const Device&, CpuIsa isa) { return numerics_fingerprint(isa); }

constexpr Backend make_table() {
  Backend table;
  table.numerics = numerics;
  table.gemm_reads_packed = true;

  table.pack = pack;
  table.gemm = gemm;

  table.attention = attention;
  table.attention_backward = attention_backward;
  table.page_bytes = page_bytes;
  table.paged_attention = paged_attention;
  table.rope = rope;

  table.rmsnorm = rmsnorm;
  table.rmsnorm_backward = rmsnorm_backward;
  table.layernorm = layernorm;
  table.layernorm_backward = layernorm_backward;
  table.head_norm = head_norm;
  table.head_norm_backward = head_norm_backward;

  table.gelu = gelu;
  table.gelu_backward = gelu_backward;
  table.swiglu = swiglu;
  table.swiglu_backward = swiglu_backward;
  table.bias_gradient = bias_gradient;
  table.dropout = dropout;

  table.direction_norms = direction_norms;
  table.scale_columns = scale_columns;
  table.magnitude_gradient = magnitude_gradient;

  table.embedding = embedding;
  table.embedding_backward = embedding_backward;
  table.cross_entropy = cross_entropy;
  table.max_logits_bytes = std::int64_t{16} << 20;  // few, so that they stay in the caches from their product to their softmax
  table.max_logit_gradient_bytes = std::int64_t{64} << 20;

  table.route = route;
  table.route_backward = route_backward;
  table.add_router_load = add_router_load;
  table.load_balancing_gradient = load_balancing_gradient;
  table.gather_rows = gather_rows;
  table.sum_rows = sum_rows;
  table.combine_rows_backward = combine_rows_backward;

  table.optimizer_update = optimizer_update;
  table.lamb_prepare = lamb_prepare;

  table.quantize = quantize;
  table.dequantize = dequantize;

  table.cast_from_f32 = cast_from_f32;
  table.cast_to_f32 = cast_to_f32;
  table.fold_pieces = fold_pieces;
  table.block_stats = block_stats;
  table.hash_blocks = hash_blocks;
  return table;
}

constexpr Backend kTable = make_table();

}  // namespace
}  // namespace zerofleet::cpu

namespace zerofleet {

const Backend& cpu_backend() { return cpu::kTable; }

}  // namespace zerofleet
