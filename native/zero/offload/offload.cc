#include "zero/offload/offload.h"

#include "zero/offload/host_placement.h"

namespace zerofleet {
namespace {

class InPlace final : public StatePlacement {
 public:
  InPlace(const Context& rank, const Context& comm_thread) : rank_(rank), comm_thread_(comm_thread) {}

  const Context& context() const override { return rank_; }
  Buffer allocate(std::size_t num_bytes, int skew) const override { return Buffer(rank_.device, num_bytes, skew); }
  void fold(const Fold& fold) override { fold_pieces(comm_thread_, fold); }
  bool in_place() const override { return true; }
  std::span<std::byte> open_window(std::span<std::byte> params) override { return params; }
  void close_window() override {}
  void wait_for_windows() override {}
  std::size_t staging_bytes() const override { return 0; }

 private:
  Context rank_, comm_thread_;
};

}  // namespace

std::unique_ptr<StatePlacement> make_state_placement(const Context& rank, const Context& comm_thread, Offload offload) {
  if (offload == Offload::kNone || rank.device.kind == DeviceKind::kCpu) {
    return std::make_unique<InPlace>(rank, comm_thread);
  }
  return std::make_unique<HostPlacement>(rank, comm_thread);
}

}  // namespace zerofleet
