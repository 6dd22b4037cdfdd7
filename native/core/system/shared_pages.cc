#include "core/system/shared_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "core/error.h"

namespace zerofleet {
namespace {

[[noreturn]] void fail_to_share(const std::string& failure) {
  const int error = errno;
  const bool is_memory = error == ENOMEM || error == ENOSPC;
  throw Error(is_memory ? "out_of_memory" : "shared_memory_unavailable",
              failure + ": " + std::strerror(error) +
                  (is_memory ? ""
                             : "; ranks on one host share their frozen parameters by memfd_create and /proc/<pid>/fd, "
                               "which must be allowed"));
}

int create_descriptor() {
  constexpr unsigned kNeverExecuted = 0x8;  // MFD_NOEXEC_SEAL: required by some systems, and unknown before Linux 6.3
  const int descriptor = ::memfd_create("zerofleet-base", MFD_CLOEXEC | kNeverExecuted);
  return descriptor >= 0 || errno != EINVAL ? descriptor : ::memfd_create("zerofleet-base", MFD_CLOEXEC);
}

}  // namespace

ProcessIdentity ProcessIdentity::here() {
  ProcessIdentity process;
  std::ifstream("/proc/sys/kernel/random/boot_id").read(process.boot.data(), 36);  // a UUID
  struct stat of_namespace{};
  if (::stat("/proc/self/ns/pid", &of_namespace) == 0) process.pid_namespace = of_namespace.st_ino;
  process.user = ::geteuid();
  process.pid = ::getpid();
  return process;
}

bool ProcessIdentity::shares_with(const ProcessIdentity& other) const {
  const bool is_known = boot[0] != '\0' && pid_namespace != 0;
  return is_known && boot == other.boot && pid_namespace == other.pid_namespace && user == other.user;
}

SharedPages SharedPages::create(std::size_t num_bytes) {
  SharedPages pages(create_descriptor());
  if (pages.descriptor_ < 0) fail_to_share("cannot create shared memory");
  if (::ftruncate(pages.descriptor_, static_cast<off_t>(num_bytes)) != 0) {
    fail_to_share("cannot allocate " + std::to_string(num_bytes) + " bytes of shared memory");
  }
  return pages;
}

SharedPages SharedPages::of(const ProcessIdentity& creator, int descriptor, std::size_t num_bytes) {
  const std::string path = "/proc/" + std::to_string(creator.pid) + "/fd/" + std::to_string(descriptor);
  SharedPages pages(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (pages.descriptor_ < 0) fail_to_share("cannot open " + path);
  struct stat found{};
  if (::fstat(pages.descriptor_, &found) != 0) fail_to_share("cannot open " + path);
  require(static_cast<std::size_t>(found.st_size) == num_bytes, "shared_memory_unavailable",
          path + " has " + std::to_string(found.st_size) + " bytes instead of " + std::to_string(num_bytes));
  return pages;
}

SharedPages::~SharedPages() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

SharedPages::SharedPages(SharedPages&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

}  // namespace zerofleet
