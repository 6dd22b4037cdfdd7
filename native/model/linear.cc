#include "model/linear.h"

#include <utility>

#include "kernels/gemm.h"

// For y = x Wᵀ: dx = dy W and dW = dyᵀ x. Both come out of one parallel section, after x was packed as an operand.
namespace zerofleet {

Linear::Linear(const ModelContext& model, LinearPlaces places, std::int64_t in) : places_(std::move(places)), in_(in) {
  for (const LinearPlace& place : places_) {
    forward_.emplace_back(model.ctx, model.dtype, in, place.out);
    out_ += place.out;
  }
}

// Σ packed(in, out of each matrix), and from the first backward on packed(out of all, in) too.
std::size_t Linear::packed_bytes() const {
  std::size_t num_bytes = backward_.num_bytes();
  for (const PackedMatrix& operand : forward_) num_bytes += operand.num_bytes();
  return num_bytes;
}

ConstMatrix Linear::parameter(const ModelContext& model, ParamPointers params, const LinearPlace& place) const {
  return {params[place.weight], model.dtype, place.out, in_, in_};
}

void Linear::request_forward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) {
  for (std::size_t part = 0; part < places_.size(); ++part) {
    requests.push_back({parameter(model, params, places_[part]), SourceRows::kAlongN, &forward_[part], 0});
  }
}

void Linear::request_backward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests) {
  if (backward_.k() == 0) backward_ = PackedMatrix(model.ctx, model.dtype, out_, in_);
  std::int64_t begin = 0;
  for (const LinearPlace& place : places_) {
    requests.push_back({parameter(model, params, place), SourceRows::kAlongK, &backward_, begin});
    begin += place.out;
  }
}

void Linear::forward(const ModelContext& model, const Matrix& x, const Matrix& y) const {
  std::vector<GemmProblem> problems;
  std::int64_t begin = 0;
  for (std::size_t part = 0; part < places_.size(); ++part) {
    const std::int64_t out = places_[part].out;
    problems.push_back({x, &forward_[part], y.columns(begin, out)});
    begin += out;
  }
  gemm(model.ctx, *model.scratch, problems);
}

void Linear::backward(const ModelContext& model, const Matrix& x, const Matrix& dy, const Matrix& dx,
                      LinearGradients& grads, const EmitGrad& emit) const {
  const PackRequest request[] = {{x, SourceRows::kAlongK, grads.operand.get()}};
  pack(model.ctx, request);
  std::vector<GemmProblem> problems{{dy, &backward_, dx}};
  std::int64_t begin = 0;
  for (std::size_t part = 0; part < places_.size(); ++part) {
    const std::int64_t out = places_[part].out;
    problems.push_back({dy.columns(begin, out), grads.operand.get(), grads.weights[part].view(), true});
    begin += out;
  }
  gemm(model.ctx, *model.scratch, problems);
  for (std::size_t part = places_.size(); part-- > 0;) emit(places_[part].weight, grads.weights[part].floats());
}

LinearGradients::LinearGradients(const ModelContext& model, const Linear& linear, std::int64_t rows,
                                 std::shared_ptr<PackedMatrix> spare) {
  for (const LinearPlace& place : linear.places_) {
    weights.emplace_back(model.ctx, DType::kF32, place.out, linear.in(), Tensor::Rows::kContiguous);
  }
  is_spare = spare && spare->k() == rows && spare->n() == linear.in();
  operand = is_spare ? std::move(spare) : std::make_shared<PackedMatrix>(model.ctx, model.dtype, rows, linear.in());
}

// 4 · in · out, and packed(M, in) unless a spare operand serves.
std::size_t LinearGradients::num_bytes() const {
  std::size_t num_bytes = is_spare ? 0 : operand->num_bytes();
  for (const Tensor& weight : weights) num_bytes += weight.num_bytes();
  return num_bytes;
}

}  // namespace zerofleet
