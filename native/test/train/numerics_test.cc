#include "kernels/backends/numerics.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "test/comm/worlds.h"
#include "test/devices_here.h"
#include "train/same_numerics.h"

using namespace zerofleet;
using namespace zerofleet::test;
using namespace std::chrono_literals;

namespace {

std::vector<std::string> codes_of_ranks(const std::vector<std::string>& fingerprints) {
  RelayedStores stores(static_cast<int>(fingerprints.size()));
  return run_threads(static_cast<int>(fingerprints.size()), [&](int rank) {
    require_same_numerics(stores.store(rank), rank, fingerprints[static_cast<std::size_t>(rank)], 30s);
  });
}

}  // namespace

TEST_CASE(
    "ranks with other numerics than rank 0 are refused; without rank 0 "
    "they give up") {
  const std::string h100 = "cuda-nvidia-h100-sm_90x132-cudart13.0-cublaslt13.1.0/4",
                    older = "cuda-nvidia-h100-sm_90x132-cudart13.0-cublaslt12.9.0/4";
  CHECK(codes_of_ranks({h100, h100, h100}) == std::vector<std::string>{"none", "none", "none"});
  CHECK(codes_of_ranks({h100, older, h100}) == std::vector<std::string>{"none", "numerics_mismatch", "none"});
  KvStore alone([](const std::string&, const KvStore::Bytes&) {});
  CHECK(code_of([&] { require_same_numerics(alone, 1, h100, 10ms); }) == "comm_timeout");
}

DEVICE_TEST_CASE(
    "the numerics of each device have a name of one form; a "
    "device that is not there has none") {
  CHECK(numerics_fingerprint(Device{}, CpuIsa::kGeneric) == numerics_fingerprint(CpuIsa::kGeneric));
  for (const Device& device : cuda_devices_here()) {
    const std::string name = numerics_fingerprint(device, CpuIsa::kGeneric);
    CHECK(name.starts_with("cuda-"));
    CHECK(name.find("-sm_") != std::string::npos);
    CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_./") == std::string::npos);
    CHECK(numerics_fingerprint(device, CpuIsa::kAvx2) == name);
  }
  CHECK(code_of([] { numerics_fingerprint(absent_device(), CpuIsa::kGeneric); }) == "device_unavailable");
}
