#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "bench/device_machine.h"
#include "comm/communicator.h"
#include "core/cuda/cuda_runtime.h"
#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/device/transfer.h"

namespace zerofleet::bench {

/// Lets ranks that share one device meet over a communicator of host memory: whatever a collective touches is copied to
/// the host before and back after it. So a whole world runs on one GPU, which NCCL does not allow.
class DeviceRanks final : public Communicator {
 public:
  /// `context` belongs to the thread that exchanges; `is_device_memory` tells device memory from host memory.
  using IsDeviceMemory = bool (*)(const void*);
  DeviceRanks(const Context& context, Communicator& host, IsDeviceMemory is_device_memory)
      : context_(context), host_(host), is_device_memory_(is_device_memory) {}
  /// Gives each rank its own stream and communicator.
  DeviceRanks(Device device, std::unique_ptr<Communicator> host)
      : machine_(std::make_unique<DeviceMachine>(device)),
        owned_(std::move(host)),
        context_(machine_->ctx),
        host_(*owned_),
        is_device_memory_(cuda::is_device_memory) {}

  int rank() const override { return host_.rank(); }
  int world_size() const override { return host_.world_size(); }

  void all_to_all(std::span<const std::byte> send, std::span<const Message> sends, std::span<std::byte> recv,
                  std::span<const Message> recvs) override {
    const std::vector<std::byte> source = fetched(send, bytes_of(sends));
    std::vector<std::byte> target(recv.size());
    host_.all_to_all(source, sends, target, recvs);
    store(target, recv, bytes_of(recvs));
  }

  void all_gathers(std::span<const Gather> gathers) override {
    std::vector<std::vector<std::byte>> copies;
    std::vector<Gather> on_host;
    for (const auto& [data, pieces_bytes] : gathers) {
      copies.push_back(fetched(data, pieces_bytes));
      on_host.push_back({copies.back(), pieces_bytes});
    }
    host_.all_gathers(on_host);
    for (std::size_t i = 0; i < gathers.size(); ++i) store(copies[i], gathers[i].data, gathers[i].pieces_bytes);
  }

  void barrier() override { host_.barrier(); }
  void abort() override { host_.abort(); }

 private:
  static std::vector<Range> bytes_of(std::span<const Message> messages) {
    std::vector<Range> ranges;
    for (const Message& message : messages) ranges.push_back(message.bytes);
    return ranges;
  }
  Device device_of(std::span<const std::byte> bytes) const {
    return !bytes.empty() && is_device_memory_(bytes.data()) ? context_.device : Device{};
  }
  /// Returns a buffer as long as `bytes` with only the pieces copied: a collective may be using the rest meanwhile.
  std::vector<std::byte> fetched(std::span<const std::byte> bytes, std::span<const Range> pieces) const {
    std::vector<std::byte> copy(bytes.size());
    for (const Range& piece : pieces) {
      copy_bytes(context_, part(std::span(copy), piece), Device{}, part(bytes, piece), device_of(bytes));
    }
    return copy;
  }
  void store(std::span<const std::byte> values, std::span<std::byte> bytes, std::span<const Range> pieces) const {
    for (const Range& piece : pieces) {
      copy_bytes(context_, part(bytes, piece), device_of(bytes), part(values, piece), Device{});
    }
  }
  template <class Byte>
  static std::span<Byte> part(std::span<Byte> bytes, const Range& piece) {
    return bytes.subspan(static_cast<std::size_t>(piece.begin), static_cast<std::size_t>(piece.end - piece.begin));
  }

  std::unique_ptr<DeviceMachine> machine_;
  std::unique_ptr<Communicator> owned_;
  Context context_;
  Communicator& host_;
  IsDeviceMemory is_device_memory_;
};

}  // namespace zerofleet::bench
