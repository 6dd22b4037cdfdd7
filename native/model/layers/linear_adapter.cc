#include "model/layers/linear_adapter.h"

#include <algorithm>

#include "core/device/transfer.h"

namespace zerofleet {
namespace {

constexpr std::uint32_t kFirstSite = std::uint32_t{1}
                                     << 31;  // sites of the dropouts of adapters; dropout_site() has the others

/// Room in the sink for a gradient, or its own tensor.
Matrix target_of(std::size_t param, const Tensor& own, GradSink& sink) {
  Matrix target = own.view();
  if (std::byte* room = sink.room_for(param, target.dtype)) target.data = room;
  return target;
}

GradView view_of(const Matrix& gradient) {
  return {static_cast<const std::byte*>(gradient.data), gradient.dtype,
          static_cast<std::size_t>(gradient.rows * gradient.cols)};
}

}  // namespace

Tensor room_for_dropped(const ModelContext& model, std::int64_t rows) {
  const ModelConfig& c = model.config;
  if (!c.adapter || c.adapter->dropout == 0) return {};
  const auto elements = [&](std::int64_t count, std::int64_t cols) {
    return count * Tensor::padded_stride(model.dtype, cols);
  };
  const std::int64_t numel =
      std::max(elements(rows, std::max(c.hidden_size, c.query_size())),
               elements(rows_at_once(model, rows), std::max(c.intermediate_size, c.shared_expert_size)));
  return {model.ctx, model.dtype, 1, numel, Tensor::Rows::kContiguous};
}

LinearAdapter::LinearAdapter(const ModelContext& model, const LinearSpecs& matrices, std::int64_t in, bool varies)
    : dtype_(model.dtype), in_(in), varies_(varies), magnitudes_(model, matrices) {
  if (!model.config.adapter) return;
  rank_ = model.config.adapter->rank;
  scale_ = static_cast<float>(model.config.adapter->scale);
  dropout_ = model.config.adapter->dropout;
  std::int64_t begin = 0;
  for (std::size_t index = 0; index < matrices.size(); ++index) {
    const LinearSpec& matrix = matrices[index];
    if (matrix.adapter)
      parts_.push_back({index, begin, matrix.out, {matrix.adapter->down, {}, {}}, {matrix.adapter->up, {}, {}}});
    begin += matrix.out;
  }
  if (!parts_.empty()) site_ = kFirstSite + static_cast<std::uint32_t>(parts_.front().down.param);
}

Matrix LinearAdapter::dropped(const ModelContext& model, const Pass& pass, const Matrix& x) const {
  if (empty() || !pass.dropout || dropout_ == 0) return x;
  const Matrix room = model.dropped->reshaped(x.rows, in_);
  dropout(model.ctx, pass.dropout_key(site_), dropout_, x, room);
  return room;
}

void LinearAdapter::Factor::bind(const ConstMatrix& matrix) {
  along_k = {{matrix}, SourceRows::kAlongK};
  along_n = {{matrix}, SourceRows::kAlongN};
}

void LinearAdapter::bind(const ModelContext& model, ParamPointers params, std::span<const SourceOperand> weights) {
  for (Part& part : parts_) {
    const ConstMatrix down{params[part.down.param], dtype_, rank_, in_, in_},
        up{params[part.up.param], dtype_, part.out, rank_, rank_};
    part.down.bind(down);
    part.up.bind(up);
    if (magnitudes_.empty()) continue;
    magnitudes_.bind(model, params, part.index,
                     {weights[part.index].parts.front(), model.layout == WeightLayout::kInOut, down, up, scale_});
  }
}

GemmProblem LinearAdapter::product(const Matrix& a, const SourceOperand& source, const Matrix& c,
                                   const std::int32_t* row_range) const {
  GemmProblem problem{a, nullptr, c};
  problem.source = &source;
  problem.varies = varies_;
  problem.row_range = row_range;
  return problem;
}

void LinearAdapter::add_low(const Matrix& x, const Matrix& low, std::vector<GemmProblem>& problems,
                            const std::int32_t* row_range) const {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    problems.push_back(product(x, parts_[part].down.along_n, low_of(low, part), row_range));
    problems.back().alpha = scale_;
  }
}

void LinearAdapter::add_outputs(const Matrix& low, const Matrix& y, std::vector<GemmProblem>& problems,
                                const std::int32_t* row_range) const {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const Part& mine = parts_[part];
    const Matrix sums =
        magnitudes_.empty() ? y.columns(mine.begin, mine.out) : magnitudes_.products_of(low, mine.index);
    problems.push_back(product(low_of(low, part), mine.up.along_n, sums, row_range));
    problems.back().accumulate = true;
  }
}

void LinearAdapter::add_outputs(const Matrix& low, std::span<const Matrix> ys, std::vector<GemmProblem>& problems,
                                const std::int32_t* row_range) const {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const Part& mine = parts_[part];
    const Matrix sums = magnitudes_.empty() ? ys[mine.index] : magnitudes_.products_of(low, mine.index);
    problems.push_back(product(low_of(low, part), mine.up.along_n, sums, row_range));
    problems.back().accumulate = true;
  }
}

void LinearAdapter::finish(const ModelContext& model, const Matrix& low, const Matrix& y,
                           const std::int32_t* row_range) const {
  if (magnitudes_.empty()) return;
  for (const Part& part : parts_)
    magnitudes_.output(model, part.index, low, y.columns(part.begin, part.out), row_range);
}

void LinearAdapter::finish(const ModelContext& model, const Matrix& low, std::span<const Matrix> ys) const {
  if (magnitudes_.empty()) return;
  for (const Part& part : parts_) magnitudes_.output(model, part.index, low, ys[part.index], nullptr);
}

