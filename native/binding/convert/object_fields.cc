#include "binding/convert/object_fields.h"

#include "core/error.h"

namespace zerofleet::binding {

Device device_from_name(const std::string& name) {
  if (name == "cpu") return {};
  require(name == "cuda", "invalid_argument", "device must be 'cpu' or 'cuda', not '" + name + "'");
  return {DeviceKind::kCuda, 0};
}

void ObjectFields::operator()(const char* name, OverrideChange& member) const {
  if (object_.Get(name).IsUndefined()) return;
  const std::optional<double> value = optional_number_field(object_, name);
  member = value ? OverrideChange::set(*value) : OverrideChange::take_back();
}

void ObjectFields::operator()(const char* name, std::map<std::string, OverrideChange>& member) const {
  if (object_.Get(name).IsUndefined()) return;
  const Napi::Object changes = object_field(object_, name);
  const ObjectFields fields(changes);
  const Napi::Array keys = changes.GetPropertyNames();
  for (std::uint32_t i = 0; i < keys.Length(); ++i) {
    const std::string key = keys.Get(i).As<Napi::String>();
    fields(key.c_str(), member[key]);
  }
}

}  // namespace zerofleet::binding
