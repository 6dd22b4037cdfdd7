#include "core/system/mapping.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "core/error.h"
#include "core/system/numa.h"
#include "core/system/touch_pages.h"

namespace zerofleet {
namespace {

std::size_t whole(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

std::size_t num_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

/// Margin for mappings that are created in the meantime.
constexpr std::size_t kNearLimit = 64;

/// The system has one error for memory and for mappings that ran out.
[[noreturn]] void fail(int error, const std::string& failure) {
  std::size_t limit = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> limit;
  if (error == ENOMEM && limit > 0 && num_mappings() + kNearLimit >= limit) {
    throw Error("too_many_mappings",
                failure + ": the process has all the " + std::to_string(limit) +
                    " memory mappings that the system allows it; raise vm.max_map_count (sysctl), or "
                    "use more ranks per expert set for a model with many experts");
  }
  throw Error("out_of_memory", failure + ": " + std::strerror(error));
}

}  // namespace

MappingPlan MappingPlan::of(std::size_t needed_bytes, bool huge, std::size_t page_bytes) {
  const std::size_t needed = whole(needed_bytes, page_bytes);
  if (!huge) return {needed, needed, 0};
  // The rest behind the last whole huge page has small pages, unless it nearly fills another. A model has hundreds of
  // arrays of a few MiB, and half a huge page lost in each of them comes to 5 % of all memory.
  const std::size_t in_huge_pages = (needed + kHugePageBytes / 8) / kHugePageBytes * kHugePageBytes;
  const std::size_t bytes = std::max(needed, in_huge_pages);
  return {bytes, bytes + kHugePageBytes, in_huge_pages};
}

std::byte* map_pages(std::size_t num_bytes) {
  void* base = ::mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) fail(errno, "cannot allocate " + std::to_string(num_bytes) + " bytes");
  auto* begin = static_cast<std::byte*>(base);
  // A rank that stays on one node has the CPUs of that node alone by now.
  static const std::vector<NumaNode> nodes = numa_nodes(allowed_cpus());
  if (nodes.size() > 1) interleave(begin, num_bytes, nodes);
  return begin;
}

std::byte* map_shared(int descriptor, std::size_t offset_bytes, std::size_t num_bytes) {
  void* begin =
      ::mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, static_cast<off_t>(offset_bytes));
  if (begin == MAP_FAILED) fail(errno, "cannot map " + std::to_string(num_bytes) + " bytes of shared memory");
  // Advice only: shared memory has huge pages where the system is set so (transparent_hugepage/shmem_enabled).
  static_cast<void>(::madvise(begin, num_bytes, MADV_HUGEPAGE));
  return static_cast<std::byte*>(begin);
}

void set_page_access(std::span<std::byte> bytes, PageAccess access) {
  const std::size_t lead = reinterpret_cast<std::uintptr_t>(bytes.data()) % page_bytes();
  const int protection = access == PageAccess::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  if (::mprotect(bytes.data() - lead, lead + bytes.size(), protection) != 0) {
    fail(errno, "cannot change the access to " + std::to_string(bytes.size()) + " bytes of memory");
  }
}

void unmap_pages(std::byte* begin, std::size_t num_bytes) {
  if (num_bytes > 0 && ::munmap(begin, num_bytes) != 0) {
    fail(errno, "cannot give back " + std::to_string(num_bytes) + " bytes of address space");
  }
}

void release_pages(std::byte* begin, std::size_t num_bytes) noexcept {
  if (num_bytes == 0 || ::munmap(begin, num_bytes) == 0) return;
  const int error = errno;
  const bool emptied = ::madvise(begin, num_bytes, MADV_DONTNEED) == 0;
  std::fprintf(stderr, "zerofleet: cannot unmap %zu bytes (%s)%s\n", num_bytes, std::strerror(error),
               emptied ? "; their memory is free" : "");
}

}  // namespace zerofleet
