#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "binding/convert/choice.h"
#include "binding/convert/convert.h"
#include "core/device.h"
#include "core/dtype.h"
#include "train/overrides.h"

namespace zerofleet::binding {

/// "cpu", or "cuda" for the first device that this process sees (CUDA_VISIBLE_DEVICES). Throws
/// Error{"invalid_argument"} for anything else.
Device device_from_name(const std::string& name);

class ObjectFields;

/// A struct with a field table: `template <class Fields> void fields(Fields& field)` calls `field("name", member)` for
/// each field. An enum has a third argument: the names of its values, or a function that converts a name.
template <class T>
concept HasFields = requires(T& object, ObjectFields& fields) { object.fields(fields); };

/// The struct that an object of native/js describes, by the struct's field table. Throws a TypeError for a missing or
/// mistyped field and Error{"invalid_argument"} for an unknown name.
template <HasFields T>
T from_object(const Napi::Object& object);

/// Reads the fields of one JavaScript object into the members of a struct.
class ObjectFields {
 public:
  explicit ObjectFields(const Napi::Object& object) : object_(object) {}

  void operator()(const char* name, bool& member) const { member = bool_field(object_, name); }
  void operator()(const char* name, std::string& member) const { member = string_field(object_, name); }
  void operator()(const char* name, DType& member) const { member = dtype_from_name(string_field(object_, name)); }
  void operator()(const char* name, Device& member) const { member = device_from_name(string_field(object_, name)); }
  template <std::floating_point T>
  void operator()(const char* name, T& member) const {
    member = static_cast<T>(number_field(object_, name));
  }
  template <std::integral T>
  void operator()(const char* name, T& member) const {
    member = static_cast<T>(int_field(object_, name));
  }
  template <HasFields T>
  void operator()(const char* name, T& member) const {
    member = from_object<T>(object_field(object_, name));
  }
  /// An absent field is no change, null takes the value back.
  void operator()(const char* name, OverrideChange& member) const;
  void operator()(const char* name, std::map<std::string, OverrideChange>& member) const;
  /// Null is nullopt.
  template <class T>
  void operator()(const char* name, std::optional<T>& member) const {
    if (!is_null(name, member)) (*this)(name, member.emplace());
  }
  template <class T>
  void operator()(const char* name, std::vector<T>& member) const {
    member = elements<T>(array_field(object_, name));
  }

  template <class T>
    requires std::is_enum_v<T>
  void operator()(const char* name, T& member,
                  std::initializer_list<std::pair<const char*, std::type_identity_t<T>>> names) const {
    member = choice<T>(object_, name, names);
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& member,
                  std::initializer_list<std::pair<const char*, std::type_identity_t<T>>> names) const {
    if (!is_null(name, member)) member = choice<T>(object_, name, names);
  }
  template <class T, std::invocable<std::string> FromName>
  void operator()(const char* name, T& member, FromName from_name) const {
    member = from_name(string_field(object_, name));
  }

  /// For a field that only some types of its section have: an absent one leaves the member's initial value.
  template <class T, class... Names>
  void if_present(const char* name, T& member, Names... names) const {
    if (!object_.Get(name).IsUndefined()) (*this)(name, member, names...);
  }
  template <class T>
  void if_present(const char* name, T& member,
                  std::initializer_list<std::pair<const char*, std::type_identity_t<T>>> names) const {
    if (!object_.Get(name).IsUndefined()) (*this)(name, member, names);
  }

  /// The fields of an inner object.
  ObjectFields in(const char* name) const { return ObjectFields(object_field(object_, name)); }

 private:
  template <class T>
  bool is_null(const char* name, std::optional<T>& member) const {
    member.reset();
    return object_.Get(name).IsNull();
  }
  template <class T>
  static std::vector<T> elements(const Napi::Array& list) {
    std::vector<T> result;
    for (std::uint32_t i = 0; i < list.Length(); ++i) result.push_back(element<T>(list.Get(i)));
    return result;
  }
  template <class T>
  static T element(const Napi::Value& value) {
    if constexpr (HasFields<T>) {
      return from_object<T>(value.As<Napi::Object>());
    } else if constexpr (std::same_as<T, std::vector<std::string>>) {
      return elements<std::string>(value.As<Napi::Array>());
    } else if constexpr (std::same_as<T, std::string>) {
      return value.As<Napi::String>().Utf8Value();
    } else if constexpr (std::floating_point<T>) {
      return static_cast<T>(value.As<Napi::Number>().DoubleValue());
    } else {
      static_assert(std::same_as<T, std::int64_t>);
      return value.As<Napi::Number>().Int64Value();
    }
  }

  Napi::Object object_;
};

template <HasFields T>
T from_object(const Napi::Object& object) {
  T result;
  ObjectFields fields(object);
  result.fields(fields);
  return result;
}

}  // namespace zerofleet::binding
