#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "comm/communicator.h"
#include "core/error.h"
#include "core/range.h"

namespace zerofleet {

/// Throws Error{"invalid_argument"} unless `pieces` has one range per rank, ascending, without gaps, inside the buffer.
inline void check_pieces(std::span<const Range> pieces, int world_size, std::size_t buffer_bytes, const char* name) {
  require(static_cast<int>(pieces.size()) == world_size, "invalid_argument",
          std::string(name) + ": one range per rank is needed");
  std::int64_t end = pieces.front().begin;
  for (const Range& piece : pieces) {
    require(piece.begin == end && piece.end >= piece.begin, "invalid_argument",
            std::string(name) + ": ranges must ascend without gaps");
    end = piece.end;
  }
  require(pieces.front().begin >= 0 && end <= static_cast<std::int64_t>(buffer_bytes), "invalid_argument",
          std::string(name) + ": ranges leave the buffer");
}

inline void check_gathers(std::span<const Gather> gathers, int world_size) {
  for (const Gather& gather : gathers) check_pieces(gather.pieces_bytes, world_size, gather.data.size(), "data");
}

template <class Byte>
std::span<Byte> piece_of(std::span<Byte> buffer, const Range& bytes) {
  return buffer.subspan(static_cast<std::size_t>(bytes.begin), static_cast<std::size_t>(bytes.size()));
}

/// Copies a piece into one of the same size. (std::ranges::copy goes byte by byte through spans of std::byte.)
inline void copy_piece(std::span<const std::byte> from, std::span<std::byte> to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace zerofleet
