#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "kernels/attention/paged_attention.h"

namespace zerofleet {

/// Owners of the pages of keys and values. Texts of one adapter that begin alike share the pages of their beginning: a page is known by its
/// tokens and the page before it, the first one by its adapter. Pages of texts that have ended stay until others need them, the least recently used first.
class PageCache {
 public:
  explicit PageCache(std::int64_t num_pages);

  /// Takes the pages, a reference each, of the longest beginning of a text that is there: whole pages, and not its last token.
  /// `adapter`: 0 or more.
  std::vector<std::int32_t> take_beginning(std::int32_t adapter, std::span<const std::int32_t> tokens);

  /// Takes a page of one's own, or nothing where all are in use.
  std::optional<std::int32_t> take();

  /// A taken page is full: others may have it from now on. `before`: the text's page before it, which was published, or for the first one
  /// first_of() its adapter.
  /// Returns the page to go on with. That is another one, and this one is given back, if its contents are there already.
  std::int32_t publish(std::int32_t before, std::span<const std::int32_t> tokens, std::int32_t page);
  static std::int32_t first_of(std::int32_t adapter) { return -1 - adapter; }

  void release(std::int32_t page);

  /// Pages that take() can give.
  std::int64_t num_available() const { return std::ssize(free_) + num_unused_; }

 private:
  using Tokens = std::array<std::int32_t, kPageTokens>;
  struct Key {
    std::int32_t before = -1;
    Tokens tokens{};
    auto operator<=>(const Key&) const = default;
  };
  struct Page {
    std::int64_t references = 0;
    std::int64_t followers = 0;  // published pages behind this one
    std::uint64_t last_used = 0;
    std::map<Key, std::int32_t>::iterator published;
  };

  Page& of(std::int32_t page) { return pages_[static_cast<std::size_t>(page)]; }
  bool is_published(const Page& page) const { return page.published != published_.end(); }
  void reference(std::int32_t page);
  /// Notes whether a page can be dropped now.
  void update(std::int32_t page);
  void drop(std::int32_t page);

  std::vector<Page> pages_;
  std::vector<std::int32_t> free_;
  std::map<Key, std::int32_t> published_;
  std::set<std::pair<std::uint64_t, std::int32_t>> droppable_;  // by last use: published, without references and followers
  std::int64_t num_unused_ = 0;                                 // published, without references
  std::uint64_t clock_ = 0;
};

}  // namespace zerofleet
