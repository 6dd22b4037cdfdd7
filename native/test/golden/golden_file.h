#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/config/model_config.h"

namespace zerofleet::test {

class GoldenFields;

/// A golden file as make_golden_model.py, make_golden_families.py and make_golden_adapters.py write it: NAME.txt
/// (index) and NAME.bin (tensors). Throws std::runtime_error for a file or key that is missing.
class GoldenFile {
 public:
  explicit GoldenFile(const std::string& name);

  bool has_number(const std::string& key) const { return numbers_.contains(key); }
  double number(const std::string& key) const;
  std::int64_t integer(const std::string& key) const { return static_cast<std::int64_t>(number(key)); }
  /// A tensor of f32 or bf16 elements, widened.
  std::vector<float> floats(const std::string& key) const;
  /// A tensor of i32 or u16 elements.
  std::vector<std::int32_t> integers(const std::string& key) const;
  /// The architecture, by the names of its fields; Llama's where the file does not say.
  ModelConfig trained_config() const;
  /// The architecture without dropout: the results are those of evaluation.
  ModelConfig model_config() const;

 private:
  friend class GoldenFields;
  struct Entry {
    std::string type;
    std::size_t offset = 0;
    std::size_t count = 0;
  };
  const Entry& entry(const std::string& key) const;

  std::string name_;
  std::map<std::string, double> numbers_;
  std::map<std::string, std::string> words_;
  std::map<std::string, Entry> tensors_;
  std::string data_;
};

/// Names of the golden files with all of these numbers, sorted.
std::vector<std::string> golden_files_with(const std::vector<std::string>& numbers);

}  // namespace zerofleet::test
