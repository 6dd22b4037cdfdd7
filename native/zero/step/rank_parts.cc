#include "zero/step/rank_parts.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/error.h"

namespace zerofleet {
namespace {

/// Bytes of the largest bucket that a rank fills.
std::size_t bucket_bytes(const std::vector<PlannedPart>& plan, int rank, DType reduce_dtype) {
  std::int64_t blocks = 0;
  for (const PlannedPart& part : plan) {
    if (!part.subset.frozen && part.shard_of(rank) >= 0) blocks = std::max(blocks, part.layout.max_bucket_blocks());
  }
  return static_cast<std::size_t>(blocks * kBlockNumel) * size_of(reduce_dtype);
}

/// The schedule among the ranks that hold a part. With P expert sets, P consecutive ranks compute P consecutive leaves
/// together. These are one leaf of the experts, so their numbering does not depend on the world size either.
LeafSchedule schedule_of(const LeafSchedule& all, const ShardLayout& layout) {
  const std::int64_t num_sets = all.world_size() / layout.world_size();
  return {all.num_leaves() / num_sets, all.num_lanes() / num_sets, layout.world_size(), all.lane_group()};
}

/// Communicators of gradients and parameters.
std::vector<Communicator*> communicators_of_parts(const ZeroComms& comms) {
  std::vector<Communicator*> communicators{&comms.world};
  if (comms.expert != nullptr) communicators.push_back(comms.expert);
  return communicators;
}

}  // namespace

RankParts::RankParts(const Context& context, const ZeroComms& comms, const std::vector<PlannedPart>& plan,
                     const LeafSchedule& schedule, const ZeroOptions& options)
    : schedule_(schedule),
      rule_(make_optimizer_rule(options.optimizer)),
      queue_(context, communicators_of_parts(comms)),
      placement_(make_state_placement(context, queue_.context(), options.offload)),
      staging_(context.device, bucket_bytes(plan, comms.world.rank(), options.reduce_dtype)),
      locations_(options.param_groups.settings.size()),
      params_(locations_.size(), nullptr) {
  const PartTools tools{context, queue_, *placement_, windows_, *rule_, options};
  for (const PlannedPart& part : plan) {
    if (part.shard_of(comms.world.rank()) < 0) continue;
    part.subset.quantized ? add_quantized(part, comms, tools) : add_part(part, comms, tools);
  }
  order_ = BucketOrder(buckets_in_order(), [this](const BucketId& id, Buffer contents) {
    trained_[id.part]->reducer().reduce_bucket(scheduled_.round, id.bucket, std::move(contents));
  });
}

// The communication thread uses most of the members; it must be gone before the first of them is.
RankParts::~RankParts() { queue_.close(); }

Communicator& RankParts::communicator_of(const PlannedPart& plan, const ZeroComms& comms) const {
  if (plan.subset.expert_set < 0) return comms.world;
  require(comms.expert != nullptr && comms.expert->world_size() == plan.layout.world_size() &&
              comms.expert->rank() == plan.shard_of(comms.world.rank()),
          "invalid_argument", "expert parallelism needs a communicator of the ranks that hold the same experts");
  return *comms.expert;
}

void RankParts::add_part(const PlannedPart& plan, const ZeroComms& comms, const PartTools& tools) {
  parts_.push_back(std::make_unique<ModelPart>(plan, communicator_of(plan, comms), tools));
  ModelPart& part = *parts_.back();
  TrainedPart* trained = nullptr;
  if (!plan.subset.frozen) {
    const std::size_t index = trained_.size();
    if (plan.subset.expert_set < 0) shared_ = index;
    trained_.push_back(std::make_unique<TrainedPart>(
        part, schedule_of(schedule_, plan.layout), tools, staging_,
        [this, index](std::int64_t bucket, Buffer contents) { order_.add({index, bucket}, std::move(contents)); }));
    trained = trained_.back().get();
  }
  for (std::size_t local = 0; local < plan.subset.params.size(); ++local) {
    const std::size_t param = plan.subset.params[local];
    locations_[param] = {&part, trained, nullptr, local};
    params_[param] = part.params().data(local);
  }
}

void RankParts::add_quantized(const PlannedPart& plan, const ZeroComms& comms, const PartTools& tools) {
  quantized_params_.resize(locations_.size(), nullptr);
  quantized_.push_back(std::make_unique<QuantizedPart>(plan, communicator_of(plan, comms), tools));
  QuantizedPart& part = *quantized_.back();
  for (std::size_t local = 0; local < plan.subset.params.size(); ++local) {
    const std::size_t param = plan.subset.params[local];
    locations_[param] = {nullptr, nullptr, &part, local};
    quantized_params_[param] = &part.matrix(local);
  }
}

std::vector<BucketId> RankParts::buckets_in_order() const {
  // Backward ends with the first parameters, so a bucket is full when the gradient of its first block comes. Buckets
  // are posted in the order in which a backward in canonical order would fill them; ranks that share a part agree on
  // it.
  std::vector<std::pair<std::int64_t, BucketId>> buckets;
  for (std::size_t index = 0; index < trained_.size(); ++index) {
    const ModelPart& part = trained_[index]->part();
    for (std::int64_t bucket = 0; bucket < part.layout().num_buckets(); ++bucket) {
      const std::int64_t block = part.layout().bucket_blocks(bucket).begin;
      const std::size_t param = part.layout().param_of_block(block);
      const std::int64_t canonical =
          part.subset().first_blocks[param] + block - part.layout().param_blocks(param).begin;
      buckets.push_back({canonical, {index, bucket}});
    }
  }
  std::ranges::sort(buckets, std::greater(), [](const auto& entry) { return entry.first; });
  std::vector<BucketId> order;
  for (const auto& [block, id] : buckets) order.push_back(id);
  return order;
}

std::vector<GradRole> RankParts::grad_roles() const {
  std::vector<GradRole> roles;
  for (const Location& location : locations_) {
    const bool is_here = location.part != nullptr || location.quantized != nullptr;
    roles.push_back(location.trained ? GradRole::kTrained : is_here ? GradRole::kFrozen : GradRole::kElsewhere);
  }
  return roles;
}

void RankParts::begin_pass(const LeafSchedule& schedule, bool starts_sum) {
  for (const auto& trained : trained_) {
    trained->reducer().begin_pass(schedule_of(schedule, trained->part().layout()), starts_sum);
  }
}

void RankParts::begin_leaf(const ScheduledLeaf& scheduled) {
  scheduled_ = scheduled;
  if (scheduled.last_of_lane) order_.begin();
  for (const auto& part : trained_) part->begin_leaf(scheduled);
}

void RankParts::add_grad(std::size_t param, const GradView& grad) {
  const Location& location = locations_[param];
  location.trained->add_grad(location.local, grad);
}

std::byte* RankParts::room_for(std::size_t param, DType dtype) {
  const Location& location = locations_[param];
  return location.trained == nullptr ? nullptr : location.trained->room_for(location.local, dtype);
}

void RankParts::join_round(std::int64_t round) {
  for (const BucketId& id : order_.order()) trained_[id.part]->reducer().reduce_nothing(round, id.bucket);
}

// Ranks that wait for each other must have one order of all that they exchange. Between two exchanges of rows, ranks of
// all sets fill the same shared buckets, so these are posted between the same exchanges on each rank. The exception
// would be a shared bucket that waits for a bucket of experts, which is full at another time elsewhere. Backward fills
// the buckets of experts first, so no shared bucket waits.
void RankParts::run_exchange(const std::function<void()>& exchange) {
  require(!shared_ || !order_.waits_for_others(*shared_), "internal",
          "a bucket that all ranks share waits for one of experts while rows are exchanged");
  queue_.run(exchange);
}

void RankParts::update(const UpdateScalars& scalars) {
  for (const auto& part : trained_) part->prepare(scalars);
  for (const auto& part : trained_) part->update(scalars);
}

std::vector<TrustRatios> RankParts::trust_ratios(std::size_t num_groups) const {
  if (!rule_->needs_param_norms()) return {};
  std::vector<std::vector<float>> ratios(num_groups);
  for (const auto& part : trained_) {
    const std::span<const ParamSettings> settings = part->part().subset().settings;
    for (std::size_t param = 0; param < settings.size(); ++param) {
      ratios[settings[param].group].push_back(part->trust_ratios()[param]);
    }
  }
  std::vector<TrustRatios> spreads;
  for (auto& of_group : ratios) {
    if (!of_group.empty()) spreads.push_back(spread_of(of_group));
  }
  return spreads;
}

std::vector<StateRange> RankParts::ranges(bool of_base) const {
  std::vector<StateRange> found;
  for (const auto& part : parts_) {
    if (part->subset().base != of_base) continue;
    for (const StateId id : part->states().ids()) {
      for (const ShardSlice& slice : part->states().slices()) {
        found.push_back({id, part->subset().params[slice.param], slice.elements});
      }
    }
  }
  for (const auto& part : quantized_) {
    if (!of_base) break;
    for (const std::size_t local : part->owned())
      found.push_back({StateId::kMaster, part->subset().params[local], {0, part->subset().specs[local].numel()}});
  }
  std::ranges::sort(found, {},
                    [](const StateRange& range) { return std::tuple(range.state, range.param, range.elements.begin); });
  return found;
}

Digest128 RankParts::digest(bool of_base) const {
  Digest128 sum;
  for (const auto& part : parts_) {
    if (part->subset().base == of_base) sum += part->states().digest();
  }
  for (const auto& part : quantized_) {
    if (of_base) sum += part->digest();
  }
  return sum;
}

ZeroMemory RankParts::memory() const {
  ZeroMemory memory;
  for (const auto& part : parts_) {
    (part->params().is_shared() ? memory.shared_params : memory.params) += part->params().num_bytes();
    memory.master += part->states().master_bytes();
    memory.moments += part->states().moment_bytes();
  }
  for (const auto& part : quantized_) (part->is_shared() ? memory.shared_params : memory.params) += part->num_bytes();
  memory.send_staging = staging_.allocated_bytes();
  memory.receive_staging = placement_->staging_bytes();
  for (const auto& part : trained_) {
    memory.grad_shard += part->reducer().grad_shard().size();
    memory.lane_accumulator += part->lane_accumulator_bytes();
    memory.send_staging += part->send_staging_bytes();
    memory.receive_staging += part->receive_staging_bytes();
  }
  return memory;
}

}  // namespace zerofleet
