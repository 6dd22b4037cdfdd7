#include <span>
#include <string>

#include "core/error.h"
#include "kernels/moe/moe.h"
#include "model/mlp/held_experts.h"
#include "model/mlp/mlp.h"
#include "model/mlp/router_tally.h"
#include "model/mlp/row_exchange.h"
#include "model/mlp/shared_expert.h"

// Each token has k rows, one per expert that its router chose, sorted by expert (see ExpertGroups): an expert is a
// SwiGLU MLP over its rows. The token's output is the weighted sum of its rows' outputs. Router and sums are the
// business of the rank that computes the leaf. Its rows go through the experts here, or with RowExchange to the ranks
// that hold them, who put the rows of several leaves together, and back. An expert of all tokens is computed with the
// leaf.
namespace zerofleet {
namespace {

struct MoeKept final : Mlp::Kept {
  MoeKept(const ModelContext& model, const PassShape& shape, const Linear& router, const HeldExperts& experts,
          const SharedExpert* for_all);
  std::size_t num_bytes() const override;

  Tensor logits;                 // (M, E)
  Tensor router_low;             // (M, low_size()) of the router's adapter, or empty
  Values<float> probs, weights;  // (M, E), (M, k)
  Values<std::int32_t> experts;  // (M, k)
  ExpertGroups groups;
  Values<std::int32_t> of_groups;  // their memory on a CUDA device
  RowPlan plan;                    // with RowExchange
  HeldExperts::Kept held;          // for R = M·k rows, with RowExchange as many as come
  Tensor out;                      // (M·k, D)
  std::unique_ptr<SharedExpert::Kept> shared;
};

MoeKept::MoeKept(const ModelContext& model, const PassShape& shape, const Linear& router,
                 const HeldExperts& experts_here, const SharedExpert* for_all)
    : router_low(router.adapter().make_low(model, shape.rows())),
      held(model, shape.rows() * model.config.experts_per_token, experts_here) {
  const ModelConfig& c = model.config;
  if (for_all != nullptr) shared = std::make_unique<SharedExpert::Kept>(model, shape, *for_all);
  const std::int64_t tokens = shape.rows(), rows = tokens * c.experts_per_token;
  logits = model.tensor(tokens, c.num_experts);
  probs = Values<float>(model.ctx, tokens * c.num_experts);
  weights = Values<float>(model.ctx, rows);
  experts = Values<std::int32_t>(model.ctx, rows);
  of_groups = Values<std::int32_t>(model.ctx, num_group_numbers(model.ctx, rows, c.num_experts));
  out = model.tensor(rows, c.hidden_size);
}

// M·k·row(D) + M·row(E) + 4·M·(E + 2·k), with an adapter M·row(low_size()), and what the experts keep. From the first
// forward on also 8·(2·M·k + E + 1) and the row plan. And what an expert of all tokens keeps. On a CUDA device 4·(2·M·k
// + E + 1) from the beginning, instead of 8·(2·M·k + E + 1).
std::size_t MoeKept::num_bytes() const {
  return bytes_of(logits, router_low, held, out, plan, probs, weights, experts, of_groups) +
         (shared ? shared->num_bytes() : 0) +
         (groups.first.size() + groups.tokens.size() + groups.rows.size()) * sizeof(std::int64_t);
}

struct MoeWork final : Mlp::Work {
  MoeWork(const ModelContext& model, const PassShape& shape, const Linear& to_experts, const HeldExperts& experts,
          const SharedExpert* for_all, const std::shared_ptr<PackedMatrix>& spare);
  std::size_t num_bytes() const override {
    return bytes_of(drows, dlogits, router, held, dweights, of_groups) + (shared ? shared->num_bytes() : 0);
  }

