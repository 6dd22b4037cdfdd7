#include "kernels/moe.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/swiglu.h"
#include "model/mlp.h"

// Each token has k rows, one per expert that its router chose, sorted by expert (see ExpertGroups): an expert is a SwiGLU
// MLP over its rows. The token's output is the weighted sum of its rows' outputs.
namespace zerofleet {
namespace {

Matrix rows_of(const Matrix& matrix, std::int64_t begin, std::int64_t count) {
  return {matrix.at(begin, 0), matrix.dtype, count, matrix.cols, matrix.stride};
}

template <class T>
std::span<T> first_of(std::vector<T>& values, std::int64_t count) {
  return std::span(values).first(static_cast<std::size_t>(count));
}

struct MoeKept final : Mlp::Kept {
  MoeKept(const ModelContext& model, std::int64_t tokens);
  std::size_t num_bytes() const override;

  Tensor logits;                      // (M, E)
  std::vector<float> probs, weights;  // (M, E), (M, k)
  std::vector<std::int32_t> experts;  // (M, k)
  ExpertGroups groups;
  Tensor gathered;  // (M·k, D)
  Tensor inner;     // (M·k, 2·I)
  Tensor act;       // (M·k, I)
  Tensor out;       // (M·k, D)
};

MoeKept::MoeKept(const ModelContext& model, std::int64_t tokens) {
  const ModelConfig& c = model.config;
  const std::int64_t rows = tokens * c.experts_per_token;
  logits = model.tensor(tokens, c.num_experts);
  probs.resize(static_cast<std::size_t>(tokens * c.num_experts));
  weights.resize(static_cast<std::size_t>(rows));
  experts.resize(static_cast<std::size_t>(rows));
  gathered = model.tensor(rows, c.hidden_size);
  inner = model.tensor(rows, 2 * c.intermediate_size);
  act = model.tensor(rows, c.intermediate_size);
  out = model.tensor(rows, c.hidden_size);
}

// M·k · (2·row(D) + row(2·I) + row(I)) + M·row(E) + 4·M·(E + 2·k), and from the first forward on 8·(2·M·k + E + 1)
std::size_t MoeKept::num_bytes() const {
  return bytes_of(logits, gathered, inner, act, out) + bytes_of(probs) + bytes_of(weights) +
         experts.size() * sizeof(std::int32_t) +
         (groups.first.size() + groups.tokens.size() + groups.rows.size()) * sizeof(std::int64_t);
}

struct Expert {
  Expert(const ModelContext& model, const DensePlace& place)
      : inner(model, place.inner, model.config.hidden_size), outer(model, place.outer, model.config.intermediate_size) {}

  Linear inner, outer;
};

struct MoeWork final : Mlp::Work {
  MoeWork(const ModelContext& model, std::int64_t tokens, const Linear& to_experts, const Expert& expert,
          const std::shared_ptr<PackedMatrix>& spare);
  std::size_t num_bytes() const override {
    return bytes_of(drows, dinner, dact, dlogits, router, inner, outer) + bytes_of(dweights);
  }

  Tensor drows;                    // (M·(k + 1), D) gradients of rows; behind them those that come through the router
  Tensor dinner;                   // (M·k, 2·I)
  Tensor dact;                     // (M·k, I)
  Tensor dlogits;                  // (M, E)
  std::vector<float> dweights;     // (M, k)
  LinearGradients router;
  LinearGradients inner, outer;  // of one expert at a time
};

// M·(k + 1)·row(D) + M·k·(row(2·I) + row(I)) + M·row(E) + 4·M·k, the gradients of the router and of one expert, whose
// operands have as many rows as the expert that was last computed: M at most.
MoeWork::MoeWork(const ModelContext& model, std::int64_t tokens, const Linear& to_experts, const Expert& expert,
                 const std::shared_ptr<PackedMatrix>& spare)
    : router(model, to_experts, tokens, spare), inner(model, expert.inner, 1), outer(model, expert.outer, 1) {
  const ModelConfig& c = model.config;
  const std::int64_t rows = tokens * c.experts_per_token;
  drows = model.tensor(rows + tokens, c.hidden_size);
  dinner = model.tensor(rows, 2 * c.intermediate_size);
  dact = model.tensor(rows, c.intermediate_size);
  dlogits = model.tensor(tokens, c.num_experts);
  dweights.resize(static_cast<std::size_t>(rows));
}

/// Gradients that wait until all of an expert's are there.
using Held = std::vector<std::pair<std::size_t, std::span<const float>>>;

class MoeMlp final : public Mlp {
 public:
  MoeMlp(const ModelContext& model, const MlpPlace& place) : router_(model, place.router, model.config.hidden_size) {
    for (const DensePlace& expert : place.experts) experts_.emplace_back(model, expert);
  }

