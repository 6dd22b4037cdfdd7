#include "bench/written_tokens.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "core/error.h"

namespace zerofleet::bench {
namespace {

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void pad(std::string& bytes) { bytes.resize((bytes.size() + 7) / 8 * 8); }

}  // namespace

TokenTables cut_into_sequences(std::vector<std::uint32_t> tokens, std::int64_t sequence_length) {
  TokenTables tables;
  tables.sequence_length = sequence_length;
  const auto length = static_cast<std::size_t>(sequence_length);
  for (std::size_t begin = 0; begin + length < tokens.size(); begin += length) tables.sequences.push_back(begin);
  tables.tokens = std::move(tokens);
  return tables;
}

std::string bytes_of(const TokenTables& tables) {
  std::string bytes = "zftokens";
  append(bytes, std::uint32_t{1});
  append(bytes, tables.token_bytes);
  append(bytes, std::uint64_t{tables.tokens.size()});
  append(bytes, std::uint64_t{tables.sequences.size()});
  append(bytes, std::uint64_t{tables.documents.size()});
  append(bytes, static_cast<std::uint64_t>(tables.sequence_length));
  for (const std::uint32_t token : tables.tokens) {
    if (tables.token_bytes == 2) {
      append(bytes, static_cast<std::uint16_t>(token));
    } else {
      append(bytes, token);
    }
  }
  pad(bytes);
  for (const std::uint64_t offset : tables.sequences) append(bytes, offset);
  for (const std::uint64_t offset : tables.documents) append(bytes, offset);
  std::string mask((tables.tokens.size() + 7) / 8, '\0');
  for (std::size_t i = 0; i < tables.tokens.size(); ++i) {
    if (tables.counts.empty() || tables.counts[i]) mask[i / 8] = static_cast<char>(mask[i / 8] | (1 << (i % 8)));
  }
  bytes += mask;
  pad(bytes);
  return bytes;
}

TemporaryFile::TemporaryFile(const std::string& bytes) {
  path_ = (std::filesystem::temp_directory_path() / "zf-test-XXXXXX").string();
  const int fd = ::mkstemp(path_.data());
  require(fd >= 0, "internal", "no temporary file");
  ::close(fd);
  std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TemporaryFile::~TemporaryFile() { std::filesystem::remove(path_); }

}  // namespace zerofleet::bench
