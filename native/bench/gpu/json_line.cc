#include "bench/gpu/json_line.h"

#include <cmath>
#include <cstdio>

namespace zerofleet::bench {
namespace {

std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

void append_quoted(std::string& text, std::string_view value) {
  text += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  text += '"';
}

template <class Value, class Append>
std::string list_of(const std::vector<Value>& values, const Append& append) {
  std::string text(1, '[');
  for (const Value& value : values) {
    if (text.size() > 1) text += ',';
    append(text, value);
  }
  text += ']';
  return text;
}

}  // namespace

JsonLine& JsonLine::add(std::string_view name, std::string_view value) {
  std::string text;
  append_quoted(text, value);
  return put(name, text);
}

JsonLine& JsonLine::add(std::string_view name, bool value) { return put(name, value ? "true" : "false"); }

JsonLine& JsonLine::add(std::string_view name, double value) { return put(name, number(value)); }

JsonLine& JsonLine::add(std::string_view name, const std::vector<double>& values) {
  return put(name, list_of(values, [](std::string& text, double value) { text += number(value); }));
}

JsonLine& JsonLine::add(std::string_view name, const std::vector<std::string>& values) {
  return put(name, list_of(values, append_quoted));
}

void JsonLine::print() const {
  std::printf("{%s}\n", fields_.c_str());
  std::fflush(stdout);
}

JsonLine& JsonLine::put(std::string_view name, std::string_view json) {
  if (!fields_.empty()) fields_ += ',';
  append_quoted(fields_, name);
  fields_ += ':';
  fields_ += json;
  return *this;
}

}  // namespace zerofleet::bench
