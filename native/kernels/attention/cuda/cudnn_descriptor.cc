#include "kernels/attention/cuda/cudnn_descriptor.h"

#include <algorithm>

namespace zerofleet::cudnn {
namespace {

OpaqueDescriptor* created(const Library& library, DescriptorType type) {
  OpaqueDescriptor* object = nullptr;
  check(library, library.descriptor_create(type, &object), "cudnnBackendCreateDescriptor");
  return object;
}

}  // namespace

Descriptor::Descriptor(std::shared_ptr<const Library> library, DescriptorType type)
    : library_(std::move(library)), object_(created(*library_, type), library_->descriptor_destroy) {}

void Descriptor::set(Attribute name, AttributeType type, std::int64_t count, const void* values) {
  check(*library_, library_->descriptor_set(get(), name, type, count, values), "cudnnBackendSetAttribute");
}

void Descriptor::set(Attribute name, const Descriptor& value) {
  const OpaqueDescriptor* object = value.get();
  set(name, kDescriptorType, 1, static_cast<const void*>(&object));
}

void Descriptor::set(Attribute name, const std::vector<Descriptor>& values) {
  std::vector<const OpaqueDescriptor*> objects;
  for (const Descriptor& value : values) objects.push_back(value.get());
  set(name, kDescriptorType, std::ssize(objects), static_cast<const void*>(objects.data()));
}

void Descriptor::finalize() { check(*library_, library_->descriptor_finalize(get()), "cudnnBackendFinalize"); }

std::int64_t Descriptor::get_int64(Attribute name) const {
  std::int64_t value = 0, count = 0;
  check(*library_, library_->descriptor_get(get(), name, kInt64Type, 1, &count, &value), "cudnnBackendGetAttribute");
  return value;
}

std::size_t Descriptor::get(Attribute name, std::span<Descriptor> values) const {
  std::vector<OpaqueDescriptor*> objects;
  for (const Descriptor& value : values) objects.push_back(value.get());
  std::int64_t count = 0;
  const Status status = library_->descriptor_get(get(), name, kDescriptorType, std::ssize(objects), &count,
                                                 static_cast<void*>(objects.data()));
  check(*library_, status, "cudnnBackendGetAttribute");
  return static_cast<std::size_t>(count);
}

std::vector<int> Descriptor::get_notes(Attribute name) const {
  std::vector<int> notes(kNumNotes);
  std::int64_t count = 0;
  check(*library_, library_->descriptor_get(get(), name, kNumericalNoteType, kNumNotes, &count, notes.data()),
        "cudnnBackendGetAttribute");
  notes.resize(static_cast<std::size_t>(std::min<std::int64_t>(count, kNumNotes)));
  return notes;
}

}  // namespace zerofleet::cudnn