  std::unique_ptr<Kept> make_kept(const ModelContext& model, const PassShape& shape) const override {
    return std::make_unique<MoeKept>(model, shape.rows());
  }
  std::unique_ptr<Work> make_work(const ModelContext& model, const PassShape& shape,
                                  const std::shared_ptr<PackedMatrix>& spare) const override {
    return std::make_unique<MoeWork>(model, shape.rows(), router_, experts_.front(), spare);
  }

  void request_forward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) override {
    router_.request_forward(model, params, requests);
    for (Expert& expert : experts_) {
      expert.inner.request_forward(model, params, requests);
      expert.outer.request_forward(model, params, requests);
    }
  }
  void request_backward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) override {
    router_.request_backward(model, params, requests);
    for (Expert& expert : experts_) {
      expert.inner.request_backward(model, params, requests);
      expert.outer.request_backward(model, params, requests);
    }
  }
  std::size_t packed_bytes() const override {
    std::size_t num_bytes = router_.packed_bytes();
    for (const Expert& expert : experts_) num_bytes += expert.inner.packed_bytes() + expert.outer.packed_bytes();
    return num_bytes;
  }

  void activate(const ModelContext& model, const Pass& pass, const Matrix& x, Kept& kept) const override;
  void project(const ModelContext& model, const Kept& kept, const Matrix& y) const override;
  void backward(const ModelContext& model, const Pass& pass, const Backward& args, const Kept& kept, Work& work,
                const EmitGrad& emit) const override;

 private:
  void choose(const ModelContext& model, const Pass& pass, const Matrix& x, MoeKept& kept) const;
  void expert_backward(const ModelContext& model, std::size_t expert, const MoeKept& kept, MoeWork& work,
                       const EmitGrad& emit) const;
  void router_backward(const ModelContext& model, const Pass& pass, const Backward& args, const MoeKept& kept,
                       MoeWork& work, const EmitGrad& emit) const;

  Linear router_;
  std::vector<Expert> experts_;
};

void MoeMlp::choose(const ModelContext& model, const Pass& pass, const Matrix& x, MoeKept& kept) const {
  const std::int64_t chosen = model.config.experts_per_token, num_experts = model.config.num_experts;
  const Matrix logits = kept.logits.first_rows(x.rows);
  router_.forward(model, x, logits);
  const std::span<float> probs = first_of(kept.probs, x.rows * num_experts);
  const std::span<std::int32_t> experts = first_of(kept.experts, x.rows * chosen);
  route(model.ctx, {logits, chosen, probs, experts, first_of(kept.weights, x.rows * chosen)});
  if (pass.load != nullptr) pass.load->add(probs, experts);
  kept.groups = group_by_expert(experts, chosen, num_experts);
}

void MoeMlp::activate(const ModelContext& model, const Pass& pass, const Matrix& x, Kept& kept) const {
  MoeKept& mine = static_cast<MoeKept&>(kept);
  choose(model, pass, x, mine);
  const ExpertGroups& groups = mine.groups;
  const std::int64_t rows = x.rows * groups.experts_per_token;
  gather_rows(model.ctx, groups, x, mine.gathered.first_rows(rows));
  const auto on_rows = [&](const Linear& linear, std::size_t expert, const Tensor& from, const Tensor& to) {
    const std::int64_t begin = groups.first[expert], count = groups.first[expert + 1] - begin;
    if (count > 0) linear.forward(model, rows_of(from.view(), begin, count), rows_of(to.view(), begin, count));
  };
  for (std::size_t e = 0; e < experts_.size(); ++e) on_rows(experts_[e].inner, e, mine.gathered, mine.inner);
  swiglu(model.ctx, mine.inner.first_rows(rows), mine.act.first_rows(rows));
  for (std::size_t e = 0; e < experts_.size(); ++e) on_rows(experts_[e].outer, e, mine.act, mine.out);
}

