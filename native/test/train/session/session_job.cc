#include "test/train/session/session_job.h"

#include <doctest/doctest.h>

#include <cstring>
#include <numeric>
#include <utility>

#include "core/philox.h"
#include "test/model/family_configs.h"

namespace zerofleet::test {
namespace {

template <class T>
void append_bits(std::string& line, const std::vector<T>& values) {
  line.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace

std::vector<PassLoss> pass_losses() {
  using Kind = PassLossKind;
  return {{Kind::kCrossEntropy},
          {Kind::kImportanceSampling},
          {Kind::kPpo, 0.2, 0.28},
          {Kind::kCispo, 0.2, 0.28},
          {Kind::kDpo, 0, 0, 0.3}};
}

PassRows random_rows(std::uint64_t seed, std::int64_t num_rows, const PassLoss& loss, std::int64_t vocab_size) {
  PassRows rows;
  std::uint32_t count = 0;
  const auto uniform = [&] { return uniform_open(philox(seed, {count++, 0, 0, 0})[0]); };
  const auto below = [&](std::int64_t end) { return static_cast<std::int32_t>(uniform() * static_cast<double>(end)); };
  for (std::int64_t row = 0; row < num_rows; ++row) {
    const std::int32_t length = 1 + below(17);
    rows.lengths.push_back(length);
    for (std::int32_t i = 0; i < length; ++i) {
      rows.tokens.push_back(below(vocab_size));
      // The last one of each row has a target, so that no row of a pair is without.
      rows.targets.push_back(i + 1 < length && uniform() < 0.25 ? -100 : below(vocab_size));
      if (loss.reads_weights()) rows.weights.push_back(static_cast<float>(uniform()));
      if (loss.reads_log_probs()) rows.log_probs.push_back(static_cast<float>(-4.6 + 0.8 * (uniform() - 0.5)));
      if (loss.reads_advantages()) rows.advantages.push_back(static_cast<float>(uniform() - 0.5));
    }
  }
  return rows;
}

PassRows picked_rows(const PassRows& rows, const std::vector<std::size_t>& numbers) {
  PassRows picked;
  for (const std::size_t number : numbers) {
    const auto begin = std::accumulate(rows.lengths.begin(), rows.lengths.begin() + static_cast<std::ptrdiff_t>(number),
                                       std::ptrdiff_t{0});
    const std::int32_t length = rows.lengths[number];
    picked.lengths.push_back(length);
    const auto copy = [&](const auto& from, auto& to) {
      if (!from.empty()) to.insert(to.end(), from.begin() + begin, from.begin() + begin + length);
    };
    copy(rows.tokens, picked.tokens);
    copy(rows.targets, picked.targets);
    copy(rows.weights, picked.weights);
    copy(rows.log_probs, picked.log_probs);
    copy(rows.advantages, picked.advantages);
  }
  return picked;
}

void SessionRecord::add(const PassResult& result) {
  std::string line = "pass ";
  append_bits(line, std::vector<double>{result.loss, static_cast<double>(result.num_targets)});
  append_bits(line, result.log_probs);
  for (const auto& [name, value] : result.metrics) {
    line += name;
    append_bits(line, std::vector<double>{value});
  }
  lines_.push_back(std::move(line));
}

void SessionRecord::add(const StepResult& result) {
  std::string line = "step ";
  append_bits(line, std::vector<double>{static_cast<double>(result.step), result.loss, result.grad_norm, result.lr,
                                        static_cast<double>(result.num_targets), result.finite ? 1.0 : 0.0});
  lines_.push_back(std::move(line));
}

void SessionRecord::add(const std::vector<SampledAnswer>& answers) {
  for (const SampledAnswer& answer : answers) {
    std::string line = answer.finish == Finish::kEndToken ? "ended " : "cut ";
    append_bits(line, answer.tokens);
    append_bits(line, answer.log_probs);
    lines_.push_back(std::move(line));
  }
}

SessionJob::SessionJob(DType precision, CpuIsa isa) : TinyJob(precision, isa) {
  config.session = true;
  config.training_files.clear();
  config.evaluation_files.clear();
  config.batch = {10, 2, 17};
}

void SessionJob::add_adapter(std::optional<QuantFormat> quantization) {
  config.model.adapter = AdapterConfig{3, 0.75, 0, AdapterInit::kKaimingUniform, adapter_targets(config.model, 2), {}};
  config.model.quantization = quantization;
}

std::vector<std::string> SessionJob::run(int world_size, int num_threads, const Script& script) {
  std::vector<SessionRecord> records(static_cast<std::size_t>(world_size));
  on_ranks(world_size, num_threads, [&](Trainer& trainer) {
    trainer.initialize();
    script(trainer, records[static_cast<std::size_t>(trainer.config().rank)]);
  });
  std::vector<std::string> record = records.front().lines_;
  std::vector<Digest128> digests(records.front().digests_.size());
  for (const SessionRecord& of_rank : records) {
    CHECK(of_rank.lines_ == record);
    for (std::size_t i = 0; i < digests.size(); ++i) digests[i] += of_rank.digests_[i];
  }
  for (const Digest128& digest : digests) record.push_back(digest.to_hex());
  return record;
}

}  // namespace zerofleet::test
