#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace zerofleet {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

/// Address space of a buffer of host memory. A large buffer is requested with slack, so that its first byte can be
/// moved up to a huge-page boundary; the slack is returned at once. All sizes are whole pages.
struct MappingPlan {
  std::size_t bytes = 0;        // that stay
  std::size_t asked_bytes = 0;  // with the slack
  std::size_t huge_bytes = 0;   // of the first, in huge pages

  /// `needed_bytes` from the start of the mapping on; `page_bytes` divides kHugePageBytes.
  static MappingPlan of(std::size_t needed_bytes, bool huge, std::size_t page_bytes);
};

/// Fresh, zeroed pages. Throws Error{"out_of_memory"}, or Error{"too_many_mappings"} where the process has as many as
/// the system lets it have (vm.max_map_count).
std::byte* map_pages(std::size_t num_bytes);

/// Maps whole pages of a file descriptor's shared memory, to read and write. Throws as map_pages() does.
std::byte* map_shared(int descriptor, std::size_t offset_bytes, std::size_t num_bytes);

enum class PageAccess : std::uint8_t { kRead, kReadWrite };

/// Sets what this process may do with mapped pages: all that have some of the bytes. Throws as map_pages() does.
void set_page_access(std::span<std::byte> bytes, PageAccess access);

/// Throws Error{"too_many_mappings"} where that would cut one mapping in two and the process may not have another.
void unmap_pages(std::byte* begin, std::size_t num_bytes);

/// The same without exceptions. Pages that can't be unmapped give back their memory, but not their addresses, which a
/// line on standard error reports.
void release_pages(std::byte* begin, std::size_t num_bytes) noexcept;

}  // namespace zerofleet
