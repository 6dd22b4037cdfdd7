// The operations of a graph, in float64.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/dtype.h"
#include "test/cuda_emulator/cudnn/graph.h"

namespace zerofleet::fake_cudnn {
namespace {

struct Array {
  Extents dims;
  std::vector<double> values;
};

double rounded(double value, int type) {
  const auto single = static_cast<float>(value);
  if (type == kHalf) return to_float(to_f16(single));
  if (type == kBFloat16) return to_float(to_bf16(single));
  return single;
}

template <class Body>
void for_each(const Extents& dims, const Body& body) {
  std::size_t index = 0;
  for (std::int64_t i = 0; i < dims[0]; ++i) {
    for (std::int64_t j = 0; j < dims[1]; ++j) {
      for (std::int64_t k = 0; k < dims[2]; ++k) {
        for (std::int64_t l = 0; l < dims[3]; ++l) body(Extents{i, j, k, l}, index++);
      }
    }
  }
}

std::size_t index_in(const Extents& dims, const Extents& at) {
  std::size_t index = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::int64_t own = dims[i] == 1 ? 0 : at[i];
    index = index * static_cast<std::size_t>(dims[i]) + static_cast<std::size_t>(own);
  }
  return index;
}

std::size_t offset_of(const Extents& strides, const Extents& at) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < 4; ++i) offset += strides[i] * at[i];
  return static_cast<std::size_t>(offset);
}

Array loaded(const Node& tensor, const Bound& bound) {
  Array array{dims_of(tensor), {}};
  if (tensor.get<bool>(908)) {
    array.values = {static_cast<double>(bound.number)};
    return array;
  }
  const Extents strides = extents(tensor, 903);
  const int type = tensor.get<int>(901);
  for_each(array.dims, [&](const Extents& at, std::size_t) {
    const std::byte* data = bound.data + offset_of(strides, at) * (type == kFloat ? 4 : 2);
    if (type == kFloat) {
      float value;
      std::memcpy(&value, data, sizeof value);
      array.values.push_back(value);
      return;
    }
    std::uint16_t bits;
    std::memcpy(&bits, data, sizeof bits);
    array.values.push_back(type == kHalf ? to_float(f16{bits}) : to_float(bf16{bits}));
  });
  return array;
}

void store(const Node& tensor, const Bound& bound, const Array& array, Fault fault) {
  const Extents strides = extents(tensor, 903);
  const int type = tensor.get<int>(901);
  for_each(array.dims, [&](const Extents& at, std::size_t index) {
    if (fault == Fault::kLeavesLastRow && at[2] == array.dims[2] - 1) return;
    const auto value = static_cast<float>(array.values[index]);
    std::byte* data = bound.data + offset_of(strides, at) * (type == kFloat ? 4 : 2);
    if (type == kFloat) {
      std::memcpy(data, &value, sizeof value);
      return;
    }
    const std::uint16_t bits = type == kHalf ? to_f16(value).bits : to_bf16(value).bits;
    std::memcpy(data, &bits, sizeof bits);
  });
}