  Tensor drows;                    // (M·(k + 1), D) gradients of rows; behind them those that come through the router
  Tensor dlogits;                  // (M, E)
  Values<float> dweights;          // (M, k)
  Values<std::int32_t> of_groups;  // (M·(k + 1)), with a row for the router, on a CUDA device
  LinearGradients router;
  HeldExperts::Work held;
  std::unique_ptr<SharedExpert::Work> shared;
};

// M·(k + 1)·row(D) + M·row(E) + 4·M·k, the gradients of the router, and what the experts work in, that of all tokens
// too; on a CUDA device 4·M·(k + 1) more
MoeWork::MoeWork(const ModelContext& model, const PassShape& shape, const Linear& to_experts,
                 const HeldExperts& experts, const SharedExpert* for_all, const std::shared_ptr<PackedMatrix>& spare)
    : router(model, to_experts, shape.rows(), spare),
      held(model, shape.rows() * model.config.experts_per_token, experts) {
  const ModelConfig& c = model.config;
  if (for_all != nullptr) shared = std::make_unique<SharedExpert::Work>(model, shape, *for_all, spare);
  const std::int64_t tokens = shape.rows(), rows = tokens * c.experts_per_token;
  drows = model.tensor(rows + tokens, c.hidden_size);
  dlogits = model.tensor(tokens, c.num_experts);
  dweights = Values<float>(model.ctx, rows);
  of_groups = Values<std::int32_t>(model.ctx, model.ctx.device.kind == DeviceKind::kCpu ? 0 : rows + tokens);
}

ExpertRows rows_of(const ExpertGroups& groups) { return {groups.num_rows(), groups.first, groups.device_first}; }

ExpertRows rows_of(const RowPlan& plan) {
  const std::span<const std::int32_t> on_device = plan.device_first.span();
  return {plan.num_rows(), plan.first, on_device.empty() ? nullptr : on_device.data()};
}

/// Runs `body`, which takes memory for the rows that came to this rank's experts.
template <class Body>
void with_room_for(const RowPlan& plan, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    if (error.code() != "out_of_memory") throw;
    throw Error("out_of_memory", "routers sent " + std::to_string(plan.num_rows()) +
                                     " rows to the experts of this rank, where " +
                                     std::to_string(plan.sent.back().end) + " are an even share: " + error.what());
  }
}

/// Returns the experts that this rank holds.
std::span<const DenseSpec> held_here(const ModelContext& model, std::span<const DenseSpec> experts) {
  if (model.row_exchange == nullptr) return experts;
  const Range& held = model.row_exchange->experts();
  return experts.subspan(static_cast<std::size_t>(held.begin), static_cast<std::size_t>(held.size()));
}

class MoeMlp final : public Mlp {
 public:
  MoeMlp(const ModelContext& model, const MlpSpec& spec)
      : router_(model, spec.router, model.config.hidden_size), experts_(model, held_here(model, spec.experts)) {
    if (model.config.shared_expert_size > 0) shared_.emplace(model, spec);
  }

  std::unique_ptr<Kept> make_kept(const ModelContext& model, const PassShape& shape) const override {
    return std::make_unique<MoeKept>(model, shape, router_, experts_, for_all());
  }
  std::unique_ptr<Work> make_work(const ModelContext& model, const PassShape& shape,
                                  const std::shared_ptr<PackedMatrix>& spare) const override {
    return std::make_unique<MoeWork>(model, shape, router_, experts_, for_all(), spare);
  }

  void request_forward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) override {
    if (shared_) shared_->request_forward(model, params, requests);
    router_.request_forward(model, params, requests);
    experts_.request_forward(model, params, requests);
  }
  void request_backward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) override {
    if (shared_) shared_->request_backward(model, params, requests);
    router_.request_backward(model, params, requests);
    experts_.request_backward(model, params, requests);
  }
  std::size_t packed_bytes() const override {
    return router_.packed_bytes() + experts_.packed_bytes() + (shared_ ? shared_->packed_bytes() : 0);
  }

  void activate(const ModelContext& model, const Pass& pass, const Matrix& x, Kept& kept) const override;
  void project(const ModelContext& model, const Pass& pass, const Matrix& x, Kept& kept,
               const Matrix& y) const override;
  void backward(const ModelContext& model, const Pass& pass, const Backward& args, Kept& kept, Work& work,
                GradSink& sink) const override;

 private:
  /// The expert of all tokens, or null.
  const SharedExpert* for_all() const { return shared_ ? &*shared_ : nullptr; }
  void choose(const ModelContext& model, const Pass& pass, const Matrix& x, MoeKept& kept) const;
  void forward_elsewhere(const ModelContext& model, const Matrix& x, const Matrix& out, MoeKept& kept) const;
  void experts_backward(const ModelContext& model, const MoeKept& kept, const Matrix& drows, MoeWork& work,
                        GradSink& sink) const;
  void router_backward(const ModelContext& model, const Pass& pass, const Backward& args, const MoeKept& kept,
                       MoeWork& work, GradSink& sink) const;

  Linear router_;
  HeldExperts experts_;
  std::optional<SharedExpert> shared_;
};

void MoeMlp::choose(const ModelContext& model, const Pass& pass, const Matrix& x, MoeKept& kept) const {
  const std::int64_t chosen = model.config.experts_per_token, num_experts = model.config.num_experts;
  const Matrix logits = kept.logits.first_rows(x.rows);
  router_.forward(model, pass, x, logits, kept.router_low);
  const std::span<float> probs = kept.probs.first(x.rows * num_experts);
  const std::span<std::int32_t> experts = kept.experts.first(x.rows * chosen);
  route(model.ctx, {logits, chosen, probs, experts, kept.weights.first(x.rows * chosen), model.config.norm_topk_prob});
  const std::int64_t numbers = num_group_numbers(model.ctx, x.rows * chosen, num_experts);
  kept.groups = group_by_expert(model.ctx, experts, chosen, num_experts, kept.of_groups.first(numbers));
  if (pass.load != nullptr) pass.load->add(model.ctx, {probs, experts, pass.lengths});
}

