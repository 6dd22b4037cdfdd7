#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zerofleet::bench {

/// The content of a token file.
struct TokenTables {
  std::vector<std::uint32_t> tokens;
  std::int64_t sequence_length = 1;
  std::vector<std::uint64_t> sequences;
  std::vector<std::uint64_t> documents = {0};
  std::vector<bool> counts;  // empty: every token counts as a target
  std::uint32_t token_bytes = 2;
};

/// Cuts a document every `sequence_length` tokens; a rest that is too short is left out.
TokenTables cut_into_sequences(std::vector<std::uint32_t> tokens, std::int64_t sequence_length);

/// The bytes of a token file.
std::string bytes_of(const TokenTables& tables);

/// A file in the temporary directory, removed with this object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace zerofleet::bench