void LinearAdapter::add_low_gradient(const Matrix& dy, const Matrix& dlow, std::vector<GemmProblem>& problems,
                                     const std::int32_t* row_range) const {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const Part& mine = parts_[part];
    problems.push_back(product(dy.columns(mine.begin, mine.out), mine.up.along_k, low_of(dlow, part), row_range));
    problems.back().alpha = scale_;
  }
}

void LinearAdapter::add_input_gradient(std::size_t part, const Matrix& dlow, const Matrix& dx,
                                       std::vector<GemmProblem>& problems, const std::int32_t* row_range) const {
  problems.push_back(product(low_of(dlow, part), parts_[part].down.along_k, dx, row_range));
  problems.back().accumulate = true;
}

void LinearAdapter::input_gradient(const ModelContext& model, const Pass& pass, const Matrix& dlow,
                                   const Matrix& dx) const {
  if (empty()) return;
  const bool drops = pass.dropout && dropout_ > 0;
  const Matrix target = drops ? model.dropped->reshaped(dx.rows, in_) : dx;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    std::vector<GemmProblem> problem;
    add_input_gradient(part, dlow, target, problem);
    problem.front().accumulate = !drops || part > 0;
    gemm(model.ctx, *model.scratch, problem);
  }
  if (drops) add_dropout(model.ctx, pass.dropout_key(site_), dropout_, target, dx);
}

// dA = dlowᵀ x and dB = dyᵀ low, or dzᵀ low: room in the sink is asked for in the order in which the gradients will be
// taken.
void LinearAdapter::add_weight_gradients(const ModelContext& model, const Backward& args, AdapterGradients& grads,
                                         GradSink& sink, std::vector<GemmProblem>& problems,
                                         const std::int32_t* row_range) const {
  const Matrix dproducts = magnitudes_.product_gradient(args.dy, args.dlow);
  std::vector<PackRequest> requests;
  std::vector<GemmProblem> products;
  for (std::size_t part = parts_.size(); part-- > 0;) {
    const Part& at = parts_[part];
    AdapterGradients::Factors& mine = grads.factors[part];
    if (const auto param = magnitudes_.param(at.index); param && model.trains(*param))
      magnitudes_.gradient(model, at.index, args.dy, args.low, mine.magnitude.span(), args.part, row_range);
    if (model.trains(at.up.param)) {
      if (args.part.begins) mine.up_target = target_of(at.up.param, mine.up, sink);
      mine.low.set_k(model.ctx, args.x.rows);
      requests.push_back({low_of(args.low, part), SourceRows::kAlongK, &mine.low});
      products.push_back({dproducts.columns(at.begin, at.out), &mine.low, mine.up_target, true, !args.part.begins});
    }
    if (model.trains(at.down.param)) {
      if (args.part.begins) mine.down_target = target_of(at.down.param, mine.down, sink);
      products.push_back({low_of(args.dlow, part), &grads.x, mine.down_target, true, !args.part.begins});
    }
  }
  if (std::ranges::any_of(parts_, [&](const Part& part) { return model.trains(part.down.param); })) {
    grads.x.set_k(model.ctx, args.x.rows);
    requests.push_back({args.x, SourceRows::kAlongK, &grads.x});
  }
  pack(model.ctx, requests);
  for (GemmProblem& product : products) product.varies = varies_;
  problems.insert(problems.end(), products.begin(), products.end());
}

void LinearAdapter::emit(const ModelContext& model, std::size_t index, AdapterGradients& grads, GradSink& sink) const {
  const auto part = std::ranges::find(parts_, index, &Part::index);
  if (part == parts_.end()) return;
  const AdapterGradients::Factors& mine = grads.factors[static_cast<std::size_t>(part - parts_.begin())];
  if (const auto param = magnitudes_.param(index)) model.emit(*param, mine.magnitude.span(), sink);
  if (model.trains(part->up.param)) sink.take(part->up.param, view_of(mine.up_target));
  if (model.trains(part->down.param)) sink.take(part->down.param, view_of(mine.down_target));
}

void LinearAdapter::no_gradient(const ModelContext& model, AdapterGradients& grads) const {
  for (AdapterGradients::Factors& factors : grads.factors) {
    for (Tensor* gradient : {&factors.down, &factors.up}) fill_zero(model.ctx, gradient->bytes());
    if (!magnitudes_.empty()) fill_zero(model.ctx, factors.magnitude.bytes());
    factors.down_target = factors.down.view();
    factors.up_target = factors.up.view();
  }
}

AdapterGradients::AdapterGradients(const ModelContext& model, const LinearAdapter& adapter, std::int64_t rows,
                                   DType dtype) {
  constexpr auto kContiguous = Tensor::Rows::kContiguous;
  for (const LinearAdapter::Part& part : adapter.parts_) {
    factors.push_back({Tensor(model.ctx, dtype, adapter.rank_, adapter.in_, kContiguous),
                       Tensor(model.ctx, dtype, part.out, adapter.rank_, kContiguous),
                       Values<float>(model.ctx, adapter.magnitudes_.empty() ? 0 : part.out),
                       {},
                       {},
                       PackedMatrix(model.ctx, model.dtype, rows, adapter.rank_)});
  }
  if (!adapter.empty()) x = PackedMatrix(model.ctx, model.dtype, rows, adapter.in_);
}

// packed(R, in) and for each adapter g · rank · (in + out), for gradients of g bytes, packed(R, rank) and with a
// magnitude 4 · out
std::size_t AdapterGradients::num_bytes() const {
  std::size_t num_bytes = x.num_bytes();
  for (const Factors& mine : factors) num_bytes += bytes_of(mine.down, mine.up, mine.magnitude, mine.low);
  return num_bytes;
}

}  // namespace zerofleet
