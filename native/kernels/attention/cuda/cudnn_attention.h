#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/device/context.h"
#include "kernels/attention/cuda/cudnn_call.h"
#include "kernels/attention/cuda/cudnn_plan.h"

namespace zerofleet::cudnn {

/// Attention by cuDNN. The engine for a shape is chosen once. It is the heuristic's first engine that is deterministic,
/// fits into max_workspace_bytes(), and passes a trial with known results (AttentionTrial). It depends on shapes,
/// library and kind of device alone, so equal ranks choose alike. For one context's stream; not thread-safe.
class Attention {
 public:
  /// Scores of a backward that are in memory at once. kernelMemory() of job-document/estimate has the same.
  static constexpr std::int64_t kMaxScoreBytes = std::int64_t{1} << 30;

  /// library: null where there is none. Throws Error{"device_failed"} where it does not work with the device.
  Attention(const Context& ctx, std::shared_ptr<const Library> library, std::int64_t max_score_bytes = kMaxScoreBytes);
  ~Attention();
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  /// Queues a call; does nothing and returns false where the library does not compute it. The first call for a shape
  /// waits for the device, and allocates the operands of a trial for a while. The rank's log has a line for each shape
  /// about which the library was asked, and for each reason not to ask it.
  bool run(const Call& call);
  /// Returns the reason for which the library does not compute a call; empty where it does. Like the first run(), it
  /// overwrites the call's results.
  std::string reason_against(const Call& call);

  std::size_t num_plans() const { return choices_.size(); }

 private:
  struct Choice {
    GraphShape part;
    std::unique_ptr<Plan> plan;  // null: for this reason
    std::string reason;
  };

  const Choice& choice_of(const Call& call);
  Choice choose(const Call& call);
  bool passes_trial(const Plan& plan, const GraphShape& part, const Call& call);
  void run_parts(const Plan& plan, const GraphShape& part, const Call& call);
  void report(const Call& call, const std::string& reason) const;

  Context ctx_;
  std::shared_ptr<const Library> library_;  // null: none
  std::int64_t max_score_bytes_;
  Facts facts_{};
  Handle* handle_ = nullptr;
  std::map<GraphShape, Choice> choices_;
  std::set<std::string> reported_;  // reasons not to ask the library
};

/// "-cudnn9.24.0" where cuDNN computes attention in this process, or nothing. Throws Error{"device_unavailable"} where
/// the environment variable ZF_CUDNN names a file that can't be opened.
std::string attention_library();

}  // namespace zerofleet::cudnn
