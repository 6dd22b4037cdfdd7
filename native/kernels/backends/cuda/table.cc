// The operations of CUDA devices.
#include "kernels/backends/cuda/numerics.h"
#include "kernels/backends/tables.h"
#include "kernels/adapter/cuda/launch.h"
#include "kernels/attention/cuda/launch.h"
#include "kernels/elementwise/cuda/launch.h"
#include "kernels/embedding/cuda/launch.h"
#include "kernels/flat/cuda/launch.h"
#include "kernels/gemm/cuda/launch.h"
#include "kernels/loss/cuda/launch.h"
#include "kernels/moe/cuda/launch.h"
#include "kernels/norm/cuda/launch.h"
#include "kernels/optimizer/cuda/launch.h"
#include "kernels/quantize/cuda/launch.h"

namespace zerofleet::cuda {
namespace {

constexpr Backend make_table() {
  Backend table;
  table.numerics = numerics;

  table.pack = pack;
  table.gemm = gemm;
  table.gemm_with_epilogue = gemm_with_epilogue;
  table.products_round_gradients = true;

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
  // No cache holds the weight of a head, which each product reads, or its gradient, which each chunk of rows after the first
  // reads and writes: chunks are as long as memory allows, and have one product of each kind.
  table.max_logits_bytes = std::int64_t{1} << 30;

  table.route = route;
  table.route_backward = route_backward;
  table.add_router_load = add_router_load;
  table.load_balancing_gradient = load_balancing_gradient;
  table.group_by_expert = group_by_expert;
  table.add_token_rows = add_token_rows;
  table.gather_rows = gather_rows;
  table.sum_rows = sum_rows;
  table.combine_rows_backward = combine_rows_backward;
  table.count_rows = count_rows;
  table.order_rows = order_rows;
  table.pick_rows = pick_rows;

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
}  // namespace zerofleet::cuda

namespace zerofleet {

const Backend* cuda_backend() { return &cuda::kTable; }

}  // namespace zerofleet
