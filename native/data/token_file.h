#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/device/buffer.h"

namespace zerofleet {

/// A read-only, memory-mapped file of tokens, cut into sequences and documents. Pages are read as they are used, so a
/// corpus may be larger than memory. Little-endian, every table at a multiple of 8 bytes (zeros between):
///
///   char magic[8] "zftokens" · u32 version 1 · u32 token_bytes (2 or 4)
///   u64 num_tokens · u64 num_sequences · u64 num_documents · u64 sequence_length
///   tokens          u16 or u32 (num_tokens)
///   sequences       u64 (num_sequences): position of the first token of each, ascending
///   documents       u64 (num_documents): position of the first token of each, ascending, the first one 0
///   loss mask       bits (num_tokens), the lowest of a byte first: 1 where the token counts as a target
///
/// Throws Error{"token_file_unreadable"} with the system's reason. Throws Error{"token_file_invalid"} for another
/// version, a wrong length, or tables that break the rules above.
class TokenFile {
 public:
  explicit TokenFile(const std::string& path);

  std::int64_t num_tokens() const { return num_tokens_; }
  std::int64_t sequence_length() const { return sequence_length_; }
  std::span<const std::uint64_t> sequences() const { return sequences_; }
  std::span<const std::uint64_t> documents() const { return documents_; }

  /// `position` in [0, num_tokens).
  std::uint32_t token(std::int64_t position) const {
    const auto index = static_cast<std::size_t>(position);
    return narrow_.empty() ? wide_[index] : narrow_[index];
  }
  bool counts_as_target(std::int64_t position) const {
    return ((static_cast<unsigned>(mask_[static_cast<std::size_t>(position >> 3)]) >> (position & 7)) & 1U) != 0;
  }

 private:
  void map(const std::string& path);
  void lay_out(std::span<const std::byte> file);
  void check_tables() const;

  std::unique_ptr<std::byte, ReleaseBytes> mapping_;
  std::size_t num_bytes_ = 0;
  std::int64_t num_tokens_ = 0;
  std::int64_t sequence_length_ = 0;
  std::span<const std::uint16_t> narrow_;  // (num_tokens), or empty
  std::span<const std::uint32_t> wide_;
  std::span<const std::uint64_t> sequences_, documents_;
  std::span<const std::byte> mask_;
};

}  // namespace zerofleet
