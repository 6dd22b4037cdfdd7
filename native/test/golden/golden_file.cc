#include "test/golden/golden_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "core/dtype.h"
#include "test/built_files.h"

namespace zerofleet::test {
namespace {

std::ifstream open(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return file;
}

template <class T>
T element(const std::string& data, std::size_t offset) {
  T value;
  std::memcpy(&value, data.data() + offset, sizeof value);
  return value;
}

}  // namespace

GoldenFile::GoldenFile(const std::string& name) : name_(name) {
  const auto part = [&](const char* ending) { return std::filesystem::path(golden_dir()) / (name + ending); };
  std::ifstream index = open(part(".txt"));
  for (std::string kind, key; index >> kind >> key;) {
    if (kind == "number") {
      index >> numbers_[key];
    } else if (kind == "word") {
      index >> words_[key];
    } else {
      Entry& found = tensors_[key];
      index >> found.type >> found.offset >> found.count;
    }
  }
  std::ostringstream bytes;
  bytes << open(part(".bin")).rdbuf();
  data_ = bytes.str();
}

double GoldenFile::number(const std::string& key) const {
  const auto found = numbers_.find(key);
  if (found == numbers_.end()) throw std::runtime_error(name_ + " has no number " + key);
  return found->second;
}

const GoldenFile::Entry& GoldenFile::entry(const std::string& key) const {
  const auto found = tensors_.find(key);
  if (found == tensors_.end()) throw std::runtime_error(name_ + " has no tensor " + key);
  return found->second;
}

std::vector<float> GoldenFile::floats(const std::string& key) const {
  const Entry& found = entry(key);
  std::vector<float> values(found.count);
  for (std::size_t i = 0; i < found.count; ++i) {
    values[i] = found.type == "bf16" ? to_float(element<bf16>(data_, found.offset + 2 * i))
                                     : element<float>(data_, found.offset + 4 * i);
  }
  return values;
}

std::vector<std::int32_t> GoldenFile::integers(const std::string& key) const {
  const Entry& found = entry(key);
  std::vector<std::int32_t> values(found.count);
  for (std::size_t i = 0; i < found.count; ++i) {
    values[i] = found.type == "u16" ? element<std::uint16_t>(data_, found.offset + 2 * i)
                                    : element<std::int32_t>(data_, found.offset + 4 * i);
  }
  return values;
}

template <class T>
concept HasFields = requires(T& object, GoldenFields& fields) { object.fields(fields); };

/// Sets the members of a struct with a field table to what the file says. A field that it does not have is left.
class GoldenFields {
 public:
  GoldenFields(const GoldenFile& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

  template <class T>
    requires std::is_arithmetic_v<T>
  void operator()(const std::string& name, T& member) const {
    if (const auto found = file_.numbers_.find(prefix_ + name); found != file_.numbers_.end())
      member = static_cast<T>(found->second);
  }
  void operator()(const std::string& name, std::string& member) const {
    if (const auto found = file_.words_.find(prefix_ + name); found != file_.words_.end()) member = found->second;
  }
  void operator()(const std::string& name, std::vector<std::string>& member) const {
    std::string words;
    (*this)(name, words);
    std::istringstream list(words);
    for (std::string word; std::getline(list, word, ',');) member.push_back(word);
  }
  void operator()(const std::string& name, std::vector<std::int64_t>& member) const {
    if (!file_.tensors_.contains(prefix_ + name)) return;
    const std::vector<std::int32_t> values = file_.integers(prefix_ + name);
    member.assign(values.begin(), values.end());
  }
  void operator()(const std::string& name, std::vector<double>& member) const {
    if (!file_.tensors_.contains(prefix_ + name)) return;
    const std::vector<float> values = file_.floats(prefix_ + name);
    member.assign(values.begin(), values.end());
  }
  template <HasFields T>
  void operator()(const std::string& name, T& member) const {
    GoldenFields inner(file_, prefix_ + name + ".");
    member.fields(inner);
  }
  /// A section is there if one of its numbers is.
  template <HasFields T>
  void operator()(const std::string& name, std::optional<T>& member) const {
    const std::string section = prefix_ + name + ".";
    const auto next = file_.numbers_.lower_bound(section);
    if (next != file_.numbers_.end() && next->first.starts_with(section)) (*this)(name, member.emplace());
  }
  template <class T>
    requires std::is_enum_v<T>
  void operator()(const std::string& name, T& member,
                  std::initializer_list<std::pair<const char*, std::type_identity_t<T>>> names) const {
    std::string word;
    (*this)(name, word);
    for (const auto& [value_name, value] : names) {
      if (word == value_name) member = value;
    }
  }
  template <class T>
  void operator()(const std::string& name, std::optional<T>& member,
                  std::initializer_list<std::pair<const char*, std::type_identity_t<T>>> names) const {
    if (file_.words_.contains(prefix_ + name)) (*this)(name, member.emplace(), names);
  }

 private:
  const GoldenFile& file_;
  std::string prefix_;
};

ModelConfig GoldenFile::model_config() const {
  ModelConfig config = trained_config();
  config.embedding_dropout = config.attention_dropout = config.residual_dropout = 0;
  return config;
}

ModelConfig GoldenFile::trained_config() const {
  ModelConfig config;
  GoldenFields fields(*this, "");
  config.fields(fields);
  return config;
}

std::vector<std::string> golden_files_with(const std::vector<std::string>& numbers) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_dir())) {
    if (entry.path().extension() != ".bin") continue;
    const GoldenFile file(entry.path().stem().string());
    if (std::ranges::all_of(numbers, [&](const std::string& key) { return file.has_number(key); }))
      names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace zerofleet::test
