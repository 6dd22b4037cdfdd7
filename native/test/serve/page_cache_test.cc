#include "serve/page_cache.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

using namespace zerofleet;

namespace {

using Tokens = std::vector<std::int32_t>;

/// Tokens of `count` pages and `more` of the next one, which begin with `first` in each page.
Tokens text_of(const std::vector<std::int32_t>& firsts, std::int64_t more) {
  Tokens tokens;
  for (const std::int32_t first : firsts) {
    for (std::int32_t i = 0; i < kPageTokens; ++i) tokens.push_back(first + i);
  }
  for (std::int32_t i = 0; i < more; ++i) tokens.push_back(i);
  return tokens;
}

/// Takes and publishes all whole pages of a text.
std::vector<std::int32_t> write(PageCache& cache, const Tokens& tokens) {
  std::vector<std::int32_t> pages = cache.take_beginning(0, tokens);
  for (std::size_t page = pages.size(); page < tokens.size() / kPageTokens; ++page) {
    const std::int32_t before = page == 0 ? PageCache::first_of(0) : pages.back();
    pages.push_back(cache.publish(before, std::span(tokens).subspan(page * kPageTokens, kPageTokens), cache.take().value()));
  }
  return pages;
}

void release(PageCache& cache, const std::vector<std::int32_t>& pages) {
  for (const std::int32_t page : pages) cache.release(page);
}

}  // namespace

TEST_CASE("texts that begin alike share whole pages, but for the last token") {
  PageCache cache(8);
  const Tokens first = text_of({0, 100}, 5), second = text_of({0, 200}, 1);
  const std::vector<std::int32_t> pages = write(cache, first);
  CHECK(pages.size() == 2);
  CHECK(cache.take_beginning(0, text_of({0, 100}, 1)) == pages);
  CHECK(cache.take_beginning(0, text_of({0, 100}, 0)) == std::vector(pages.begin(), pages.begin() + 1));
  CHECK(cache.take_beginning(0, text_of({100, 0}, 1)).empty());
  CHECK(cache.take_beginning(1, text_of({0, 100}, 1)).empty());
  CHECK(write(cache, second).front() == pages.front());
  CHECK(cache.num_available() == 5);
}

TEST_CASE("a page that is there already takes the place of one with the same contents") {
  PageCache cache(4);
  const Tokens text = text_of({7}, 0);
  const std::int32_t first = cache.take().value(), second = cache.take().value();
  CHECK(cache.publish(PageCache::first_of(0), text, first) == first);
  CHECK(cache.publish(PageCache::first_of(0), text, second) == first);
  CHECK(cache.num_available() == 3);
  cache.release(first);
  CHECK(cache.num_available() == 3);
  cache.release(first);
  CHECK(cache.num_available() == 4);
}

TEST_CASE("unused pages are dropped when others are needed, from the ends of texts, the least recently used first") {
  PageCache cache(4);
  const Tokens old = text_of({0, 100}, 1), recent = text_of({200}, 1);
  release(cache, write(cache, old));
  release(cache, write(cache, recent));
  CHECK(cache.num_available() == 4);
  const std::vector<std::int32_t> taken{cache.take().value(), cache.take().value()};  // a free one, and the end of the old text
  std::vector<std::int32_t> beginning = cache.take_beginning(0, old);
  CHECK(beginning.size() == 1);
  CHECK(cache.take_beginning(0, recent).size() == 1);
  CHECK_FALSE(cache.take().has_value());
  release(cache, beginning);
  CHECK(cache.take().has_value());
  CHECK(cache.take_beginning(0, old).empty());
}

TEST_CASE("any sequence of uses keeps the count of pages, and gives no page twice") {
  std::mt19937 random(3);
  PageCache cache(24);
  std::vector<std::vector<std::int32_t>> texts;
  std::map<std::int32_t, Tokens> contents;  // of a published page: all tokens up to its end
  for (int round = 0; round < 3000; ++round) {
    if (!texts.empty() && (random() % 3 == 0 || cache.num_available() < 4)) {
      const std::size_t victim = random() % texts.size();
      release(cache, texts[victim]);
      texts.erase(texts.begin() + static_cast<std::ptrdiff_t>(victim));
      continue;
    }
    std::vector<std::int32_t> firsts;
    for (std::size_t page = 0; page < 1 + random() % 4; ++page) firsts.push_back(static_cast<std::int32_t>(random() % 3) * 100);
    const Tokens tokens = text_of(firsts, 1);
    const std::vector<std::int32_t> shared = cache.take_beginning(0, tokens);
    for (std::size_t page = 0; page < shared.size(); ++page) {
      CHECK(contents.at(shared[page]) == Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>((page + 1) * kPageTokens)));
    }
    release(cache, shared);
    const std::vector<std::int32_t> pages = write(cache, tokens);
    for (std::size_t page = 0; page < pages.size(); ++page) {
      contents[pages[page]] = Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>((page + 1) * kPageTokens));
    }
    texts.push_back(pages);
    std::vector<std::int32_t> used;
    for (const auto& text : texts) used.insert(used.end(), text.begin(), text.end());
    std::ranges::sort(used);
    const auto distinct = std::ranges::distance(used.begin(), std::ranges::unique(used).begin());
    CHECK(cache.num_available() == 24 - distinct);
  }
  for (const auto& text : texts) release(cache, text);
  CHECK(cache.num_available() == 24);
}
