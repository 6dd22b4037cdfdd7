#include "comm/counting_comm.h"

#include <utility>

namespace zerofleet {

void CountingComm::all_to_all(std::span<const std::byte> send, std::span<const Message> sends,
                              std::span<std::byte> recv, std::span<const Message> recvs) {
  inner_->all_to_all(send, sends, recv, recvs);
  for (const Message& message : sends) sent_.reduced += message.peer == rank() ? 0 : message.bytes.size();
}

void CountingComm::all_gather(std::span<std::byte> data, std::span<const Range> pieces_bytes) {
  inner_->all_gather(data, pieces_bytes);
  sent_.gathered += pieces_bytes[static_cast<std::size_t>(rank())].size() * (world_size() - 1);
}

SentBytes CountingComm::take() { return std::exchange(sent_, {}); }

}  // namespace zerofleet