void MoeMlp::project(const ModelContext& model, const Kept& kept, const Matrix& y) const {
  const MoeKept& mine = static_cast<const MoeKept&>(kept);
  const auto rows = static_cast<std::size_t>(y.rows * mine.groups.experts_per_token);
  combine_rows(model.ctx, mine.groups, std::span(mine.weights).first(rows),
               mine.out.first_rows(static_cast<std::int64_t>(rows)), y);
}

// An expert that no token chose has a gradient of zeros.
void MoeMlp::expert_backward(const ModelContext& model, std::size_t expert, const MoeKept& kept, MoeWork& work,
                             const EmitGrad& emit) const {
  const std::int64_t begin = kept.groups.first[expert], count = kept.groups.first[expert + 1] - begin;
  const auto mine = [&](const Tensor& tensor) { return rows_of(tensor.view(), begin, count); };
  Held held;
  const EmitGrad hold = [&](std::size_t param, std::span<const float> grad) { held.emplace_back(param, grad); };
  if (count > 0) {
    work.outer.resize(model, count);
    work.inner.resize(model, count);
    experts_[expert].outer.backward(model, mine(kept.act), mine(work.drows), mine(work.dact), work.outer, hold);
    swiglu_backward(model.ctx, mine(kept.inner), mine(work.dact), mine(work.dinner));
    experts_[expert].inner.backward(model, mine(kept.gathered), mine(work.dinner), mine(work.drows), work.inner, hold);
  } else {
    experts_[expert].outer.no_gradient(work.outer, hold);
    experts_[expert].inner.no_gradient(work.inner, hold);
  }
  std::ranges::sort(held, std::ranges::greater{}, &Held::value_type::first);
  for (const auto& [param, grad] : held) emit(param, grad);
}

void MoeMlp::router_backward(const ModelContext& model, const Pass& pass, const Backward& args, const MoeKept& kept,
                             MoeWork& work, const EmitGrad& emit) const {
  const std::int64_t rows = kept.groups.num_tokens * kept.groups.experts_per_token;
  const Matrix dlogits = work.dlogits.view();
  route_backward(model.ctx, {kept.groups.experts_per_token, kept.probs, kept.experts, work.dweights, pass.dprobs, dlogits});
  router_.backward(model, args.x, dlogits, rows_of(work.drows.view(), rows, args.x.rows), work.router, emit);
}

/// The groups with one more row per token, behind the others: the token's way through the router.
ExpertGroups with_router(const ExpertGroups& groups) {
  ExpertGroups all;
  all.num_tokens = groups.num_tokens;
  all.experts_per_token = groups.experts_per_token + 1;
  all.tokens = groups.tokens;
  for (std::int64_t token = 0; token < groups.num_tokens; ++token) {
    const auto begin = groups.rows.begin() + token * groups.experts_per_token;
    all.rows.insert(all.rows.end(), begin, begin + groups.experts_per_token);
    all.rows.push_back(groups.num_tokens * groups.experts_per_token + token);
    all.tokens.push_back(token);
  }
  return all;
}

void MoeMlp::backward(const ModelContext& model, const Pass& pass, const Backward& args, const Kept& kept, Work& work,
                      const EmitGrad& emit) const {
  const MoeKept& mine = static_cast<const MoeKept&>(kept);
  MoeWork& to = static_cast<MoeWork&>(work);
  const std::int64_t rows = args.x.rows * mine.groups.experts_per_token;
  combine_rows_backward(model.ctx, {&mine.groups, mine.weights, mine.out.view(), args.dy, to.drows.first_rows(rows),
                                    to.dweights});
  for (std::size_t expert = experts_.size(); expert-- > 0;) expert_backward(model, expert, mine, to, emit);
  router_backward(model, pass, args, mine, to, emit);
  gather_rows_backward(model.ctx, with_router(mine.groups), to.drows.view(), args.dx);
}

}  // namespace

std::unique_ptr<Mlp> make_moe_mlp(const ModelContext& model, const MlpPlace& place) {
  return std::make_unique<MoeMlp>(model, place);
}

}  // namespace zerofleet
