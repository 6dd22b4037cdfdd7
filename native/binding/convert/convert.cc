#include "binding/convert/convert.h"

#include "core/error.h"

namespace zerofleet::binding {
namespace {

Napi::Value field(const Napi::Object& object, const char* name, bool (Napi::Value::*is_type)() const,
                  const char* type) {
  const Napi::Value value = object.Get(name);
  if (!(value.*is_type)()) {
    throw Napi::TypeError::New(object.Env(), std::string("field '") + name + "' must be a " + type);
  }
  return value;
}

}  // namespace

DType dtype_from_name(const std::string& name) {
  if (name == "fp32") return DType::kF32;
  if (name == "bf16") return DType::kBF16;
  if (name == "fp16") return DType::kF16;
  throw Error("invalid_argument", "no data type '" + name + "'");
}

double number_field(const Napi::Object& object, const char* name) {
  return field(object, name, &Napi::Value::IsNumber, "number").As<Napi::Number>().DoubleValue();
}

std::int64_t int_field(const Napi::Object& object, const char* name) {
  return field(object, name, &Napi::Value::IsNumber, "number").As<Napi::Number>().Int64Value();
}

std::string string_field(const Napi::Object& object, const char* name) {
  return field(object, name, &Napi::Value::IsString, "string").As<Napi::String>().Utf8Value();
}

bool bool_field(const Napi::Object& object, const char* name) {
  return field(object, name, &Napi::Value::IsBoolean, "boolean").As<Napi::Boolean>().Value();
}

Napi::Object object_field(const Napi::Object& object, const char* name) {
  return field(object, name, &Napi::Value::IsObject, "object").As<Napi::Object>();
}

Napi::Array array_field(const Napi::Object& object, const char* name) {
  return field(object, name, &Napi::Value::IsArray, "array").As<Napi::Array>();
}

std::optional<double> optional_number_field(const Napi::Object& object, const char* name) {
  if (object.Get(name).IsNull()) return std::nullopt;
  return number_field(object, name);
}

std::span<const std::byte> bytes_from(const Napi::Value& value) {
  require(value.IsTypedArray(), "invalid_argument", "expected a Uint8Array");
  const auto bytes = value.As<Napi::Uint8Array>();
  return std::as_bytes(std::span(bytes.Data(), bytes.ByteLength()));
}

std::span<const float> floats_from(const Napi::Value& value) {
  require(value.IsTypedArray(), "invalid_argument", "expected a Uint8Array");
  const auto bytes = value.As<Napi::Uint8Array>();
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.Data());
  require(bytes.ByteLength() % sizeof(float) == 0 && address % alignof(float) == 0, "invalid_argument",
          "expected whole, aligned 32-bit floats");
  return {reinterpret_cast<const float*>(bytes.Data()), bytes.ByteLength() / sizeof(float)};
}

}  // namespace zerofleet::binding
