#pragma once

#include "test/model/family_configs.h"
#include "test/train/tiny_job.h"

namespace zerofleet::test {

/// Mixtral with 4 experts, dropout, and 6 leaves per step; the validation data has an odd number of leaves.
struct ExpertJob : TinyJob {
  explicit ExpertJob(DType precision, int num_sets = 2) : TinyJob(precision) {
    for (const auto& [name, model] : family_configs()) {
      if (name == "mixtral") config.model = model;
    }
    config.model.num_experts = 4;
    config.model.residual_dropout = 0.1;
    config.batch.global_batch_size = 12;
    config.zero.expert_parallel_size = num_sets;
  }
};

}  // namespace zerofleet::test
