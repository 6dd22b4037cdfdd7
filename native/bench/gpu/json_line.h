#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace zerofleet::bench {

/// A JSON object on one line. Fields keep the order in which they were added; "part" is the first. A number that is not
/// finite becomes null.
class JsonLine {
 public:
  explicit JsonLine(std::string_view part) { add("part", part); }

  JsonLine& add(std::string_view name, std::string_view value);
  JsonLine& add(std::string_view name, const char* value) { return add(name, std::string_view(value)); }
  JsonLine& add(std::string_view name, bool value);
  JsonLine& add(std::string_view name, std::integral auto value) { return put(name, std::to_string(value)); }
  JsonLine& add(std::string_view name, double value);
  JsonLine& add(std::string_view name, const std::vector<double>& values);
  JsonLine& add(std::string_view name, const std::vector<std::string>& values);

  /// Prints immediately, so that a reader has the line even if the next part fails.
  void print() const;

 private:
  JsonLine& put(std::string_view name, std::string_view json);

  std::string fields_;
};

}  // namespace zerofleet::bench
