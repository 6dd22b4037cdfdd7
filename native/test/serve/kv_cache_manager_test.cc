#include "serve/kv_cache_manager.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

using namespace zerofleet;

namespace {

using Tokens = std::vector<std::int32_t>;

/// Tokens of whole pages, each of which counts up from one of `firsts`, and `more` tokens of another page.
Tokens tokens_of(const std::vector<std::int32_t>& firsts, std::int64_t more) {
  Tokens tokens;
  for (const std::int32_t first : firsts) {
    for (std::int32_t i = 0; i < kPageTokens; ++i) tokens.push_back(first + i);
  }
  for (std::int32_t i = 0; i < more; ++i) tokens.push_back(i);
  return tokens;
}

/// Takes and publishes all whole pages of a sequence.
std::vector<std::int32_t> write(KvCacheManager& cache, const Tokens& tokens) {
  std::vector<std::int32_t> pages = cache.take_prefix(0, tokens);
  for (std::size_t page = pages.size(); page < tokens.size() / kPageTokens; ++page) {
    const std::int32_t parent = page == 0 ? KvCacheManager::root_of(0) : pages.back();
    pages.push_back(
        cache.publish(parent, std::span(tokens).subspan(page * kPageTokens, kPageTokens), cache.allocate().value()));
  }
  return pages;
}

void release(KvCacheManager& cache, const std::vector<std::int32_t>& pages) {
  for (const std::int32_t page : pages) cache.release(page);
}

}  // namespace

TEST_CASE("sequences with a common prefix share whole pages, but never the last token") {
  KvCacheManager cache(8);
  const Tokens first = tokens_of({0, 100}, 5), second = tokens_of({0, 200}, 1);
  const std::vector<std::int32_t> pages = write(cache, first);
  CHECK(pages.size() == 2);
  CHECK(cache.take_prefix(0, tokens_of({0, 100}, 1)) == pages);
  CHECK(cache.take_prefix(0, tokens_of({0, 100}, 0)) == std::vector(pages.begin(), pages.begin() + 1));
  CHECK(cache.take_prefix(0, tokens_of({100, 0}, 1)).empty());
  CHECK(cache.take_prefix(1, tokens_of({0, 100}, 1)).empty());
  CHECK(write(cache, second).front() == pages.front());
  CHECK(cache.num_available() == 5);
}

TEST_CASE("publishing a page with known contents returns the page published first") {
  KvCacheManager cache(4);
  const Tokens tokens = tokens_of({7}, 0);
  const std::int32_t first = cache.allocate().value(), second = cache.allocate().value();
  CHECK(cache.publish(KvCacheManager::root_of(0), tokens, first) == first);
  CHECK(cache.publish(KvCacheManager::root_of(0), tokens, second) == first);
  CHECK(cache.num_available() == 3);
  cache.release(first);
  CHECK(cache.num_available() == 3);
  cache.release(first);
  CHECK(cache.num_available() == 4);
}

TEST_CASE("unused pages are evicted from the ends of sequences, the least recently used first") {
  KvCacheManager cache(4);
  const Tokens old = tokens_of({0, 100}, 1), recent = tokens_of({200}, 1);
  release(cache, write(cache, old));
  release(cache, write(cache, recent));
  CHECK(cache.num_available() == 4);
  const std::vector<std::int32_t> taken{cache.allocate().value(),
                                        cache.allocate().value()};  // a free one, and the end of the old sequence
  std::vector<std::int32_t> prefix = cache.take_prefix(0, old);
  CHECK(prefix.size() == 1);
  CHECK(cache.take_prefix(0, recent).size() == 1);
  CHECK_FALSE(cache.allocate().has_value());
  release(cache, prefix);
  CHECK(cache.allocate().has_value());
  CHECK(cache.take_prefix(0, old).empty());
}

TEST_CASE("random use keeps the number of pages, and allocates no page twice") {
  std::mt19937 random(3);
  KvCacheManager cache(24);
  std::vector<std::vector<std::int32_t>> sequences;
  std::map<std::int32_t, Tokens> contents;  // of a published page: all tokens up to its end
  for (int round = 0; round < 3000; ++round) {
    if (!sequences.empty() && (random() % 3 == 0 || cache.num_available() < 4)) {
      const std::size_t victim = random() % sequences.size();
      release(cache, sequences[victim]);
      sequences.erase(sequences.begin() + static_cast<std::ptrdiff_t>(victim));
      continue;
    }
    std::vector<std::int32_t> firsts;
    for (std::size_t page = 0; page < 1 + random() % 4; ++page)
      firsts.push_back(static_cast<std::int32_t>(random() % 3) * 100);
    const Tokens tokens = tokens_of(firsts, 1);
    const std::vector<std::int32_t> shared = cache.take_prefix(0, tokens);
    for (std::size_t page = 0; page < shared.size(); ++page) {
      CHECK(contents.at(shared[page]) ==
            Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>((page + 1) * kPageTokens)));
    }
    release(cache, shared);
    const std::vector<std::int32_t> pages = write(cache, tokens);
    for (std::size_t page = 0; page < pages.size(); ++page) {
      contents[pages[page]] =
          Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>((page + 1) * kPageTokens));
    }
    sequences.push_back(pages);
    std::vector<std::int32_t> used;
    for (const auto& sequence : sequences) used.insert(used.end(), sequence.begin(), sequence.end());
    std::ranges::sort(used);
    const auto distinct = std::ranges::distance(used.begin(), std::ranges::unique(used).begin());
    CHECK(cache.num_available() == 24 - distinct);
  }
  for (const auto& sequence : sequences) release(cache, sequence);
  CHECK(cache.num_available() == 24);
}
