#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "test/devices_here.h"
#include "test/kernels/test_machine.h"
#include "test/model/golden_model.h"

namespace zerofleet::test {

/// The golden files of make_golden_families.py, which alone have an auxiliary loss.
inline std::vector<std::string> family_files() {
  std::vector<std::string> names = golden_files_with({"aux_loss"});
  REQUIRE(names.size() >= 10);
  return names;
}

/// The golden files of make_golden_adapters.py.
inline std::vector<std::string> adapter_files() {
  std::vector<std::string> names = golden_files_with({"adapter.rank", "loss_sum"});
  REQUIRE(names.size() >= 10);
  return names;
}

/// Calls body(file, model) with the model of each golden file on each instruction-set path and each CUDA device.
/// options_of(file): those of the model.
template <class Names, class OptionsOf, class Body>
void on_every_golden(const Names& names, DType dtype, const OptionsOf& options_of, const Body& body) {
  for (const auto& entry : names) {
    const std::string name = entry;
    const GoldenFile golden(name);
    const TransformerOptions options = options_of(golden);
    for (const Device device : cuda_devices_here()) {
      CAPTURE(name + " on " + to_string(device));
      DeviceMachine machine(device);
      GoldenModel model(golden, machine.ctx, dtype, options);
      body(golden, model);
    }
    if (!cpu_is_tested()) continue;
    for (const CpuIsa isa : available_isas()) {
      CAPTURE(name + " on " + name_of(isa));
      Machine machine(isa, 2);
      GoldenModel model(golden, machine.ctx, dtype, options);
      body(golden, model);
    }
  }
}

}  // namespace zerofleet::test
