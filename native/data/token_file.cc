#include "data/token_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace zerofleet {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian and mapped as they are");

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail_unreadable(const std::string& path) {
  throw Error("token_file_unreadable", "cannot read token file " + path + ": " + std::strerror(errno));
}

}  // namespace

TokenFile::TokenFile(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail_unreadable(path);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) fail_unreadable(path);
  const auto num_bytes = static_cast<std::size_t>(info.st_size);
  require(num_bytes > 0 && num_bytes % 2 == 0, "token_file_invalid",
          path + " holds " + std::to_string(num_bytes) + " bytes, which is no whole number of uint16 tokens");
  void* base = ::mmap(nullptr, num_bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (base == MAP_FAILED) fail_unreadable(path);
  mapping_ = {static_cast<std::byte*>(base), ReleaseBytes{num_bytes}};
  tokens_ = {static_cast<const std::uint16_t*>(base), num_bytes / 2};
}

}  // namespace zerofleet