void MoeMlp::activate(const ModelContext& model, const Pass& pass, const Matrix& x, Kept& kept) const {
  MoeKept& mine = static_cast<MoeKept&>(kept);
  choose(model, pass, x, mine);
  if (shared_) shared_->forward(model, pass, x, *mine.shared);
  const std::int64_t rows = mine.groups.num_rows();
  const Matrix out = mine.out.first_rows(rows);
  if (model.row_exchange != nullptr) return forward_elsewhere(model, x, out, mine);
  gather_rows(model.ctx, mine.groups, x, mine.held.gathered.first_rows(rows));
  experts_.forward(model, rows_of(mine.groups), mine.held, out);
}

// The leaf's rows wait for their way out where their outputs will arrive.
void MoeMlp::forward_elsewhere(const ModelContext& model, const Matrix& x, const Matrix& out, MoeKept& kept) const {
  RowExchange& exchange = *model.row_exchange;
  exchange.plan(kept.groups, kept.plan);
  gather_rows(model.ctx, kept.groups, x, out);
  with_room_for(kept.plan, [&] {
    const std::int64_t rows = kept.plan.num_rows();
    kept.held.resize(model, rows);
    exchange.to_experts(kept.plan, out, kept.held.gathered.first_rows(rows));
    const Matrix outputs = exchange.room(model.dtype, rows, model.config.hidden_size);
    experts_.forward(model, rows_of(kept.plan), kept.held, outputs);
    exchange.to_leaves(kept.plan, outputs, out);
  });
}

void MoeMlp::project(const ModelContext& model, const Pass&, const Matrix&, Kept& kept, const Matrix& y) const {
  const MoeKept& mine = static_cast<const MoeKept&>(kept);
  const auto rows = static_cast<std::size_t>(y.rows * mine.groups.experts_per_token);
  combine_rows(model.ctx, mine.groups, mine.weights.first(static_cast<std::int64_t>(rows)),
               mine.out.first_rows(static_cast<std::int64_t>(rows)), y);
  if (shared_) shared_->add_to(model, *mine.shared, y);
}

/// drows (M·k, D): gradients of the rows' outputs on entry, of the rows on return.
void MoeMlp::experts_backward(const ModelContext& model, const MoeKept& kept, const Matrix& drows, MoeWork& work,
                              GradSink& sink) const {
  if (model.row_exchange == nullptr) {
    experts_.backward(model, rows_of(kept.groups), kept.held, drows, work.held, sink);
    return;
  }
  const std::int64_t rows = kept.plan.num_rows();
  Matrix gradients;
  with_room_for(kept.plan, [&] {
    gradients = model.row_exchange->room(model.dtype, rows, model.config.hidden_size);
    work.held.resize(model, rows);
  });
  model.row_exchange->to_experts(kept.plan, drows, gradients);
  experts_.backward(model, rows_of(kept.plan), kept.held, gradients, work.held, sink);
  model.row_exchange->to_leaves(kept.plan, gradients, drows);
}

void MoeMlp::router_backward(const ModelContext& model, const Pass& pass, const Backward& args, const MoeKept& kept,
                             MoeWork& work, GradSink& sink) const {
  const std::int64_t tokens = args.x.rows, rows = tokens * kept.groups.experts_per_token;
  const Matrix dlogits = work.dlogits.first_rows(tokens);
  route_backward(model.ctx,
                 {kept.groups.experts_per_token, kept.probs.first(tokens * dlogits.cols), kept.experts.first(rows),
                  work.dweights.first(rows), pass.dprobs, dlogits, pass.lengths, model.config.norm_topk_prob});
  const Matrix& drows = work.drows.view();
  const Matrix behind{drows.at(rows, 0), drows.dtype, args.x.rows, drows.cols, drows.stride};
  router_.backward(model, pass, {args.x, dlogits, behind}, kept.router_low, work.router, sink);
}

void MoeMlp::backward(const ModelContext& model, const Pass& pass, const Backward& args, Kept& kept, Work& work,
                      GradSink& sink) const {
  const MoeKept& mine = static_cast<const MoeKept&>(kept);
  MoeWork& to = static_cast<MoeWork&>(work);
  const std::int64_t tokens = args.x.rows, rows = tokens * mine.groups.experts_per_token;
  const Matrix drows = to.drows.first_rows(rows);
  combine_rows_backward(model.ctx, {&mine.groups, mine.weights.first(rows), mine.out.first_rows(rows), args.dy, drows,
                                    to.dweights.first(rows)});
  experts_backward(model, mine, drows, to, sink);
  router_backward(model, pass, args, mine, to, sink);
  const std::int64_t on_device = model.ctx.device.kind == DeviceKind::kCpu ? 0 : rows + tokens;
  const ExpertGroups all = with_token_rows(model.ctx, mine.groups, to.of_groups.first(on_device));
  const Matrix all_drows = to.drows.first_rows(rows + tokens);
  gather_rows_backward(model.ctx, all, all_drows, args.dx);
  // The gradients of rows are added up, so their memory is free.
  if (shared_) shared_->backward(model, pass, args, *mine.shared, *to.shared, all_drows, sink);
}

}  // namespace

std::unique_ptr<Mlp> make_moe_mlp(const ModelContext& model, const MlpSpec& spec) {
  return std::make_unique<MoeMlp>(model, spec);
}

}  // namespace zerofleet
