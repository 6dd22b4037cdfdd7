#include "data/batch_source.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"

using zerofleet::BatchShape;
using zerofleet::BatchSource;
using zerofleet::LeafBatch;

namespace {

/// A token file that counts 0, 1, 2, …, so that a sequence's first token tells which sequence it is.
class CountingTokens {
 public:
  explicit CountingTokens(int num_tokens) {
    std::string pattern = (std::filesystem::temp_directory_path() / "zf-tokens-XXXXXX").string();
    const int fd = ::mkstemp(pattern.data());
    REQUIRE(fd >= 0);
    ::close(fd);
    path_ = pattern;
    std::ofstream out(path_, std::ios::binary);
    for (int i = 0; i < num_tokens; ++i) {
      const auto token = static_cast<std::uint16_t>(i);
      out.write(reinterpret_cast<const char*>(&token), sizeof token);
    }
  }
  ~CountingTokens() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string code_of(const std::string& path, const BatchShape& shape, std::int64_t vocab_size) {
  try {
    const BatchSource source(path, shape, vocab_size, 1);
    LeafBatch batch;
    source.load(0, 0, batch);
  } catch (const zerofleet::Error& error) {
    return error.code();
  }
  return "none";
}

}  // namespace

TEST_CASE("targets are the tokens shifted by one, and an epoch visits every sequence once") {
  const CountingTokens tokens(8 * 10 + 1);
  const BatchSource source(tokens.path(), BatchShape{4, 2, 8}, 1000, 5);
  REQUIRE(source.num_sequences() == 10);
  std::set<std::int32_t> starts;
  LeafBatch batch;
  int place = 0;
  for (int step = 0; place < 10; ++step) {
    for (int leaf = 0; leaf < 2; ++leaf) {
      source.load(step, leaf, batch);
      for (std::size_t row = 0; row < 2 && place < 10; ++row, ++place) {
        starts.insert(batch.tokens[row * 8]);
        for (std::size_t i = 0; i < 8; ++i) CHECK(batch.targets[row * 8 + i] == batch.tokens[row * 8 + i] + 1);
      }
    }
  }
  CHECK(starts.size() == 10);
}

TEST_CASE("a leaf does not depend on which leaves were read before") {
  const CountingTokens tokens(500);
  const BatchSource source(tokens.path(), BatchShape{8, 2, 8}, 1000, 5);
  LeafBatch first, again, other;
  source.load(17, 3, first);
  source.load(2, 1, other);
  source.load(17, 3, again);
  CHECK(first.tokens == again.tokens);
  CHECK(first.tokens != other.tokens);
}

TEST_CASE("broken data gives typed errors") {
  const CountingTokens tokens(100);
  CHECK(code_of(tokens.path(), BatchShape{4, 2, 100}, 1000) == "sequence_longer_than_data");
  CHECK(code_of(tokens.path(), BatchShape{4, 2, 99}, 1000) == "none");
  CHECK(code_of(tokens.path(), BatchShape{4, 3, 8}, 1000) == "micro_batch_not_divisor");
  CHECK(code_of(tokens.path(), BatchShape{4, 2, 99}, 50) == "token_out_of_vocab");
  CHECK(code_of(tokens.path() + ".missing", BatchShape{4, 2, 8}, 50) == "token_file_unreadable");
  CHECK(code_of(CountingTokens(0).path(), BatchShape{4, 2, 8}, 50) == "token_file_invalid");
}
