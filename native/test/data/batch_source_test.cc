#include "data/batch_source.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "test/data/written_tokens.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// Tokens that count 0, 1, 2, …, so that a sequence's first token identifies the sequence.
TokenTables counting(std::uint32_t num_tokens, std::int64_t sequence_length) {
  std::vector<std::uint32_t> tokens(num_tokens);
  std::iota(tokens.begin(), tokens.end(), 0U);
  return cut_into_sequences(std::move(tokens), sequence_length);
}

std::string code_of_batches(const std::string& path, const BatchShape& shape, std::int64_t vocab_size) {
  try {
    const BatchSource source({{path}}, shape, vocab_size, 1);
    LeafBatch batch;
    source.load(0, 0, batch);
  } catch (const Error& error) {
    return error.code();
  }
  return "none";
}

LeafBatch sequence_of(const TokenTables& tables, std::int64_t sequence) {
  const TemporaryFile file(bytes_of(tables));
  const SequenceReader reader({file.path()}, tables.sequence_length, 1 << 20);
  LeafBatch batch;
  reader.resize(batch, 1);
  reader.read(sequence, 0, batch);
  return batch;
}

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("targets are the tokens shifted by one, and an epoch visits every sequence once") {
  const TemporaryFile tokens(bytes_of(counting(8 * 10 + 1, 8)));
  const BatchSource source({{tokens.path()}}, BatchShape{4, 2, 8}, 1000, 5);
  REQUIRE(source.sequences().num_sequences() == 10);
  std::set<std::int32_t> starts;
  LeafBatch batch;
  int position = 0;
  for (int step = 0; position < 10; ++step) {
    for (int leaf = 0; leaf < 2; ++leaf) {
      source.load(step, leaf, batch);
      for (std::size_t row = 0; row < 2 && position < 10; ++row, ++position) {
        starts.insert(batch.tokens[row * 8]);
        for (std::size_t i = 0; i < 8; ++i) {
          CHECK(batch.targets[row * 8 + i] == batch.tokens[row * 8 + i] + 1);
          CHECK(batch.document_starts[row * 8 + i] == 0);
        }
      }
    }
  }
  CHECK(starts.size() == 10);
}

TEST_CASE("several files are read in the order of their mixture") {
  const TemporaryFile one(bytes_of(counting(8 * 5 + 1, 8)));
  TokenTables tables = counting(16 * 8, 8);
  for (auto& token : tables.tokens) token += 500;
  tables.token_bytes = 4;
  const TemporaryFile other(bytes_of(tables));
  for (const std::int64_t unit_sequences : {1, 5}) {
    // Five sequences are a unit of the first file; the second one has 15.
    const BatchSource source({{one.path(), 2}, {other.path(), 1}}, BatchShape{3, 1, 8}, 1000, 5, unit_sequences);
    CHECK(source.sequences().num_sequences() == 20);
    const MixtureOrder order(5, {{5 / unit_sequences, 2}, {15 / unit_sequences, 1}});
    LeafBatch batch;
    for (std::int64_t position = 0; position < 60; ++position) {
      source.load(position / 3, position % 3, batch);
      for (std::int64_t row = 0; row < unit_sequences; ++row) {
        const std::int64_t sequence = order.at(position) * unit_sequences + row;
        CHECK(batch.sequences[static_cast<std::size_t>(row)] == sequence);
        const std::int64_t first_token = sequence < 5 ? sequence * 8 : 500 + (sequence - 5) * 8;
        CHECK(batch.tokens[static_cast<std::size_t>(row * 8)] == first_token);
        CHECK(batch.targets[static_cast<std::size_t>(row * 8)] == first_token + 1);
      }
    }
  }
}

TEST_CASE("the targets of a step are those of its leaves, wherever documents, masks and padding leave them out") {
  TokenTables tables = counting(60, 8);
  tables.sequences = {0, 8, 13, 21, 29, 36, 44, 52};
  tables.documents = {0, 3, 13, 40};
  for (int i = 0; i < 60; ++i) tables.counts.push_back(i % 5 != 1);
  const TemporaryFile tokens(bytes_of(tables));
  const BatchSource source({{tokens.path()}}, BatchShape{4, 2, 8}, 1000, 5);
  LeafBatch batch;
  for (int step = 0; step < 5; ++step) {
    std::int64_t expected = 0;
    for (int leaf = 0; leaf < 2; ++leaf) {
      source.load(step, leaf, batch);
      expected += std::ranges::count_if(batch.targets, [](std::int32_t target) { return target != kIgnoredTarget; });
    }
    CHECK(source.num_targets(step) == expected);
  }
}

TEST_CASE("a leaf does not depend on which leaves were read before") {
  const TemporaryFile tokens(bytes_of(counting(500, 8)));
  const BatchSource source({{tokens.path()}}, BatchShape{8, 2, 8}, 1000, 5);
  LeafBatch first, again, other;
  source.load(17, 3, first);
  source.load(2, 1, other);
  source.load(17, 3, again);
  CHECK(first.tokens == again.tokens);
  CHECK(first.tokens != other.tokens);
}

