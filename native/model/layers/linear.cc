#include "model/layers/linear.h"

#include <algorithm>
#include <utility>

#include "core/device/transfer.h"
#include "core/error.h"
#include "kernels/elementwise/bias.h"
#include "model/layers/served_adapter.h"

// For y = x Wᵀ: dx = dy W and dW = dyᵀ x. Both come out of one parallel section, after x was packed as an operand. For
// weights that are stored as (in, out) it is dWᵀ = xᵀ dy, and dy is the operand.
namespace zerofleet {
namespace {

bool are_quantized(const LinearSpecs& specs) {
  const auto count = std::ranges::count_if(specs, &LinearSpec::quantized);
  require(count == 0 || count == std::ssize(specs), "invalid_model_config",
          "adapter.modules_to_save must not name a matrix whose input quantized matrices share");
  return count > 0;
}

}  // namespace

Linear::Linear(const ModelContext& model, LinearSpecs specs, std::int64_t in, RowCount rows)
    : specs_(std::move(specs)),
      layout_(model.layout),
      in_(in),
      rows_(rows),
      is_quantized_(are_quantized(specs_)),
      adapter_(model, specs_, in, rows == RowCount::kVaries),
      biases_(specs_.size()) {
  require(layout_ == WeightLayout::kOutIn || specs_.size() == 1, "internal",
          "weights that are stored as (in, out) come as one matrix");
  const bool in_first = layout_ == WeightLayout::kInOut;
  for (const LinearSpec& spec : specs_) out_ += spec.out;
  source_forward_.resize(specs_.size(), {{}, in_first ? SourceRows::kAlongK : SourceRows::kAlongN});
  source_backward_.rows = in_first ? SourceRows::kAlongN : SourceRows::kAlongK;
  if (reads_copies(model)) make_copies(model);
}

void Linear::add_forward(const ModelContext& model, const Matrix& x, const Matrix& y,
                         std::vector<GemmProblem>& problems, const std::int32_t* row_range) const {
  std::int64_t begin = 0;
  for (std::size_t part = 0; part < specs_.size(); ++part) {
    problems.push_back(output(model, part, x, y.columns(begin, specs_[part].out)));
    problems.back().row_range = row_range;
    begin += specs_[part].out;
  }
}

void Linear::add_input_gradient(const ModelContext& model, const Matrix& dy, const Matrix& dx,
                                std::vector<GemmProblem>& problems, const std::int32_t* row_range) const {
  const bool in_place = !reads_copies(model);
  GemmProblem problem{dy, in_place ? nullptr : &packed_backward_, dx};
  if (in_place) problem.source = &source_backward_;
  problem.varies = rows_ == RowCount::kVaries;
  problem.row_range = row_range;
  problems.push_back(problem);
}

// An adapter adds to the outputs, so that an epilogue comes after it, in a pass of its own.
void Linear::forward(const ModelContext& model, const Pass& pass, const Matrix& x, const Matrix& y, const Tensor& low,
                     const GemmEpilogue& epilogue) const {
  std::vector<GemmProblem> products, added;
  if (!adapter_.is_on(model)) {
    add_forward(model, x, y, products);
    products.front().epilogue = epilogue;
    gemm(model.ctx, *model.scratch, products);
    return adapt_rows(model, pass, x, y, epilogue);
  }
  const Matrix sums = epilogue.kind == GemmEpilogue::Kind::kGelu ? epilogue.inner : y, rows = low.first_rows(x.rows);
  add_forward(model, x, sums, products);
  adapter_.magnitudes().keep_products(rows, products);
  adapter_.add_low(adapter_.dropped(model, pass, x), rows, products);
  adapter_.add_outputs(rows, sums, added);
  gemm(model.ctx, *model.scratch, products);
  gemm(model.ctx, *model.scratch, added);
  adapter_.finish(model, rows, sums);
  apply_epilogue(model.ctx, epilogue, y);
}

/// After the product of the base: its epilogue is applied again to rows that their adapters change.
void Linear::adapt_rows(const ModelContext& model, const Pass& pass, const Matrix& x, const Matrix& y,
                        const GemmEpilogue& epilogue) const {
  if (pass.adapted.empty()) return;
  const std::size_t first = specs_.front().weight;
  const Matrix sums = epilogue.kind == GemmEpilogue::Kind::kGelu ? epilogue.inner : y;
  std::vector<Matrix> parts;
  for (std::int64_t begin = 0; const LinearSpec& spec : specs_) {
    parts.push_back(sums.columns(begin, spec.out));
    begin += spec.out;
  }
  add_adapted_rows(model, pass.adapted, first, x, parts);
  for (const AdaptedRows& rows : pass.adapted) {
    if (rows.adapter->linear_of(first) == nullptr || epilogue.kind == GemmEpilogue::Kind::kNone) continue;
    apply_epilogue(model.ctx, {epilogue.kind, epilogue.gelu, rows.rows_of(epilogue.inner)}, rows.rows_of(y));
  }
}

void Linear::forward_low(const ModelContext& model, const Pass& pass, const Matrix& x, const Tensor& low) const {
  if (!adapter_.is_on(model)) return;
  const Matrix rows = low.first_rows(x.rows);
  std::vector<GemmProblem> products, added;
  if (!adapter_.magnitudes().empty()) {
    require(specs_.size() == 1, "internal", "the outputs of several matrices come in one step");
    add_forward(model, x, rows, products);
    adapter_.magnitudes().keep_products(rows, products);
    adapter_.add_outputs(rows, rows, added);
  }
  adapter_.add_low(adapter_.dropped(model, pass, x), rows, products);
  gemm(model.ctx, *model.scratch, products);
  if (!added.empty()) gemm(model.ctx, *model.scratch, added);
}

void Linear::forward_from_low(const ModelContext& model, const Pass& pass, const Matrix& x, const Matrix& y,
                              const Tensor& low) const {
  if (adapter_.is_on(model) && !adapter_.magnitudes().empty()) return adapter_.finish(model, low.first_rows(x.rows), y);
  std::vector<GemmProblem> products, added;
  add_forward(model, x, y, products);
  gemm(model.ctx, *model.scratch, products);
  if (adapter_.is_on(model)) adapter_.add_outputs(low.first_rows(x.rows), y, added);
  if (!added.empty()) gemm(model.ctx, *model.scratch, added);
  adapt_rows(model, pass, x, y);
}

void Linear::forward(const ModelContext& model, const Pass& pass, const Matrix& x, std::span<const Matrix> ys,
                     const Tensor& low) const {
  std::vector<GemmProblem> products, added;
  for (std::size_t part = 0; part < specs_.size(); ++part) products.push_back(output(model, part, x, ys[part]));
  if (!adapter_.is_on(model)) {
    gemm(model.ctx, *model.scratch, products);
    return add_adapted_rows(model, pass.adapted, specs_.front().weight, x, ys);
  }
  const Matrix rows = low.first_rows(x.rows);
  adapter_.magnitudes().keep_products(rows, products);
  adapter_.add_low(adapter_.dropped(model, pass, x), rows, products);
  adapter_.add_outputs(rows, ys, added);
  gemm(model.ctx, *model.scratch, products);
  gemm(model.ctx, *model.scratch, added);
  adapter_.finish(model, rows, ys);
}

// In the order in which the gradients will be taken.
void Linear::find_room(const ModelContext& model, LinearGradients& grads, GradSink& sink) const {
  for (std::size_t part = specs_.size(); part-- > 0;) {
    if (!model.trains(specs_[part].weight)) continue;
    Matrix& target = grads.targets[part];
    target = grads.weights[part].view();
    if (std::byte* room = sink.room_for(specs_[part].weight, target.dtype)) target.data = room;
  }
}

void Linear::add_weight_gradients(const ModelContext& model, const Matrix& x, const Matrix& dy, const RowPart& rows,
                                  LinearGradients& grads, GradSink& sink, std::vector<GemmProblem>& problems) const {
  const auto is_trained = [&](const LinearSpec& spec) { return model.trains(spec.weight); };
  if (std::ranges::none_of(specs_, is_trained)) return;
  if (rows.begins) find_room(model, grads, sink);
  grads.operand->set_k(model.ctx, x.rows);
  const bool in_first = layout_ == WeightLayout::kInOut;
  const PackRequest request[] = {{in_first ? dy : x, SourceRows::kAlongK, grads.operand.get()}};
  pack(model.ctx, request);
  std::int64_t end = 0;
  for (std::size_t part = 0; part < specs_.size(); ++part) {
    const std::int64_t begin = end;
    end += specs_[part].out;
    if (!is_trained(specs_[part])) continue;
    const ConstMatrix a = in_first ? x : dy.columns(begin, specs_[part].out);
    problems.push_back({a, grads.operand.get(), grads.targets[part], true, !rows.begins});
    problems.back().varies = rows_ == RowCount::kVaries;
  }
}

void Linear::add_bias_gradients(const ModelContext& model, const Matrix& dy, const RowPart& rows,
                                LinearGradients& grads) const {
  std::int64_t end = out_;
  for (std::size_t part = specs_.size(); part-- > 0;) {
    end -= specs_[part].out;
    const LinearSpec& spec = specs_[part];
    if (spec.bias && model.trains(*spec.bias))
      bias_gradient(model.ctx, dy.columns(end, spec.out), grads.biases[part].span(), !rows.begins);
  }
}

void Linear::emit_all(const ModelContext& model, LinearGradients& grads, GradSink& sink) const {
  for (std::size_t part = specs_.size(); part-- > 0;) emit_part(model, part, grads, sink);
}

void Linear::backward(const ModelContext& model, const Pass& pass, const Backward& args, const Tensor& low,
                      LinearGradients& grads, GradSink& sink) const {
  const Matrix low_rows = low.first_rows(args.x.rows);
  if (args.x.rows <= grads.rows) return backward_of_part(model, pass, args, low_rows, grads, sink);
  for_row_parts(pass, args.x.rows, grads.rows, [&](const Pass& part, const auto& rows_of) {
    Backward rows{rows_of(args.x), rows_of(args.dy), rows_of(args.dx), args.epilogue};
    rows.epilogue.inner = rows_of(args.epilogue.inner);
    backward_of_part(model, part, rows, rows_of(low_rows), grads, sink);
  });
}

void Linear::backward_of_part(const ModelContext& model, const Pass& pass, const Backward& args, const Matrix& low,
                              LinearGradients& grads, GradSink& sink) const {
  std::vector<GemmProblem> problems;
  const auto run = [&] {
    gemm(model.ctx, *model.scratch, problems);
    problems.clear();
  };
  const Matrix dlow = grads.dlow.first_rows(args.dy.rows),
               dproducts = adapter_.magnitudes().scale_gradient(model, args.dy, dlow, nullptr);
  add_input_gradient(model, dproducts, args.dx, problems);
  if (adapter_.empty()) problems.front().epilogue = args.epilogue;
  add_weight_gradients(model, args.x, dproducts, pass.part, grads, sink, problems);
  if (!adapter_.empty()) adapter_.add_low_gradient(dproducts, dlow, problems);
  run();
  if (!adapter_.empty()) {
    const Matrix x = adapter_.dropped(model, pass, args.x);
    adapter_.add_weight_gradients(model, {x, low, args.dy, dlow, pass.part}, grads.adapter, sink, problems);
    run();
    adapter_.input_gradient(model, pass, dlow, args.dx);
    apply_epilogue(model.ctx, args.epilogue, args.dx);
  }
  add_bias_gradients(model, args.dy, pass.part, grads);
  if (pass.part.ends) emit_all(model, grads, sink);
}

void Linear::weight_gradients(const ModelContext& model, const LinearAdapter::Backward& args, LinearGradients& grads,
                              GradSink& sink, const std::int32_t* row_range) const {
  const auto has_bias = [](const LinearSpec& spec) { return spec.bias.has_value(); };
  require(row_range == nullptr || std::ranges::none_of(specs_, has_bias), "internal",
          "gradients of biases are over all rows");
  std::vector<GemmProblem> problems;
  add_weight_gradients(model, args.x, adapter_.magnitudes().product_gradient(args.dy, args.dlow), args.part, grads,
                       sink, problems);
  adapter_.add_weight_gradients(model, args, grads.adapter, sink, problems, row_range);
  for (GemmProblem& problem : problems) problem.row_range = row_range;
  if (!problems.empty()) gemm(model.ctx, *model.scratch, problems);
  add_bias_gradients(model, args.dy, args.part, grads);
  if (args.part.ends) emit_all(model, grads, sink);
}

void Linear::no_gradient(const ModelContext& model, LinearGradients& grads, GradSink& sink) const {
  adapter_.no_gradient(model, grads.adapter);
  for (std::size_t part = specs_.size(); part-- > 0;) {
    if (grads.biases[part].num_bytes() > 0) fill_zero(model.ctx, grads.biases[part].bytes());
    if (grads.weights[part].num_bytes() > 0) fill_zero(model.ctx, grads.weights[part].bytes());
    grads.targets[part] = grads.weights[part].view();
    emit_part(model, part, grads, sink);
  }
}

void Linear::emit_part(const ModelContext& model, std::size_t part, LinearGradients& grads, GradSink& sink) const {
  adapter_.emit(model, part, grads.adapter, sink);
  if (specs_[part].bias) model.emit(*specs_[part].bias, grads.biases[part].span(), sink);
  if (!model.trains(specs_[part].weight)) return;
  const Matrix& weight = grads.targets[part];
  const auto numel = static_cast<std::size_t>(weight.rows * weight.cols);
  sink.take(specs_[part].weight, GradView{static_cast<const std::byte*>(weight.data), weight.dtype, numel});
}

}  // namespace zerofleet
