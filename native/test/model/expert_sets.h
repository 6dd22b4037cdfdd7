#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "bench/device_ranks.h"
#include "test/comm/worlds.h"
#include "test/devices_here.h"
#include "train/expert_rows_comm.h"

namespace zerofleet::test {

using SetBody = std::function<void(ExpertExchange&, const Context&)>;

/// Runs `body` on P ranks that hold the experts together, on a CUDA device on one that they share; the error code of
/// each.
inline std::vector<std::string> on_sets(int num_sets, const SetBody& body, Device device = {}, int num_threads = 1) {
  return run_thread_world(
      num_sets,
      [&](Communicator& comm) {
        DeviceMachine machine(device, best_cpu_isa(), num_threads);
        bench::DeviceRanks on_device(machine.ctx, comm, cuda::is_device_memory);
        const bool is_cpu = device.kind == DeviceKind::kCpu;
        ExpertRowsComm ranks(is_cpu ? comm : static_cast<Communicator&>(on_device), machine.ctx);
        body(ranks, machine.ctx);
      },
      std::chrono::seconds(30));
}

inline std::vector<std::string> all_well(int num_sets) {
  return std::vector<std::string>(static_cast<std::size_t>(num_sets), "none");
}

}  // namespace zerofleet::test
