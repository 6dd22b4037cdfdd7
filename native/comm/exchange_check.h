#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "comm/communicator.h"
#include "core/error.h"
#include "core/range.h"

namespace zerofleet {

/// Throws Error{"invalid_argument"} unless `pieces` has one range per rank, ascending, without gaps, and within the
/// buffer.
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

/// Throws Error{"invalid_argument"} unless all peers are ranks, in ascending order, and all messages lie within the
/// buffer.
inline void check_messages(std::span<const Message> messages, int world_size, std::size_t buffer_bytes,
                           const char* name) {
  int last = 0;
  for (const auto& [peer, bytes] : messages) {
    require(peer >= last && peer < world_size, "invalid_argument",
            std::string(name) + ": messages must be in the order of ranks");
    require(bytes.begin >= 0 && bytes.end >= bytes.begin && bytes.end <= static_cast<std::int64_t>(buffer_bytes),
            "invalid_argument", std::string(name) + ": messages leave the buffer");
    last = peer;
  }
}

inline std::span<const Message> messages_with(std::span<const Message> messages, int peer) {
  const auto found = std::ranges::equal_range(messages, peer, {}, &Message::peer);
  return {found.begin(), found.end()};
}

/// Calls body(message, number) for each message with another rank; `number` counts the messages of a pair. Starts with
/// the rank after `rank`, so that ranks do not all send to the same one.
template <class Body>
void for_each_message(std::span<const Message> messages, int rank, Body&& body) {
  const auto after = std::ranges::upper_bound(messages, rank, {}, &Message::peer) - messages.begin();
  int peer = rank;
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[(static_cast<std::size_t>(after) + i) % messages.size()];
    if (message.peer == rank) return;
    number = message.peer == peer ? number + 1 : 0;
    peer = message.peer;
    body(message, number);
  }
}

template <class Byte>
std::span<Byte> piece_of(std::span<Byte> buffer, const Range& bytes) {
  return buffer.subspan(static_cast<std::size_t>(bytes.begin), static_cast<std::size_t>(bytes.size()));
}

/// Copies a piece to another of the same size. std::ranges::copy would copy std::byte by byte.
inline void copy_piece(std::span<const std::byte> from, std::span<std::byte> to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

/// Calls copy(to, from) for each message of `rank` to itself. Throws Error{"invalid_argument"} unless both lists have
/// the same ones.
template <class Copy>
void for_own_messages(std::span<const Message> sends, std::span<const Message> recvs, int rank, Copy&& copy) {
  const auto sent = messages_with(sends, rank), received = messages_with(recvs, rank);
  require(std::ranges::equal(
              sent, received, {}, [](const Message& m) { return m.bytes.size(); },
              [](const Message& m) { return m.bytes.size(); }),
          "invalid_argument", "the messages of a rank to itself differ");
  for (std::size_t i = 0; i < sent.size(); ++i) copy(received[i].bytes, sent[i].bytes);
}

}  // namespace zerofleet
