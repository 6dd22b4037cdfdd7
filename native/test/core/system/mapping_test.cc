#include "core/system/mapping.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "core/device/buffer.h"
#include "test/error_code.h"
#include "test/sanitized.h"

using namespace zerofleet;
using namespace zerofleet::test;

TEST_CASE("a mapping is whole pages, whatever their size, and large enough from any page on") {
  for (const std::size_t page : {std::size_t{4096}, std::size_t{16384}, std::size_t{65536}}) {
    CAPTURE(page);
    for (const std::size_t needed :
         {std::size_t{1}, page, page + 1, kHugePageBytes, kHugePageBytes + 17 * 4096 + 3, kHugePageBytes * 15 / 8,
          kHugePageBytes * 19 / 10, 5 * kHugePageBytes + page - 1}) {
      CAPTURE(needed);
      const bool huge = needed >= kHugePageBytes;
      const MappingPlan plan = MappingPlan::of(needed, huge, page);
      for (const std::size_t bytes : {plan.bytes, plan.asked_bytes, plan.huge_bytes}) CHECK(bytes % page == 0);
      CHECK(plan.bytes >= needed);
      CHECK(plan.huge_bytes % kHugePageBytes == 0);
      CHECK(plan.huge_bytes <= plan.bytes);
      // The slack reaches the next huge page from any address.
      CHECK(plan.asked_bytes - plan.bytes == (huge ? kHugePageBytes : 0));
    }
  }
}

TEST_CASE("unmapping memory that is not page-aligned is a reported error, not a silent leak") {
  std::byte* pages = map_pages(kHugePageBytes);
  CHECK(code_of([&] { unmap_pages(pages + 1, 4096); }) == "out_of_memory");
  CHECK(code_of([&] { unmap_pages(pages, kHugePageBytes); }) == "none");
}

TEST_CASE("a process with all the mappings that it may have gets a typed error that says so") {
  std::size_t limit = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> limit;
  // None that could be reached soon; and ThreadSanitizer needs mappings of its own, and ends where it gets none.
  if (limit == 0 || limit > 2'000'000 || kThreadSanitized) return;
  // In a process of its own: nothing else works at the limit either.
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // Neighbours that differ in what is allowed are mappings of their own.
    for (bool writable = false;; writable = !writable) {
      const int allowed = writable ? PROT_READ | PROT_WRITE : PROT_READ;
      if (::mmap(nullptr, 65536, allowed, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) break;
    }
    const std::string code = code_of([] { Buffer buffer(Device{}, 100000); });
    ::_exit(code == "too_many_mappings" ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
