#include "binding/training/connect_ranks.h"

#include "comm/gloo_comm.h"
#include "comm/nccl_comm.h"
#include "comm/solo_comm.h"
#include "kernels/backends/numerics.h"
#include "train/same_numerics.h"

namespace zerofleet::binding {
namespace {

TrainerComms connect_through_gloo(const GlooOptions& options, int num_sets, KvStore& store) {
  TrainerComms comms(connect_gloo(options, store));
  if (num_sets == 1) return comms;
  comms.same_experts = connect_gloo_group(options, num_sets, store);
  comms.all_experts = connect_gloo_neighbours(options, num_sets, store);
  return comms;
}

TrainerComms connect_through_nccl(const NcclOptions& options, int num_sets, KvStore& store) {
  TrainerComms comms(connect_nccl(options, store));
  if (num_sets == 1) return comms;
  comms.same_experts = connect_nccl_group(options, num_sets, store);
  comms.all_experts = connect_nccl_neighbours(options, num_sets, store);
  return comms;
}

}  // namespace

void check_backend(const std::string& backend, const TrainerConfig& config) {
  const bool is_cuda = config.device.kind == DeviceKind::kCuda;
  const bool is_solo = backend == "solo" && config.world_size == 1;
  require(is_solo || backend == (is_cuda ? "nccl" : "gloo"), "invalid_argument",
          "comm.backend must be 'gloo' on CPUs and 'nccl' on CUDA devices, or "
          "'solo' for one rank");
}

TrainerComms connect_ranks(Session& session) {
  if (session.backend == "solo") return make_solo_comm();
  KvStore& store = *session.rendezvous;
  const TrainerConfig& config = session.config;
  require_same_numerics(store, config.rank, numerics_fingerprint(config.device, config.cpu_isa), session.gloo.timeout);
  const int num_sets = config.zero.expert_parallel_size;
  if (session.backend == "gloo") return connect_through_gloo(session.gloo, num_sets, store);
  const GlooOptions& common = session.gloo;
  return connect_through_nccl({config.rank, config.world_size, config.device, common.timeout, {}, common.bind_address},
                              num_sets, store);
}

}  // namespace zerofleet::binding
