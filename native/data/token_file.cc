#include "data/token_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "data/mapped_read.h"

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

void require_valid(bool valid, const std::string& reason) {
  require(valid, "token_file_invalid", "the token file " + reason + "; prepare the data again");
}

constexpr char kMagic[8] = {'z', 'f', 't', 'o', 'k', 'e', 'n', 's'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kAlignment = 8;

struct Header {
  char magic[8];
  std::uint32_t version, token_bytes;
  std::uint64_t num_tokens, num_sequences, num_documents, sequence_length;
};
static_assert(sizeof(Header) == 48);

/// Hands out the tables of a file one after the other; sizes come from the file and may be anything.
class TableReader {
 public:
  explicit TableReader(std::span<const std::byte> file) : file_(file) {}

  template <class T>
  std::span<const T> take(std::uint64_t count) {
    const std::uint64_t left = file_.size() - position_;
    require_valid(count <= left / sizeof(T), "is shorter than its header says");
    const std::uint64_t num_bytes = count * sizeof(T);
    const auto* data = reinterpret_cast<const T*>(file_.data() + position_);
    const std::uint64_t padded = (num_bytes + kAlignment - 1) / kAlignment * kAlignment;
    require_valid(padded <= left, "is shorter than its header says");
    position_ += padded;
    return {data, static_cast<std::size_t>(count)};
  }
  bool at_end() const { return position_ == file_.size(); }

 private:
  std::span<const std::byte> file_;
  std::uint64_t position_ = 0;
};

bool ascends_below(std::span<const std::uint64_t> positions, std::uint64_t end) {
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] >= end || (i > 0 && positions[i] <= positions[i - 1])) return false;
  }
  return true;
}

}  // namespace

TokenFile::TokenFile(const std::string& path) {
  map(path);
  read_mapped([&] {
    lay_out({mapping_.get(), num_bytes_});
    check_tables();
  });
}

void TokenFile::map(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail_unreadable(path);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) fail_unreadable(path);
  num_bytes_ = static_cast<std::size_t>(info.st_size);
  require_valid(num_bytes_ >= sizeof(Header), "has " + std::to_string(num_bytes_) + " bytes, which is no header");
  void* base = ::mmap(nullptr, num_bytes_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (base == MAP_FAILED) fail_unreadable(path);
  mapping_ = {static_cast<std::byte*>(base), ReleaseBytes{num_bytes_}};
}

void TokenFile::lay_out(std::span<const std::byte> file) {
  TableReader tables(file);
  const Header& header = tables.take<Header>(1).front();
  require_valid(std::memcmp(header.magic, kMagic, sizeof kMagic) == 0, "does not begin with 'zftokens'");
  require_valid(header.version == kVersion, "has version " + std::to_string(header.version) + ", this program reads 1");
  require_valid(header.token_bytes == 2 || header.token_bytes == 4,
                "has tokens of " + std::to_string(header.token_bytes) + " bytes, there are 2 and 4");
  constexpr std::uint64_t kMaxCount = std::numeric_limits<std::int64_t>::max() / 8;
  require_valid(header.num_tokens <= kMaxCount && header.sequence_length <= kMaxCount,
                "is shorter than its header says");
  num_tokens_ = static_cast<std::int64_t>(header.num_tokens);
  sequence_length_ = static_cast<std::int64_t>(header.sequence_length);
  if (header.token_bytes == 2) {
    narrow_ = tables.take<std::uint16_t>(header.num_tokens);
  } else {
    wide_ = tables.take<std::uint32_t>(header.num_tokens);
  }
  sequences_ = tables.take<std::uint64_t>(header.num_sequences);
  documents_ = tables.take<std::uint64_t>(header.num_documents);
  mask_ = tables.take<std::byte>((header.num_tokens + 7) / 8);
  require_valid(tables.at_end(), "is longer than its header says");
}

void TokenFile::check_tables() const {
  const auto end = static_cast<std::uint64_t>(num_tokens_);
  require_valid(sequence_length_ >= 1 && !sequences_.empty(), "has no sequences");
  require_valid(ascends_below(sequences_, end), "has sequences that are out of order or outside of its tokens");
  require_valid(!documents_.empty() && documents_.front() == 0 && ascends_below(documents_, end),
                "has documents that are out of order or outside of its tokens");
}

}  // namespace zerofleet
