#include "model/layers/linear.h"

// The weights of a Linear as operands of its products.
namespace zerofleet {

// Packed codes serve products of few rows on CPUs.
bool Linear::reads_copies(const ModelContext& model) const {
  const bool packs_codes = model.packed_words == PackedWords::kSmallest && model.ctx.device.kind == DeviceKind::kCpu;
  const bool wants_copies = rows_ == RowCount::kVaries || model.weights == WeightUse::kPackedCopies;
  return wants_copies && (!is_quantized_ || packs_codes);
}

void Linear::make_copies(const ModelContext& model) {
  if (!packed_forward_.empty() || !codes_.empty()) return;
  for (const LinearSpec& spec : specs_) {
    if (is_quantized_)
      codes_.emplace_back(model.ctx, *model.config.quantization, source_forward_.front().rows, model.dtype, in_,
                          spec.out);
    else
      packed_forward_.emplace_back(model.ctx, model.dtype, in_, spec.out, model.packed_words);
  }
}

// Bytes of the packed copies: Σ packed(in, out of each matrix), or those of its codes, and from the first backward on
// packed(out of all, in) too; and what adapters keep about the weights.
std::size_t Linear::packed_bytes() const {
  std::size_t num_bytes = packed_backward_.num_bytes() + adapter_.magnitudes().num_bytes();
  for (const PackedMatrix& operand : packed_forward_) num_bytes += operand.num_bytes();
  for (const PackedCodes& operand : codes_) num_bytes += operand.num_bytes();
  return num_bytes;
}

void Linear::add_parameter(const ModelContext& model, ParamPointers params, const LinearSpec& spec,
                           SourceOperand& source) const {
  if (spec.quantized) return source.add(*params.quantized[spec.weight], model.dtype);
  const std::int64_t rows = layout_ == WeightLayout::kInOut ? in_ : spec.out,
                     cols = layout_ == WeightLayout::kInOut ? spec.out : in_;
  source.parts.push_back({params[spec.weight], model.dtype, rows, cols, cols});
}

void Linear::request_forward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) {
  const bool is_copied = reads_copies(model);
  if (is_copied) {
    make_copies(model);
  } else {
    packed_forward_.clear();
    codes_.clear();
  }
  for (std::size_t part = 0; part < specs_.size(); ++part) {
    SourceOperand& source = source_forward_[part];
    source = {{}, source.rows};
    add_parameter(model, params, specs_[part], source);
    biases_[part] = specs_[part].bias ? params[*specs_[part].bias] : nullptr;
    if (!is_copied) continue;
    if (is_quantized_)
      codes_[part].pack(model.ctx, *params.quantized[specs_[part].weight]);
    else
      requests.push_back({source.parts.front(), source.rows, &packed_forward_[part], 0});
  }
  adapter_.bind(model, params, source_forward_);
}

void Linear::request_backward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) {
  source_backward_ = {{}, source_backward_.rows};
  for (const LinearSpec& spec : specs_) add_parameter(model, params, spec, source_backward_);
  if (!reads_copies(model)) return;
  if (packed_backward_.k() == 0) packed_backward_ = PackedMatrix(model.ctx, model.dtype, out_, in_);
  std::int64_t begin = 0;
  for (std::size_t part = 0; part < specs_.size(); ++part) {
    requests.push_back({source_backward_.parts[part], source_backward_.rows, &packed_backward_, begin});
    begin += specs_[part].out;
  }
}

GemmProblem Linear::output(const ModelContext& model, std::size_t part, const Matrix& x, const Matrix& y) const {
  GemmProblem problem{x, nullptr, y, false, false, biases_[part]};
  if (!reads_copies(model)) {
    problem.source = &source_forward_[part];
  } else if (is_quantized_) {
    problem.codes = &codes_[part];
  } else {
    problem.b = &packed_forward_[part];
  }
  problem.varies = rows_ == RowCount::kVaries;
  return problem;
}

}  // namespace zerofleet
