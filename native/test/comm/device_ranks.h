#pragma once

#include <vector>

#include "comm/communicator.h"
#include "core/buffer.h"
#include "core/context.h"
#include "core/transfer.h"

namespace zerofleet::test {

/// Lets ranks that share one device meet over a communicator of host memory: whatever a collective touches is copied to
/// the host before and back after it. So a whole world runs on one GPU, which NCCL does not allow.
class DeviceRanks final : public Communicator {
 public:
  /// `context` is of the thread that exchanges; what lies where is told by `is_device_memory`.
  using IsDeviceMemory = bool (*)(const void*);
  DeviceRanks(const Context& context, Communicator& host, IsDeviceMemory is_device_memory)
      : context_(context), host_(host), is_device_memory_(is_device_memory) {}

  int rank() const override { return host_.rank(); }
  int world_size() const override { return host_.world_size(); }

  void all_to_all(std::span<const std::byte> send, std::span<const Range> send_bytes, std::span<std::byte> recv,
                  std::span<const Range> recv_bytes) override {
    const std::vector<std::byte> source = fetched(send);
    std::vector<std::byte> target = fetched(recv);
    host_.all_to_all(source, send_bytes, target, recv_bytes);
    store(target, recv);
  }

  void all_gather(std::span<std::byte> data, std::span<const Range> pieces_bytes) override {
    std::vector<std::byte> copy = fetched(data);
    host_.all_gather(copy, pieces_bytes);
    store(copy, data);
  }

  void reduce_scatter(std::span<std::byte> data, std::span<const Range> pieces_bytes, const ReduceFn& add) override {
    std::vector<std::byte> copy = fetched(data);
    host_.reduce_scatter(copy, pieces_bytes, [&](std::span<std::byte> sum, std::span<const std::byte> addend) {
      Buffer sum_there(context_.device, sum.size()), addend_there(context_.device, addend.size());
      const std::span<std::byte> a(sum_there.data(), sum.size()), b(addend_there.data(), addend.size());
      store(sum, a);
      store(addend, b);
      add(a, b);
      copy_bytes(context_, sum, Device{}, a, context_.device);
    });
    store(copy, data);
  }

  void barrier() override { host_.barrier(); }

 private:
  Device device_of(std::span<const std::byte> bytes) const {
    return !bytes.empty() && is_device_memory_(bytes.data()) ? context_.device : Device{};
  }
  std::vector<std::byte> fetched(std::span<const std::byte> bytes) const {
    std::vector<std::byte> copy(bytes.size());
    copy_bytes(context_, copy, Device{}, bytes, device_of(bytes));
    return copy;
  }
  void store(std::span<const std::byte> values, std::span<std::byte> bytes) const {
    copy_bytes(context_, bytes, device_of(bytes), values, Device{});
  }

  Context context_;
  Communicator& host_;
  IsDeviceMemory is_device_memory_;
};

}  // namespace zerofleet::test
