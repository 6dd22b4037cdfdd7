#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/attention/cuda/cudnn_descriptor.h"

namespace zerofleet::cudnn {

/// Alignment of tensors in memory, in bytes.
inline constexpr std::int64_t kMemoryAlignment = 16;

using Extents = std::array<std::int64_t, 4>;

/// A value of a graph: four dimensions, in memory or between two operations.
struct Tensor {
  std::int64_t id;
  Extents dims;
  const Descriptor* descriptor;
};

/// A graph of operations, with the numbers that it contains.
struct Graph {
  Descriptor descriptor;
  std::map<std::int64_t, float> numbers;  // by their tensors' ids
};

/// Makes a graph: operations in the order in which they are added. Numbers are computed in fp32.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::shared_ptr<const Library> library) : library_(std::move(library)) {}

  /// A tensor in memory; the caller's id, below kFirstOwnId.
  Tensor in_memory(std::int64_t id, DataType type, const Extents& dims, const Extents& strides);
  /// The result of an operation that goes to other operations only; without strides rows follow each other.
  Tensor between(DataType type, const Extents& dims);
  Tensor between(DataType type, const Extents& dims, const Extents& strides);
  Tensor number(float value);

  /// y = mode(x, b), or for kSelect x where `t` is true, else b. Each returns y. Dimensions of 1 in b count for all.
  Tensor pointwise(PointwiseMode mode, const Tensor& y, const Tensor& x);
  Tensor pointwise(PointwiseMode mode, const Tensor& y, const Tensor& x, const Tensor& b, DataType compute = kFloat32);
  Tensor select(const Tensor& y, const Tensor& x, const Tensor& b, const Tensor& t);
  /// y = the index of each element of x along a dimension.
  Tensor index(const Tensor& y, const Tensor& x, std::int64_t axis);
  /// c (b, h, m, n) = a (b, h, m, k) · b (b, h', k, n), where h' divides h.
  Tensor matmul(const Tensor& c, const Tensor& a, const Tensor& b);
  /// Over the dimensions that are shorter in y.
  Tensor reduce(ReductionOperator op, const Tensor& y, const Tensor& x);
  /// The elements of x in their order in memory.
  Tensor reshape(const Tensor& y, const Tensor& x);

  /// handle: null for a graph of a described device.
  Graph finish(Handle* handle);

  static constexpr std::int64_t kFirstOwnId = 100;

 private:
  struct TensorKind {
    bool is_virtual = false, is_by_value = false;
  };
  Tensor add_tensor(std::int64_t id, DataType type, const Extents& dims, const Extents& strides,
                    const TensorKind& kind);
  void add_pointwise(Descriptor mode, const Tensor& y, const Tensor& x, const Tensor* b, const Tensor* t);
  Descriptor pointwise_mode(PointwiseMode mode, DataType compute) const;
  void add_operation(Descriptor operation);

  std::shared_ptr<const Library> library_;
  std::vector<std::unique_ptr<Descriptor>> tensors_;
  std::vector<Descriptor> operations_;
  std::map<std::int64_t, float> numbers_;
  std::int64_t next_id_ = kFirstOwnId;
};

}  // namespace zerofleet::cudnn
