#include "core/system/shared_pages.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>

#include "core/system/touch_pages.h"
#include "test/error_code.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// Runs `body` in a child process that is killed afterwards. Returns the signal that ended it.
template <class Body>
int killed_after(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("processes map the same pages, of which one that is killed takes nothing away") {
  const std::size_t page = page_bytes();
  const SharedPages pages = SharedPages::create(3 * page);
  std::byte* last = pages.map(2 * page, page);
  CHECK(last[5] == std::byte{0});
  const ProcessIdentity parent = ProcessIdentity::here();
  const int signal = killed_after([&] {
    const SharedPages same = SharedPages::of(parent, pages.descriptor(), 3 * page);
    same.map(0, 3 * page)[2 * page + 5] = std::byte{9};
  });
  CHECK(signal == SIGKILL);
  CHECK(last[5] == std::byte{9});
  unmap_pages(last, page);
}

TEST_CASE("pages that may only be read end a process that writes to them") {
  const std::size_t page = page_bytes();
  std::byte* begin = SharedPages::create(2 * page).map(0, 2 * page);
  set_page_access({begin + page, 1}, PageAccess::kRead);
  CHECK(killed_after([&] { begin[page - 1] = std::byte{1}; }) == SIGKILL);
  CHECK(begin[page - 1] == std::byte{1});
  CHECK(killed_after([&] {
          ::signal(SIGSEGV, SIG_DFL);
          static_cast<volatile std::byte*>(begin)[2 * page - 1] = std::byte{1};
        }) == SIGSEGV);
  set_page_access({begin + page, 1}, PageAccess::kReadWrite);
  begin[2 * page - 1] = std::byte{2};
  CHECK(begin[2 * page - 1] == std::byte{2});
  unmap_pages(begin, 2 * page);
}

TEST_CASE("memory of a process that is gone, or of another size, cannot be opened") {
  const std::size_t page = page_bytes();
  const SharedPages pages = SharedPages::create(page);
  ProcessIdentity process = ProcessIdentity::here();
  CHECK(code_of([&] { SharedPages::of(process, pages.descriptor(), 2 * page); }) == "shared_memory_unavailable");
  process.pid = 1LL << 40;
  CHECK(code_of([&] { SharedPages::of(process, pages.descriptor(), page); }) == "shared_memory_unavailable");
}
