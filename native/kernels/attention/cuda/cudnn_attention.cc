#include "kernels/attention/cuda/cudnn_attention.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/cuda/cuda_runtime.h"
#include "core/cuda/traits.h"
#include "core/error.h"
#include "kernels/attention/cuda/attention_trial.h"
#include "kernels/common/cuda/temporary.h"

namespace zerofleet::cudnn {
namespace {

std::string text_of(const GraphShape& s) {
  std::string text = std::string("attention of ") + std::to_string(s.batch) + " × " + std::to_string(s.length) +
                     " tokens, " + std::to_string(s.heads) + " heads";
  if (s.kv_heads != s.heads) text += " (" + std::to_string(s.kv_heads) + " of keys)";
  text += " of " + std::to_string(s.head_dim) + ", " + name_of(s.dtype);
  if (s.window > 0) text += ", window " + std::to_string(s.window);
  return text + (s.is_backward ? ", backward" : ", forward");
}

}  // namespace

Attention::Attention(const Context& ctx, std::shared_ptr<const Library> library, std::int64_t max_score_bytes)
    : ctx_(ctx), library_(std::move(library)), max_score_bytes_(max_score_bytes) {
  if (library_ == nullptr) return;
  Stream& stream = stream_of(ctx);
  facts_ = {library_->get_version(), cuda::traits(ctx.device).compute_major};
  try {
    check(*library_, library_->create(&handle_), "cudnnCreate");
    check(*library_, library_->set_stream(handle_, stream.handle()), "cudnnSetStream");
  } catch (const Refusal& refusal) {
    throw Error("device_failed", library_->name() + ": " + refusal.what() + "; ZF_CUDNN=off does without it");
  }
}

Attention::~Attention() {
  choices_.clear();
  if (handle_ != nullptr) library_->destroy(handle_);
}

void Attention::report(const Call& call, const std::string& reason) const {
  const std::string who =
      reason.empty() ? library_->name() : "a kernel of zerofleet, not by " + library_->name() + ": " + reason;
  std::fprintf(stderr, "zerofleet: %s is computed by %s\n", text_of(call.shape).c_str(), who.c_str());
}

bool Attention::passes_trial(const Plan& plan, const GraphShape& part, const Call& call) {
  AttentionTrial trial(ctx_, call);
  trial.prepare();
  run_parts(plan, part, trial.call());
  return trial.is_right();
}

Attention::Choice Attention::choose(const Call& call) {
  Choice choice{call.shape, nullptr, ""};
  std::string last_reason;
  try {
    choice.part = part_of(call.shape, max_score_bytes_);
    const auto graph = std::make_shared<const Graph>(attention_graph(library_, choice.part, handle_));
    for (Descriptor& config : deterministic_configs(library_, *graph)) {
      try {
        auto plan = std::make_unique<Plan>(library_, handle_, graph, std::move(config));
        if (plan->workspace_bytes() > max_workspace_bytes(choice.part)) {
          last_reason = "it needs " + std::to_string(plan->workspace_bytes()) + " bytes of workspace";
        } else if (!passes_trial(*plan, choice.part, call)) {
          last_reason = "it computes a call wrongly whose results are known";
        } else {
          choice.plan = std::move(plan);
          return choice;
        }
      } catch (const Refusal& refusal) {
        last_reason = refusal.what();
      }
    }
    throw Refusal(last_reason);
  } catch (const Refusal& refusal) {
    choice.reason = refusal.what();
  }
  return choice;
}

const Attention::Choice& Attention::choice_of(const Call& call) {
  const auto found = choices_.find(call.shape);
  if (found != choices_.end()) return found->second;
  const Choice& choice = choices_.emplace(call.shape, choose(call)).first->second;
  report(call, choice.reason);
  return choice;
}

void Attention::run_parts(const Plan& plan, const GraphShape& part, const Call& call) {
  cuda::Temporary<std::byte> workspace(ctx_, std::max<std::size_t>(plan.workspace_bytes(), 1));
  const std::int64_t num_dots = part.is_backward ? part.batch * part.heads * part.length : 1;
  cuda::Temporary<float> row_dots(ctx_, static_cast<std::size_t>(num_dots));
  for (Operands& operands : parts_of(call, part)) {
    if (part.is_backward) operands.emplace_back(kRowDots, row_dots.data());
    plan.run(handle_, operands, workspace.data());
  }
}

std::string Attention::reason_against(const Call& call) {
  if (library_ == nullptr) return "it is not there";
  const std::string reason = cudnn::reason_against(call, facts_);
  if (reason.empty()) return choice_of(call).reason;
  if (reported_.insert(reason).second) report(call, reason);
  return reason;
}

bool Attention::run(const Call& call) {
  if (library_ == nullptr || !reason_against(call).empty()) return false;
  const Choice& choice = choice_of(call);
  try {
    run_parts(*choice.plan, choice.part, call);
  } catch (const Refusal& refusal) {  // of a call that its trial has passed
    throw Error("device_failed", library_->name() + ": " + refusal.what());
  }
  return true;
}

std::string attention_library() {
  const auto library = open_default_library();
  if (library == nullptr) return "";
  std::string name = library->name();  // "cuDNN 9.24.0"
  return "-cudnn" + name.substr(name.find(' ') + 1);
}

}  // namespace zerofleet::cudnn
