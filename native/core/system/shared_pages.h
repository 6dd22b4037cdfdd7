#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/system/mapping.h"

namespace zerofleet {

/// A process among those of its host.
struct ProcessIdentity {
  std::array<char, 40> boot{};      // the host since it was started; empty: unknown
  std::uint64_t pid_namespace = 0;  // 0: unknown
  std::uint64_t user = 0;
  std::int64_t pid = 0;

  static ProcessIdentity here();
  /// Returns true if the processes can map each other's SharedPages: they see each other in /proc, which processes in
  /// different containers or of different users do not.
  bool shares_with(const ProcessIdentity& other) const;
};

/// Zeroed memory that processes of one host map together. It has no name and no file system, so no limit of /dev/shm
/// applies. It is freed when the last process has unmapped it or was killed. Throws Error{"out_of_memory"},
/// Error{"shared_memory_unavailable"} where the system refuses it.
class SharedPages {
 public:
  /// `num_bytes` are whole pages.
  static SharedPages create(std::size_t num_bytes);
  /// Opens the pages of another process that still holds its descriptor of them.
  static SharedPages of(const ProcessIdentity& creator, int descriptor, std::size_t num_bytes);
  ~SharedPages();
  SharedPages(SharedPages&& other) noexcept;
  SharedPages& operator=(SharedPages&&) = delete;

  int descriptor() const { return descriptor_; }
  /// Maps whole pages, to read and write. They stay when the object is gone, until unmap_pages(). Throws as map_pages()
  /// does.
  std::byte* map(std::size_t offset_bytes, std::size_t num_bytes) const {
    return map_shared(descriptor_, offset_bytes, num_bytes);
  }

 private:
  explicit SharedPages(int descriptor) : descriptor_(descriptor) {}

  int descriptor_ = -1;
};

}  // namespace zerofleet
