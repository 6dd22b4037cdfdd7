#include "kernels/attention/cuda/cudnn_graph.h"

namespace zerofleet::cudnn {
namespace {

constexpr Extents kOnes{1, 1, 1, 1};

Extents packed(const Extents& dims) { return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}; }

}  // namespace

Tensor GraphBuilder::add_tensor(std::int64_t id, DataType type, const Extents& dims, const Extents& strides,
                                const TensorKind& kind) {
  auto tensor = std::make_unique<Descriptor>(library_, kTensor);
  tensor->set(kTensorId, id);
  tensor->set(kTensorDataType, type);
  tensor->set(kTensorDimensions, std::span<const std::int64_t>(dims));
  tensor->set(kTensorStrides, std::span<const std::int64_t>(strides));
  tensor->set(kTensorAlignment, kMemoryAlignment);
  if (kind.is_virtual) tensor->set(kTensorIsVirtual, true);
  if (kind.is_by_value) tensor->set(kTensorIsByValue, true);
  tensor->finalize();
  tensors_.push_back(std::move(tensor));
  return {id, dims, tensors_.back().get()};
}

Tensor GraphBuilder::in_memory(std::int64_t id, DataType type, const Extents& dims, const Extents& strides) {
  return add_tensor(id, type, dims, strides, {});
}

Tensor GraphBuilder::between(DataType type, const Extents& dims) { return between(type, dims, packed(dims)); }

Tensor GraphBuilder::between(DataType type, const Extents& dims, const Extents& strides) {
  return add_tensor(next_id_++, type, dims, strides, {.is_virtual = true});
}

Tensor GraphBuilder::number(float value) {
  numbers_[next_id_] = value;
  return add_tensor(next_id_++, kFloat32, kOnes, kOnes, {.is_by_value = true});
}

void GraphBuilder::add_operation(Descriptor operation) {
  operation.finalize();
  operations_.push_back(std::move(operation));
}

Descriptor GraphBuilder::pointwise_mode(PointwiseMode mode, DataType compute) const {
  Descriptor descriptor(library_, kPointwise);
  descriptor.set(kPointwiseMode, mode);
  descriptor.set(kPointwiseComputeType, compute);
  return descriptor;
}

void GraphBuilder::add_pointwise(Descriptor mode, const Tensor& y, const Tensor& x, const Tensor* b, const Tensor* t) {
  mode.finalize();
  Descriptor operation(library_, kPointwiseOperation);
  operation.set(kOperationPointwise, mode);
  operation.set(kOperationPointwiseX, *x.descriptor);
  operation.set(kOperationPointwiseY, *y.descriptor);
  if (b != nullptr) operation.set(kOperationPointwiseB, *b->descriptor);
  if (t != nullptr) operation.set(kOperationPointwiseT, *t->descriptor);
  add_operation(std::move(operation));
}

Tensor GraphBuilder::pointwise(PointwiseMode mode, const Tensor& y, const Tensor& x) {
  add_pointwise(pointwise_mode(mode, kFloat32), y, x, nullptr, nullptr);
  return y;
}

Tensor GraphBuilder::pointwise(PointwiseMode mode, const Tensor& y, const Tensor& x, const Tensor& b,
                               DataType compute) {
  add_pointwise(pointwise_mode(mode, compute), y, x, &b, nullptr);
  return y;
}

Tensor GraphBuilder::select(const Tensor& y, const Tensor& x, const Tensor& b, const Tensor& t) {
  add_pointwise(pointwise_mode(kSelect, kFloat32), y, x, &b, &t);
  return y;
}

Tensor GraphBuilder::index(const Tensor& y, const Tensor& x, std::int64_t axis) {
  Descriptor mode = pointwise_mode(kIndex, kFloat32);
  mode.set(kPointwiseAxis, axis);
  add_pointwise(std::move(mode), y, x, nullptr, nullptr);
  return y;
}

Tensor GraphBuilder::matmul(const Tensor& c, const Tensor& a, const Tensor& b) {
  Descriptor matmul(library_, kMatmul), operation(library_, kMatmulOperation);
  matmul.set(kMatmulComputeType, kFloat32);
  matmul.finalize();
  operation.set(kOperationMatmulA, *a.descriptor);
  operation.set(kOperationMatmulB, *b.descriptor);
  operation.set(kOperationMatmulC, *c.descriptor);
  operation.set(kOperationMatmul, matmul);
  add_operation(std::move(operation));
  return c;
}

Tensor GraphBuilder::reduce(ReductionOperator op, const Tensor& y, const Tensor& x) {
  Descriptor reduction(library_, kReduction), operation(library_, kReductionOperation);
  reduction.set(kReductionOperator, op);
  reduction.set(kReductionComputeType, kFloat32);
  reduction.finalize();
  operation.set(kOperationReductionX, *x.descriptor);
  operation.set(kOperationReductionY, *y.descriptor);
  operation.set(kOperationReduction, reduction);
  add_operation(std::move(operation));
  return y;
}

Tensor GraphBuilder::reshape(const Tensor& y, const Tensor& x) {
  Descriptor operation(library_, kReshapeOperation);
  operation.set(kOperationReshapeX, *x.descriptor);
  operation.set(kOperationReshapeY, *y.descriptor);
  add_operation(std::move(operation));
  return y;
}

Graph GraphBuilder::finish(Handle* handle) {
  Descriptor graph(library_, kOperationGraph);
  if (handle != nullptr) graph.set(kGraphHandle, handle);
  graph.set(kGraphOperations, operations_);
  graph.finalize();
  return {std::move(graph), numbers_};
}

}  // namespace zerofleet::cudnn
