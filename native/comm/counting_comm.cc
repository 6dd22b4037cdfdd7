#include "comm/counting_comm.h"

#include <utility>

namespace zerofleet {

void CountingComm::all_to_all(std::span<const std::byte> send, std::span<const Message> sends,
                              std::span<std::byte> recv, std::span<const Message> recvs) {
  inner_->all_to_all(send, sends, recv, recvs);
  for (const Message& message : sends) sent_.reduced += message.peer == rank() ? 0 : message.bytes.size();
}

void CountingComm::all_gathers(std::span<const Gather> gathers) {
  inner_->all_gathers(gathers);
  for (const Gather& gather : gathers) {
    sent_.gathered += gather.pieces_bytes[static_cast<std::size_t>(rank())].size() * (world_size() - 1);
  }
}

SentBytes CountingComm::take() { return std::exchange(sent_, {}); }

}  // namespace zerofleet
