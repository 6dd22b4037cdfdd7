#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/attention/cuda/cudnn_attention_graph.h"

namespace zerofleet::cudnn {

/// A forward or backward as cuDNN gets it. Of a forward, `dout` and `dqkv` are empty.
struct Call {
  GraphShape shape;
  AttentionOptions options;
  ConstMatrix qkv;
  void* out;   // of a backward only read
  float* lse;  // likewise
  ConstMatrix dout;
  Matrix dqkv;
};

Call call_of(const AttentionForward& args);
Call call_of(const AttentionBackward& args);

/// Properties of the library and the device that decide about a call.
struct Facts {
  std::size_t version;  // 92400 for 9.24.0
  int compute_major;    // of the device
};

/// Returns the reason for which cuDNN is not asked about a call; empty where it is.
std::string reason_against(const Call& call, const Facts& facts);

/// The largest workspace that a plan may want: scores, gradients of keys and values of each query head, and a rest.
std::size_t max_workspace_bytes(const GraphShape& part);

/// The shape of the parts in which a call is computed. A backward whose scores are larger than `max_score_bytes` goes
/// through some sequences at a time, or some heads of one. Throws Refusal where the scores of one key head are larger.
GraphShape part_of(const GraphShape& whole, std::int64_t max_score_bytes);

using Operands = std::vector<std::pair<Operand, void*>>;

/// The operands in memory of each part, without kRowDots.
std::vector<Operands> parts_of(const Call& call, const GraphShape& part);

}  // namespace zerofleet::cudnn
