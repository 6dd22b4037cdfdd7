#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

// Descriptors of the cuDNN of tests. Numbers are those of cudnn_graph.h, written down once more, so that a wrong one in
// the core is found.
namespace zerofleet::fake_cudnn {

enum Status : int {
  kSuccess = 0,
  kBadParameter = 2000,
  kNotFinalized = 2004,
  kMisaligned = 2003,
  kWrongAttributeType = 2010,
  kWrongDescriptorType = 2012,
  kNotSupported = 3000,
  kUnknownGraph = 3001
};

enum Kind : int {
  kPointwise = 0,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kPointwiseOp = 13,
  kGraph = 15,
  kPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kMatmulOp = 19,
  kReduction = 21,
  kReductionOp = 22,
  kReshapeOp = 31
};

struct Node;

struct Value {
  std::vector<std::byte> bytes;
  std::vector<std::shared_ptr<const Node>> nodes;  // of attributes that are descriptors
};

/// Contents of a descriptor. Others that have it as an attribute keep it when the descriptor is destroyed.
struct Node {
  int kind;
  bool is_final = false;
  std::map<int, Value> values;

  bool has(int attribute) const { return values.contains(attribute); }
  template <class T>
  T get(int attribute) const {
    T value{};
    if (has(attribute)) std::memcpy(&value, values.at(attribute).bytes.data(), sizeof value);
    return value;
  }
  template <class T>
  std::vector<T> all(int attribute) const {
    const std::vector<std::byte>& bytes = values.at(attribute).bytes;
    std::vector<T> found(bytes.size() / sizeof(T));
    std::memcpy(found.data(), bytes.data(), bytes.size());
    return found;
  }
  const Node& node(int attribute) const { return *values.at(attribute).nodes.front(); }
  template <class T>
  void put(int attribute, T value) {
    values[attribute].bytes.resize(sizeof value);
    std::memcpy(values[attribute].bytes.data(), &value, sizeof value);
  }
};

struct Descriptor {
  std::shared_ptr<Node> node;
};

/// Checks type and count of an attribute that the descriptor has, and that descriptors in it are finalized and of the
/// kind that is expected.
Status set(Descriptor& descriptor, int attribute, int type, std::int64_t count, const void* values);
/// Checks that the required attributes are there, and what they say.
Status finalize(Descriptor& descriptor);
/// Creates nothing for a kind that is not known here.
Descriptor* created(int kind);

}  // namespace zerofleet::fake_cudnn
