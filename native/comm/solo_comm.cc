#include "comm/solo_comm.h"

#include "comm/exchange_check.h"

namespace zerofleet {
namespace {

class SoloComm final : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }

  void all_to_all(std::span<const std::byte> send, std::span<const Range> send_bytes, std::span<std::byte> recv,
                  std::span<const Range> recv_bytes) override {
    check_pieces(send_bytes, 1, send.size(), "send");
    check_pieces(recv_bytes, 1, recv.size(), "recv");
    require(send_bytes[0].size() == recv_bytes[0].size(), "invalid_argument", "the own piece has two sizes");
    copy_piece(piece_of(send, send_bytes[0]), piece_of(recv, recv_bytes[0]));
  }

  void all_gathers(std::span<const Gather> gathers) override { check_gathers(gathers, 1); }

  void barrier() override {}
  bool queue_on(QueuedExchanges*) override { return true; }  // there is nothing to queue
  void abort() override {}  // it never waits
};

}  // namespace

std::unique_ptr<Communicator> make_solo_comm() { return std::make_unique<SoloComm>(); }

}  // namespace zerofleet
