#include "data/token_file.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/system/touch_pages.h"
#include "data/sequence_reader.h"
#include "test/data/written_tokens.h"
#include "test/error_code.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

// Places of the header's fields.
constexpr std::size_t kVersion = 8, kTokenBytes = 12, kNumTokens = 16, kNumSequences = 24, kNumDocuments = 32,
                      kSequenceLength = 40;

TokenTables tables() {
  TokenTables tables = cut_into_sequences({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 4);
  tables.documents = {0, 5};
  return tables;
}

std::string code_of_file(const std::string& bytes) {
  const TemporaryFile file(bytes);
  try {
    const TokenFile tokens(file.path());
  } catch (const Error& error) {
    return error.code();
  }
  return "none";
}

template <class T>
std::string with_field(std::size_t position, T value) {
  std::string bytes = bytes_of(tables());
  std::memcpy(bytes.data() + position, &value, sizeof value);
  return bytes;
}

std::string with(const std::function<void(TokenTables&)>& change) {
  TokenTables changed = tables();
  change(changed);
  return bytes_of(changed);
}

}  // namespace

TEST_CASE("a token file is read as it was written") {
  for (const std::uint32_t token_bytes : {2U, 4U}) {
    TokenTables written = tables();
    written.token_bytes = token_bytes;
    written.counts.assign(13, true);
    written.counts[9] = false;
    const TemporaryFile file(bytes_of(written));
    const TokenFile tokens(file.path());
    REQUIRE(tokens.num_tokens() == 13);
    CHECK(tokens.sequence_length() == 4);
    CHECK(std::vector(tokens.sequences().begin(), tokens.sequences().end()) == written.sequences);
    CHECK(std::vector(tokens.documents().begin(), tokens.documents().end()) == written.documents);
    for (std::int64_t position = 0; position < 13; ++position) {
      CHECK(tokens.token(position) == position);
      CHECK(tokens.counts_as_target(position) == (position != 9));
    }
  }
}

TEST_CASE("a file cut anywhere, or with bytes behind its end, is refused") {
  const std::string bytes = bytes_of(tables());
  REQUIRE(code_of_file(bytes) == "none");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK(code_of_file(bytes.substr(0, size)) == "token_file_invalid");
  }
  CHECK(code_of_file(bytes + std::string(8, '\0')) == "token_file_invalid");
}

TEST_CASE("headers that lie are refused, sizes beyond all memory included") {
  CHECK(code_of_file(with_field(0, 'x')) == "token_file_invalid");
  CHECK(code_of_file(with_field(kVersion, std::uint32_t{2})) == "token_file_invalid");
  CHECK(code_of_file(with_field(kTokenBytes, std::uint32_t{3})) == "token_file_invalid");
  CHECK(code_of_file(with_field(kSequenceLength, std::uint64_t{0})) == "token_file_invalid");
  for (const std::size_t field : {kNumTokens, kNumSequences, kNumDocuments}) {
    for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1000}, std::uint64_t{1} << 61, ~std::uint64_t{0},
                                      (~std::uint64_t{0}) / 8 + 1}) {
      CAPTURE(field);
      CAPTURE(count);
      CHECK(code_of_file(with_field(field, count)) == "token_file_invalid");
    }
  }
}

TEST_CASE("tables that are out of order or point outside are refused") {
  CHECK(code_of_file(with([](TokenTables& t) { t.sequences.clear(); })) == "token_file_invalid");
  CHECK(code_of_file(with([](TokenTables& t) { t.sequences = {0, 13}; })) == "token_file_invalid");
  CHECK(code_of_file(with([](TokenTables& t) { t.sequences = {4, 0}; })) == "token_file_invalid");
  CHECK(code_of_file(with([](TokenTables& t) { t.sequences = {4, 4}; })) == "token_file_invalid");
  CHECK(code_of_file(with([](TokenTables& t) { t.documents.clear(); })) == "token_file_invalid");
  CHECK(code_of_file(with([](TokenTables& t) { t.documents = {1, 5}; })) == "token_file_invalid");
  CHECK(code_of_file(with([](TokenTables& t) { t.documents = {0, 13}; })) == "token_file_invalid");
  CHECK(code_of_file(with([](TokenTables& t) { t.documents = {0, 7, 6}; })) == "token_file_invalid");
}

TEST_CASE("a file that is cut short while it is mapped is a typed error where it is read, and its rest is still read") {
  const TokenTables written = cut_into_sequences(std::vector<std::uint32_t>(40001, 3), 100);
  const std::string bytes = bytes_of(written);
  const TemporaryFile file(bytes);
  const SequenceReader reader({file.path()}, 100, 1000);
  LeafBatch batch;
  reader.resize(batch, 1);
  REQUIRE(::truncate(file.path().c_str(), static_cast<off_t>(page_bytes())) == 0);
  const std::int64_t last = reader.num_sequences() - 1;
  for (int repeat = 0; repeat < 3; ++repeat) {
    CHECK(code_of([&] { reader.read(last, 0, batch); }) == "token_file_unreadable");
    CHECK(code_of([&] { reader.num_targets(last); }) == "token_file_unreadable");
  }
  std::ofstream(file.path(), std::ios::binary) << bytes;  // as it was
  reader.read(last, 0, batch);
  CHECK(batch.tokens == std::vector<std::int32_t>(100, 3));
}
