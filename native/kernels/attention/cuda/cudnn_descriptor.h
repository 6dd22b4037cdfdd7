#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/attention/cuda/cudnn_library.h"

namespace zerofleet::cudnn {

/// An object of cuDNN's backend API: made, given its attributes, finalized, and then used as an attribute of others.
class Descriptor {
 public:
  Descriptor(std::shared_ptr<const Library> library, DescriptorType type);

  void set(Attribute name, AttributeType type, std::int64_t count, const void* values);
  void set(Attribute name, std::int64_t value) { set(name, kInt64Type, 1, &value); }
  void set(Attribute name, std::span<const std::int64_t> values) {
    set(name, kInt64Type, std::ssize(values), values.data());
  }
  void set(Attribute name, bool value) { set(name, kBooleanType, 1, &value); }
  void set(Attribute name, DataType value) { set(name, kDataTypeType, 1, &value); }
  void set(Attribute name, PointwiseMode value) { set(name, kPointwiseModeType, 1, &value); }
  void set(Attribute name, ReductionOperator value) { set(name, kReductionOperatorType, 1, &value); }
  void set(Attribute name, HeuristicMode value) { set(name, kHeuristicModeType, 1, &value); }
  void set(Attribute name, Handle* handle) { set(name, kHandleType, 1, static_cast<const void*>(&handle)); }
  void set(Attribute name, std::span<void* const> values) {
    set(name, kPointerType, std::ssize(values), values.data());
  }
  /// Finalized ones.
  void set(Attribute name, const Descriptor& value);
  void set(Attribute name, const std::vector<Descriptor>& values);
  void finalize();

  std::int64_t get_int64(Attribute name) const;
  /// Fills the first of `values`, which are made and not finalized, and returns how many it has filled.
  std::size_t get(Attribute name, std::span<Descriptor> values) const;
  std::vector<int> get_notes(Attribute name) const;

  OpaqueDescriptor* get() const { return object_.get(); }

 private:
  std::shared_ptr<const Library> library_;
  std::unique_ptr<OpaqueDescriptor, Status (*)(OpaqueDescriptor*)> object_;
};

}  // namespace zerofleet::cudnn
