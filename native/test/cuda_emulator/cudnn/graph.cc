#include "test/cuda_emulator/cudnn/graph.h"

#include <algorithm>
#include <set>

namespace zerofleet::fake_cudnn {
namespace {

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
  return first == out && (!op.has(752) || is_broadcast(dims_of(op.node(752)), out)) &&
         (!is_select || dims_of(op.node(758)) == out);
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

}  // namespace

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
    if (tensors.try_emplace(id_of(output), &output).first->second != &output || output.get<bool>(908))
      return kBadParameter;
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
      if (is_virtual(op->node(1522)) && op->node(1522).get<int>(901) != kFloat)
        of_heads += c[0] * c[1] * c[2] * c[3] * 2;
    }
  }
  return num_products > 2 ? scores + of_heads + 256 : 256;
}

}  // namespace zerofleet::fake_cudnn
