#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "test/built_files.h"

namespace zerofleet::test {

/// A case of a file that test/golden/make_golden_kernels.py writes: words, each followed by values.
struct GoldenFacts {
  std::string name;
  std::map<std::string, std::vector<std::string>> words;

  std::vector<double> numbers(const std::string& word) const {
    std::vector<double> values;
    for (const std::string& text : words.at(word)) values.push_back(std::stod(text));
    return values;
  }
};

inline std::vector<GoldenFacts> read_golden_facts(const std::string& file_name) {
  std::ifstream file(std::filesystem::path(golden_dir()) / file_name);
  if (!file) throw std::runtime_error("cannot read " + file_name);
  std::vector<GoldenFacts> cases;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "case") {
      cases.emplace_back();
      words >> cases.back().name;
      continue;
    }
    for (std::string value; words >> value;) cases.back().words[word].push_back(value);
  }
  return cases;
}

}  // namespace zerofleet::test
