#include "test/cuda_emulator/fake_cudnn_graph.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "core/dtype.h"

namespace zerofleet::fake_cudnn {
namespace {

constexpr int kFloat = 0, kHalf = 2, kInt32 = 4, kBFloat16 = 9, kBool = 11;

std::int64_t id_of(const Node& tensor) { return tensor.get<std::int64_t>(906); }
bool is_virtual(const Node& tensor) { return tensor.get<bool>(907); }
Extents extents(const Node& tensor, int attribute) {
  const auto values = tensor.all<std::int64_t>(attribute);
  return {values[0], values[1], values[2], values[3]};
}
Extents dims_of(const Node& tensor) { return extents(tensor, 902); }

struct Ends {
  std::vector<int> inputs;
  int output;
};

/// Attributes with the tensors of an operation.
Ends ends_of(const Node& op) {
  if (op.kind == kMatmulOp) return {{1520, 1521}, 1522};
  if (op.kind == kReductionOp) return {{1610}, 1611};
  if (op.kind == kReshapeOp) return {{2200}, 2201};
  Ends ends{{751}, 753};
  for (const int attribute : {752, 758}) {
    if (op.has(attribute)) ends.inputs.push_back(attribute);
  }
  return ends;
}

bool is_broadcast(const Extents& small, const Extents& whole) {
  for (std::size_t i = 0; i < 4; ++i) {
    if (small[i] != 1 && small[i] != whole[i]) return false;
  }
  return true;
}

bool shapes_fit(const Node& op) {
  const Ends ends = ends_of(op);
  const Extents out = dims_of(op.node(ends.output)), first = dims_of(op.node(ends.inputs[0]));
  if (op.kind == kReshapeOp) {
    auto a = out, b = first;
    std::ranges::sort(a);
    std::ranges::sort(b);
    return a == b;
  }
  if (op.kind == kReductionOp) {
    for (std::size_t i = 0; i < 4; ++i) {
      if (first[i] % out[i] != 0) return false;
    }
    return true;
  }
  if (op.kind == kMatmulOp) {
    const Extents b = dims_of(op.node(1521));
    return out[0] == first[0] && out[0] == b[0] && out[1] == first[1] && out[1] % b[1] == 0 && out[2] == first[2] &&
           first[3] == b[2] && b[3] == out[3];
  }
  const bool is_select = op.has(758);
  return first == out && (!op.has(752) || is_broadcast(dims_of(op.node(752)), out)) && (!is_select || dims_of(op.node(758)) == out);
}

/// Types that cuDNN's compilers want: comparisons make booleans, which selections read.
bool types_fit(const Node& op) {
  if (op.kind != kPointwiseOp) return true;
  const int mode = op.node(750).get<int>(0), type = op.node(753).get<int>(901), compute = op.node(750).get<int>(1);
  const bool compares = mode == 302 || mode == 303;
  if (compares != (type == kBool) || compares != (compute == kBool)) return false;
  if ((mode == 501) != (type == kInt32)) return false;
  return mode != 601 || op.node(758).get<int>(901) == kBool;
}

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

std::size_t place_in(const Extents& dims, const Extents& at) {
  std::size_t place = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::int64_t own = dims[i] == 1 ? 0 : at[i];
    place = place * static_cast<std::size_t>(dims[i]) + static_cast<std::size_t>(own);
  }
  return place;
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
        sum += a.values[place_in(a.dims, {at[0], at[1], at[2], k})] * b.values[place_in(b.dims, {at[0], at[1] / group, k, at[3]})];
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
      double& value = y.values[place_in(y.dims, target)];
      value = is_maximum ? std::max(value, x.values[index]) : value + x.values[index];
    });
  }

  /// The elements of x in memory, as y's strides find them.
  void reshape(const Node& op, Array& y) {
    const Array& x = value_of(op.node(2200));
    const Extents x_strides = extents(op.node(2200), 903), y_strides = extents(op.node(2201), 903);
    std::map<std::size_t, double> memory;
    for_each(x.dims, [&](const Extents& at, std::size_t index) { memory[offset_of(x_strides, at)] = x.values[index]; });
    for_each(y.dims, [&](const Extents& at, std::size_t index) { y.values[index] = memory.at(offset_of(y_strides, at)); });
  }

  void combine(const Node& op, Array& y) {
    const Array& x = value_of(op.node(751));
    const int mode = op.node(750).get<int>(0);
    const Array* b = op.has(752) ? &value_of(op.node(752)) : nullptr;
    const Array* t = op.has(758) ? &value_of(op.node(758)) : nullptr;
    const auto axis = static_cast<std::size_t>(op.node(750).get<std::int64_t>(9));
    for_each(y.dims, [&](const Extents& at, std::size_t index) {
      const double other = b == nullptr ? 0 : b->values[place_in(b->dims, at)];
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

const std::vector<std::shared_ptr<const Node>>& operations(const Node& graph) { return graph.values.at(801).nodes; }

}  // namespace

Status check_graph(const Node& graph) {
  std::set<std::int64_t> known;
  std::map<std::int64_t, const Node*> tensors;
  for (const auto& op : operations(graph)) {
    const Ends ends = ends_of(*op);
    for (const int attribute : ends.inputs) {
      const Node& input = op->node(attribute);
      if (tensors.try_emplace(id_of(input), &input).first->second != &input) return kBadParameter;
      if (is_virtual(input) && !known.contains(id_of(input))) return kUnknownGraph;
    }
    const Node& output = op->node(ends.output);
    if (tensors.try_emplace(id_of(output), &output).first->second != &output || output.get<bool>(908)) return kBadParameter;
    if (!known.insert(id_of(output)).second) return kBadParameter;
    if (!shapes_fit(*op) || !types_fit(*op)) return kBadParameter;
  }
  return kSuccess;
}

std::map<std::int64_t, std::shared_ptr<const Node>> bound_tensors(const Node& graph) {
  std::map<std::int64_t, std::shared_ptr<const Node>> found;
  for (const auto& op : operations(graph)) {
    Ends ends = ends_of(*op);
    ends.inputs.push_back(ends.output);
    for (const int attribute : ends.inputs) {
      const auto& tensor = op->values.at(attribute).nodes.front();
      if (!is_virtual(*tensor)) found.emplace(id_of(*tensor), tensor);
    }
  }
  return found;
}

std::int64_t workspace_bytes(const Node& graph) {
  std::int64_t num_products = 0, scores = 0, of_heads = 0;
  for (const auto& op : operations(graph)) {
    if (op->kind == kMatmulOp) {
      const Extents c = dims_of(op->node(1522));
      ++num_products;
      if (c[2] == c[3]) scores = c[0] * c[1] * ((c[2] + 63) / 64 * 64) * ((c[3] + 63) / 64 * 64) * 2;
      if (is_virtual(op->node(1522)) && op->node(1522).get<int>(901) != kFloat) of_heads += c[0] * c[1] * c[2] * c[3] * 2;
    }
  }
  return num_products > 2 ? scores + of_heads + 256 : 256;
}

void run(const Node& graph, const std::map<std::int64_t, Bound>& bound, Fault fault) {
  Interpreter interpreter(bound, fault);
  for (const auto& op : operations(graph)) interpreter.run(*op);
}

}  // namespace zerofleet::fake_cudnn
