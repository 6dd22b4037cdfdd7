#pragma once

#include <napi.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"

namespace zerofleet::binding {

/// Readers of plain JavaScript objects. A missing or mistyped field throws a TypeError that names the field. The typed
/// facade in native/js is the only caller, so this guards against drift between the two, not against users.
double number_field(const Napi::Object& object, const char* name);
std::int64_t int_field(const Napi::Object& object, const char* name);
std::string string_field(const Napi::Object& object, const char* name);
bool bool_field(const Napi::Object& object, const char* name);
Napi::Object object_field(const Napi::Object& object, const char* name);

Napi::Array array_field(const Napi::Object& object, const char* name);
/// Null is nullopt; a missing field is an error as ever.
std::optional<double> optional_number_field(const Napi::Object& object, const char* name);

/// "fp32", "bf16" or "fp16". Throws Error{"invalid_argument"} for anything else.
DType dtype_from_name(const std::string& name);

/// The elements of an Int32Array or a Float32Array. Throws Error{"invalid_argument"} for another value.
template <class T>
std::vector<T> numbers_from(const Napi::Value& value) {
  constexpr bool is_whole = std::is_same_v<T, std::int32_t>;
  static_assert(is_whole || std::is_same_v<T, float>);
  require(value.IsTypedArray() &&
              value.As<Napi::TypedArray>().TypedArrayType() == (is_whole ? napi_int32_array : napi_float32_array),
          "invalid_argument", is_whole ? "expected an Int32Array" : "expected a Float32Array");
  const auto array = value.As<Napi::TypedArrayOf<T>>();
  return {array.Data(), array.Data() + array.ElementLength()};
}

/// An array of these.
template <class T>
Napi::Value array_of(Napi::Env env, const std::vector<T>& numbers) {
  auto array = Napi::TypedArrayOf<T>::New(env, numbers.size());
  std::copy(numbers.begin(), numbers.end(), array.Data());
  return array;
}

std::span<const std::byte> bytes_from(const Napi::Value& value);

/// The bytes of a Uint8Array as floats. Throws Error{"invalid_argument"} unless it holds whole, aligned floats.
std::span<const float> floats_from(const Napi::Value& value);

}  // namespace zerofleet::binding
