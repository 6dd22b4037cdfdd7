#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"
#include "kernels/common/simd/rows.h"

namespace zerofleet::cpu {

/// Rows of a router (kernels/moe/moe_router.h), forward or backward.
struct RouterArgs {
  ConstRows logits;                  // (rows, num_experts) forward
  float* probs = nullptr;            // (rows, num_experts) written by the forward, read by the backward
  int32_t* experts = nullptr;        // (rows, chosen) likewise
  float* weights = nullptr;          // (rows, chosen) forward
  const float* dweights = nullptr;   // (rows, chosen) backward
  const float* dprobs = nullptr;     // (num_experts) backward, of tokens that count, or null
  const int32_t* lengths = nullptr;  // (sequences) how many of each one's `length` tokens count, or null: all
  int64_t length = 0;
  int64_t first_token = 0;  // of the rows
  Rows dlogits;             // (rows, num_experts) backward
  float* row = nullptr;     // (num_experts) temporary, backward
  int64_t rows = 0;
  int64_t num_experts = 0;
  int64_t chosen = 0;
  bool shares = true;  // weights are shares of their sum
  DType dtype = DType::kF32;
};

/// Rows of tokens and of experts (kernels/moe/moe.h).
struct ExpertRowsArgs {
  const int64_t* pair_rows = nullptr;  // (tokens, chosen) row of the experts' matrices
  const float* weights = nullptr;      // (tokens, chosen), or null: 1
  ConstRows rows;                      // (…, cols) experts' rows
  Rows sums;                           // (tokens, cols) forward: Σ weight · row
  ConstRows dsums;                     // (tokens, cols) backward
  Rows drows;                          // (…, cols) backward: weight · dsums; may be rows
  float* dweights = nullptr;           // (tokens, chosen) backward: Σ dsums · row
  int64_t tokens = 0;
  int64_t chosen = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void router_rows(const RouterArgs& args))
ZF_DECLARE_KERNEL(void router_backward_rows(const RouterArgs& args))
ZF_DECLARE_KERNEL(void sum_expert_rows(const ExpertRowsArgs& args))
ZF_DECLARE_KERNEL(void sum_expert_rows_backward(const ExpertRowsArgs& args))

}  // namespace zerofleet::cpu