TEST_CASE("tokens of four bytes go beyond 65536") {
  TokenTables tables = counting(5, 4);
  tables.token_bytes = 4;
  tables.tokens[2] = 151645;
  const LeafBatch batch = sequence_of(tables, 0);
  CHECK(batch.tokens == Ids{0, 1, 151645, 3});
  CHECK(batch.targets == Ids{1, 151645, 3, 4});
}

TEST_CASE("no target begins another document, and every token knows where its document starts") {
  TokenTables tables = counting(17, 8);
  tables.documents = {0, 3, 8, 10};
  const LeafBatch first = sequence_of(tables, 0), second = sequence_of(tables, 1);
  CHECK(first.targets == Ids{1, 2, -100, 4, 5, 6, 7, -100});
  CHECK(first.document_starts == Ids{0, 0, 0, 3, 3, 3, 3, 3});
  CHECK(second.tokens == Ids{8, 9, 10, 11, 12, 13, 14, 15});
  CHECK(second.targets == Ids{9, -100, 11, 12, 13, 14, 15, 16});
  CHECK(second.document_starts == Ids{0, 0, 2, 2, 2, 2, 2, 2});
}

TEST_CASE("a document that goes on in the next sequence starts there at position 0") {
  TokenTables tables = counting(9, 4);
  tables.documents = {0, 2};
  CHECK(sequence_of(tables, 0).document_starts == Ids{0, 0, 2, 2});
  CHECK(sequence_of(tables, 1).document_starts == Ids{0, 0, 0, 0});
  CHECK(sequence_of(tables, 1).targets == Ids{5, 6, 7, 8});
}

TEST_CASE("tokens that the mask leaves out are inputs and no targets") {
  TokenTables tables = counting(11, 10);
  tables.counts = {true, false, true, false, true, true, true, true, true, false, true};
  const LeafBatch batch = sequence_of(tables, 0);
  CHECK(batch.tokens == Ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(batch.targets == Ids{-100, 2, -100, 4, 5, 6, 7, 8, -100, 10});
}

TEST_CASE("a sequence ends before the next one and at the end of the tokens; positions behind its end do not count") {
  TokenTables tables = counting(8, 5);
  tables.sequences = {0, 3};
  tables.documents = {0, 3};
  const LeafBatch first = sequence_of(tables, 0), last = sequence_of(tables, 1);
  CHECK(first.tokens == Ids{0, 1, 2, 0, 0});
  CHECK(first.targets == Ids{1, 2, -100, -100, -100});
  CHECK(first.document_starts == Ids{0, 0, 0, 3, 3});
  CHECK(first.lengths == Ids{3});
  CHECK(last.tokens == Ids{3, 4, 5, 6, 7});
  CHECK(last.targets == Ids{4, 5, 6, 7, -100});
  CHECK(last.document_starts == Ids{0, 0, 0, 0, 0});
  CHECK(last.lengths == Ids{5});
}

TEST_CASE("a pack of one token more than a sequence has that token as its last target") {
  TokenTables tables = counting(10, 4);
  tables.sequences = {0, 5};
  tables.documents = {0, 5};
  CHECK(sequence_of(tables, 0).targets == Ids{1, 2, 3, 4});
  CHECK(sequence_of(tables, 1).tokens == Ids{5, 6, 7, 8});
}

TEST_CASE("data that does not fit the training gives typed errors") {
  const TemporaryFile tokens(bytes_of(counting(100, 8)));
  CHECK(code_of_batches(tokens.path(), BatchShape{4, 2, 8}, 1000) == "none");
  CHECK(code_of_batches(tokens.path(), BatchShape{4, 2, 9}, 1000) == "token_file_invalid");
  CHECK(code_of_batches(tokens.path(), BatchShape{4, 3, 8}, 1000) == "micro_batch_not_divisor");
  CHECK(code_of_batches(tokens.path(), BatchShape{4, 2, 8}, 2) == "token_out_of_vocab");
  CHECK(code_of_batches(tokens.path() + ".missing", BatchShape{4, 2, 8}, 50) == "token_file_unreadable");

  const TemporaryFile one_sequence(bytes_of(counting(9, 8)));
  CHECK(code_of_batches(one_sequence.path(), BatchShape{1, 1, 8}, 9) == "none");
  CHECK(code_of_batches(one_sequence.path(), BatchShape{1, 1, 8}, 8) == "token_out_of_vocab");

  TokenTables huge = counting(9, 8);
  huge.token_bytes = 4;
  huge.tokens[4] = 0xFFFFFFFFU;  // would be -1, were it read as a signed number
  CHECK(code_of_batches(TemporaryFile(bytes_of(huge)).path(), BatchShape{4, 2, 8}, 1 << 30) == "token_out_of_vocab");
}
