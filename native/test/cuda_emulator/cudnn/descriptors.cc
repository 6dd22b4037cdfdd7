#include "test/cuda_emulator/cudnn/descriptors.h"

#include <algorithm>
#include <set>
#include <span>

#include "test/cuda_emulator/cudnn/graph.h"

namespace zerofleet::fake_cudnn {
namespace {

// Types of attributes, and bytes of a value.
constexpr int kHandle = 0, kDataType = 1, kBool = 2, kInt64 = 3, kPointer = 6, kHeuristicMode = 8, kPointwiseMode = 14,
              kDescriptor = 15, kReductionOperator = 18;
const std::map<int, std::size_t> kSizes{{kHandle, 8},        {kDataType, 4},   {kBool, 1},
                                        {kInt64, 8},         {kPointer, 8},    {kHeuristicMode, 4},
                                        {kPointwiseMode, 4}, {kDescriptor, 8}, {kReductionOperator, 4}};

struct Attribute {
  int type;
  std::int64_t min_count, max_count;
  bool required;
  std::set<int> kinds = {};  // of descriptors
};

Attribute one(int type) { return {type, 1, 1, true}; }
Attribute maybe(int type) { return {type, 1, 1, false}; }
Attribute one_of(int kind) { return {kDescriptor, 1, 1, true, {kind}}; }
Attribute maybe_tensor() { return {kDescriptor, 1, 1, false, {kTensor}}; }

/// The attributes of each kind that this project sets.
const std::map<int, std::map<int, Attribute>>& schema() {
  static const std::map<int, std::map<int, Attribute>> all{
      {kPointwise, {{0, one(kPointwiseMode)}, {1, one(kDataType)}, {9, maybe(kInt64)}}},
      {kMatmul, {{1500, one(kDataType)}}},
      {kReduction, {{1600, one(kReductionOperator)}, {1601, one(kDataType)}}},
      {kTensor,
       {{900, one(kInt64)},
        {901, one(kDataType)},
        {902, {kInt64, 4, 4, true}},
        {903, {kInt64, 4, 4, true}},
        {906, one(kInt64)},
        {907, maybe(kBool)},
        {908, maybe(kBool)}}},
      {kPointwiseOp,
       {{750, one_of(kPointwise)},
        {751, one_of(kTensor)},
        {752, maybe_tensor()},
        {753, one_of(kTensor)},
        {758, maybe_tensor()}}},
      {kMatmulOp, {{1520, one_of(kTensor)}, {1521, one_of(kTensor)}, {1522, one_of(kTensor)}, {1523, one_of(kMatmul)}}},
      {kReductionOp, {{1610, one_of(kTensor)}, {1611, one_of(kTensor)}, {1612, one_of(kReduction)}}},
      {kReshapeOp, {{2200, one_of(kTensor)}, {2201, one_of(kTensor)}}},
      {kGraph,
       {{800, one(kHandle)}, {801, {kDescriptor, 1, 1000, true, {kPointwiseOp, kMatmulOp, kReductionOp, kReshapeOp}}}}},
      {kHeuristics, {{200, one(kHeuristicMode)}, {201, one_of(kGraph)}}},
      {kEngine, {}},
      {kEngineConfig, {}},
      {kPlan, {{400, one(kHandle)}, {401, one_of(kEngineConfig)}}},
      {kPack, {{1000, {kInt64, 1, 1000, true}}, {1001, {kPointer, 1, 1000, true}}, {1003, one(kPointer)}}}};
  return all;
}

Status check_tensor(const Node& node) {
  const auto dims = node.all<std::int64_t>(902), strides = node.all<std::int64_t>(903);
  if (std::ranges::min(dims) < 1 || std::ranges::min(strides) < 1 || node.get<std::int64_t>(900) < 1)
    return kBadParameter;
  return node.get<bool>(907) && node.get<bool>(908) ? kBadParameter : kSuccess;
}

Status check_pointwise_operation(const Node& node) {
  const int mode = node.node(750).get<int>(0);
  const bool is_unary = mode == 13 || mode == 15 || mode == 501, is_select = mode == 601;
  const bool has_inputs = node.has(752) != is_unary && node.has(758) == is_select;
  return has_inputs && (mode == 501) == node.node(750).has(9) ? kSuccess : kBadParameter;
}

Status check_pack(const Node& node) {
  const auto ids = node.all<std::int64_t>(1000);
  const bool distinct = std::set<std::int64_t>(ids.begin(), ids.end()).size() == ids.size();
  return distinct && ids.size() == node.all<void*>(1001).size() ? kSuccess : kBadParameter;
}

}  // namespace

Descriptor* created(int kind) {
  if (!schema().contains(kind)) return nullptr;
  return std::make_unique<Descriptor>(Descriptor{std::make_shared<Node>(Node{kind, false, {}})}).release();
}

Status set(Descriptor& descriptor, int attribute, int type, std::int64_t count, const void* values) {
  Node& node = *descriptor.node;
  const auto& known = schema().at(node.kind);
  if (node.is_final) return kBadParameter;
  if (!known.contains(attribute)) return kNotSupported;
  const Attribute& about = known.at(attribute);
  if (type != about.type) return kWrongAttributeType;
  if (count < about.min_count || count > about.max_count || values == nullptr) return kBadParameter;
  Value value;
  if (type == kDescriptor) {
    for (const Descriptor* other :
         std::span(static_cast<Descriptor* const*>(values), static_cast<std::size_t>(count))) {
      if (!other->node->is_final) return kNotFinalized;
      if (!about.kinds.contains(other->node->kind)) return kWrongDescriptorType;
      value.nodes.push_back(other->node);
    }
  } else {
    value.bytes.resize(static_cast<std::size_t>(count) * kSizes.at(type));
    std::memcpy(value.bytes.data(), values, value.bytes.size());
  }
  node.values[attribute] = std::move(value);
  return kSuccess;
}

Status finalize(Descriptor& descriptor) {
  Node& node = *descriptor.node;
  if (node.kind == kEngineConfig || node.kind == kEngine) return kNotSupported;  // come from the heuristic
  for (const auto& [attribute, about] : schema().at(node.kind)) {
    if (about.required && !node.has(attribute)) return kBadParameter;
  }
  Status status = kSuccess;
  if (node.kind == kTensor) status = check_tensor(node);
  if (node.kind == kPointwiseOp) status = check_pointwise_operation(node);
  if (node.kind == kPack) status = check_pack(node);
  if (node.kind == kGraph) status = check_graph(node);
  node.is_final = status == kSuccess;
  return status;
}

}  // namespace zerofleet::fake_cudnn
