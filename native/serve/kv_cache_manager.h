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

/// Allocates the pages of a Decoder's KvCache, and shares those of common prefixes.
///
/// Published pages are the nodes of trees: a page is identified by its tokens and its parent page, the first page of a
/// sequence by its tree. Keys and values of equal tokens differ between trees. Pages are counted by reference. A
/// published page without references stays for later sequences until its memory is needed; the least recently used one
/// without children is evicted first.
class KvCacheManager {
 public:
  explicit KvCacheManager(std::int64_t num_pages);

  /// Returns the published pages of the longest known prefix, with a reference to each. A prefix consists of whole
  /// pages and never includes the last token. `tree`: 0 or more.
  std::vector<std::int32_t> take_prefix(std::int32_t tree, std::span<const std::int32_t> tokens);

  /// Returns an unpublished page with one reference, or nothing if all pages are referenced.
  std::optional<std::int32_t> allocate();

  /// Makes a full page available to other sequences. `parent`: the sequence's page before it, which is published, or
  /// root_of() the tree. Returns the page to continue with: if an identical page is already published, that one,
  /// with a reference, and `page` is released.
  std::int32_t publish(std::int32_t parent, std::span<const std::int32_t> tokens, std::int32_t page);
  static std::int32_t root_of(std::int32_t tree) { return -1 - tree; }

  /// Gives up one reference.
  void release(std::int32_t page);

  /// Pages that allocate() can return.
  std::int64_t num_available() const { return std::ssize(free_) + num_unused_; }

 private:
  using Tokens = std::array<std::int32_t, kPageTokens>;
  struct Key {
    std::int32_t parent = -1;
    Tokens tokens{};
    auto operator<=>(const Key&) const = default;
  };
  struct Page {
    std::int64_t references = 0;
    std::int64_t children = 0;  // published pages
    std::uint64_t last_used = 0;
    std::map<Key, std::int32_t>::iterator published;
  };

  Page& page_at(std::int32_t page) { return pages_[static_cast<std::size_t>(page)]; }
  bool is_published(const Page& page) const { return page.published != published_.end(); }
  void reference(std::int32_t page);
  void update_evictable(std::int32_t page);
  void evict(std::int32_t page);

  std::vector<Page> pages_;
  std::vector<std::int32_t> free_;
  std::map<Key, std::int32_t> published_;
  std::set<std::pair<std::uint64_t, std::int32_t>> evictable_;  // by last use: published, unreferenced leaves
  std::int64_t num_unused_ = 0;                                 // published, without references
  std::uint64_t clock_ = 0;
};

}  // namespace zerofleet