double pointwise(int mode, double x, double b) {
  switch (mode) {
    case 0:
      return x + b;
    case 1:
      return x * b;
    case 6:
      return x / b;
    case 9:
      return x - b;
    case 13:
      return std::exp(x);
    case 15:
      return std::log(x);
    case 302:
      return x > b;
    case 303:
      return x >= b;
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

class Interpreter {
 public:
  Interpreter(const std::map<std::int64_t, Bound>& bound, Fault fault) : bound_(bound), fault_(fault) {}

  void run(const Node& op) {
    const Ends ends = ends_of(op);
    const Node& output = op.node(ends.output);
    Array result{dims_of(output), {}};
    result.values.resize(static_cast<std::size_t>(result.dims[0] * result.dims[1] * result.dims[2] * result.dims[3]));
    if (op.kind == kMatmulOp) multiply(op, result);
    if (op.kind == kReductionOp) reduce(op, result);
    if (op.kind == kReshapeOp) reshape(op, result);
    if (op.kind == kPointwiseOp) combine(op, result);
    for (double& value : result.values) value = rounded(value, output.get<int>(901));
    if (!is_virtual(output)) store(output, bound_.at(id_of(output)), result, fault_);
    values_[id_of(output)] = std::move(result);
  }

 private:
  const Array& value_of(const Node& tensor) {
    const auto found = values_.find(id_of(tensor));
    if (found != values_.end()) return found->second;
    return values_.emplace(id_of(tensor), loaded(tensor, bound_.at(id_of(tensor)))).first->second;
  }

  void multiply(const Node& op, Array& c) {
    const Array &a = value_of(op.node(1520)), &b = value_of(op.node(1521));
    const std::int64_t depth = a.dims[3], group = c.dims[1] / b.dims[1];
    for_each(c.dims, [&](const Extents& at, std::size_t index) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) {
        sum += a.values[index_in(a.dims, {at[0], at[1], at[2], k})] *
               b.values[index_in(b.dims, {at[0], at[1] / group, k, at[3]})];
      }
      c.values[index] = sum;
    });
  }

  void reduce(const Node& op, Array& y) {
    const Array& x = value_of(op.node(1610));
    const bool is_maximum = op.node(1612).get<int>(1600) == 3;
    std::ranges::fill(y.values, is_maximum ? -std::numeric_limits<double>::infinity() : 0.0);
    for_each(x.dims, [&](const Extents& at, std::size_t index) {
      Extents target = at;
      for (std::size_t i = 0; i < 4; ++i) target[i] = at[i] / (x.dims[i] / y.dims[i]);
      double& value = y.values[index_in(y.dims, target)];
      value = is_maximum ? std::max(value, x.values[index]) : value + x.values[index];
    });
  }

  /// The elements of x in memory, as y's strides find them.
  void reshape(const Node& op, Array& y) {
    const Array& x = value_of(op.node(2200));
    const Extents x_strides = extents(op.node(2200), 903), y_strides = extents(op.node(2201), 903);
    std::map<std::size_t, double> memory;
    for_each(x.dims, [&](const Extents& at, std::size_t index) { memory[offset_of(x_strides, at)] = x.values[index]; });
    for_each(y.dims,
             [&](const Extents& at, std::size_t index) { y.values[index] = memory.at(offset_of(y_strides, at)); });
  }

  void combine(const Node& op, Array& y) {
    const Array& x = value_of(op.node(751));
    const int mode = op.node(750).get<int>(0);
    const Array* b = op.has(752) ? &value_of(op.node(752)) : nullptr;
    const Array* t = op.has(758) ? &value_of(op.node(758)) : nullptr;
    const auto axis = static_cast<std::size_t>(op.node(750).get<std::int64_t>(9));
    for_each(y.dims, [&](const Extents& at, std::size_t index) {
      const double other = b == nullptr ? 0 : b->values[index_in(b->dims, at)];
      if (mode == 501) {
        y.values[index] = static_cast<double>(at[axis]);
      } else if (t != nullptr) {
        const bool hides = fault_ == Fault::kHidesLastKey && at[3] == y.dims[3] - 1 && y.dims[3] > 1;
        y.values[index] = t->values[index] != 0 && !hides ? x.values[index] : other;
      } else {
        y.values[index] = pointwise(mode, x.values[index], other);
      }
    });
  }

  const std::map<std::int64_t, Bound>& bound_;
  Fault fault_;
  std::map<std::int64_t, Array> values_;
};

}  // namespace

void run(const Node& graph, const std::map<std::int64_t, Bound>& bound, Fault fault) {
  Interpreter interpreter(bound, fault);
  for (const auto& op : operations(graph)) interpreter.run(*op);
}

}  // namespace zerofleet::fake_cudnn
