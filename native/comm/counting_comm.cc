#include "comm/counting_comm.h"

#include <utility>

namespace zerofleet {

std::int64_t CountingComm::bytes_of_others(std::span<const Range> pieces_bytes) const {
  std::int64_t sum = 0;
  for (const Range& piece : pieces_bytes) sum += piece.size();
  return sum - pieces_bytes[static_cast<std::size_t>(rank())].size();
}

void CountingComm::all_to_all(std::span<const std::byte> send, std::span<const Range> send_bytes,
                              std::span<std::byte> recv, std::span<const Range> recv_bytes) {
  inner_->all_to_all(send, send_bytes, recv, recv_bytes);
  sent_.reduced += bytes_of_others(send_bytes);
}

void CountingComm::all_gathers(std::span<const Gather> gathers) {
  inner_->all_gathers(gathers);
  for (const Gather& gather : gathers) {
    sent_.gathered += gather.pieces_bytes[static_cast<std::size_t>(rank())].size() * (world_size() - 1);
  }
}

SentBytes CountingComm::take() { return std::exchange(sent_, {}); }

}  // namespace zerofleet
