#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/philox.h"
#include "test/data/written_tokens.h"
#include "test/model/objective/objective_cases.h"
#include "test/train/tiny_job.h"

namespace zerofleet::test {

/// Prompts and completions of random tokens and lengths, one document each; sequences 2i and 2i + 1 have a prompt in
/// common. The label of a sequence is the bit of its first token.
inline TokenTables preferences(std::uint32_t num_sequences, std::int64_t length, std::uint32_t vocab_size,
                               std::uint64_t seed) {
  TokenTables tables;
  tables.sequence_length = length;
  tables.documents.clear();
  const auto random = [&](std::uint32_t purpose, std::uint32_t number, std::uint32_t position, std::uint32_t below) {
    return philox(seed, {number, position, purpose, 0})[0] % below;
  };
  const auto positions = static_cast<std::uint32_t>(length);
  for (std::uint32_t sequence = 0; sequence < num_sequences; ++sequence) {
    tables.sequences.push_back(tables.tokens.size());
    tables.documents.push_back(tables.tokens.size());
    const std::uint32_t prompt = 1 + random(0, sequence / 2, 0, 5),
                        completion = 1 + random(1, sequence, 0, positions - 5);
    for (std::uint32_t position = 0; position < prompt + completion; ++position) {
      const bool of_prompt = position < prompt;
      tables.tokens.push_back(of_prompt ? random(2, sequence / 2, position, vocab_size)
                                        : random(3, sequence, position, vocab_size));
      tables.counts.push_back(of_prompt ? position == 0 && random(4, sequence, 0, 2) == 1 : true);
    }
  }
  return tables;
}

/// TinyJob with a preference objective: seven leaves per step, of two units each.
class PreferenceJob : public TinyJob {
 public:
  PreferenceJob(const ObjectiveOptions& objective, ReferenceKind reference, DType precision)
      : TinyJob(precision),
        training_(bytes_of(preferences(34, 17, 101, 21))),
        validation_(bytes_of(preferences(10, 17, 101, 22))) {
    config.preference = PreferenceConfig{objective, objective.has_reference() ? reference : ReferenceKind::kNone};
    config.training_files = {{training_.path()}};
    config.evaluation_files = {{validation_.path()}};
    if (reference == ReferenceKind::kBase) add_adapter();
  }

  void add_adapter() {
    config.model.adapter =
        AdapterConfig{3, 2.0, 0, AdapterInit::kKaimingUniform, {"q_proj", "v_proj", "down_proj"}, {}};
  }

 private:
  TemporaryFile training_, validation_;
};

}  // namespace zerofleet::test
