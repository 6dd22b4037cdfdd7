#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/buffer.h"

namespace zerofleet {

/// A read-only, memory-mapped file of little-endian uint16 tokens. Pages are read as they are used, so a corpus may be
/// larger than memory. Throws Error{"token_file_unreadable"} with the system's reason, Error{"token_file_invalid"} for an
/// empty file or an odd number of bytes.
class TokenFile {
 public:
  explicit TokenFile(const std::string& path);

  std::span<const std::uint16_t> tokens() const { return tokens_; }

 private:
  std::unique_ptr<std::byte, ReleaseBytes> mapping_;
  std::span<const std::uint16_t> tokens_;
};

}  // namespace zerofleet
