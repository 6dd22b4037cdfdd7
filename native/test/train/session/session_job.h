#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "test/train/tiny_job.h"

namespace zerofleet::test {

/// Settings of an update for tests.
inline constexpr UpdateSettings kUpdate{0.9, 0.95, 1e-8, 0.1, 1.0};

/// A loss of each type.
std::vector<PassLoss> pass_losses();
/// A loss with a penalty, which needs an adapter.
inline constexpr PassLoss kPenalized{PassLossKind::kPpo, 0.2, 0.28, 0.3};

/// Random rows that fit the loss: of 1 to 17 tokens, three quarters of which have a target.
PassRows random_rows(std::uint64_t seed, std::int64_t num_rows, const PassLoss& loss, std::int64_t vocab_size = 101);

/// The rows with these numbers.
PassRows picked_rows(const PassRows& rows, const std::vector<std::size_t>& numbers);

/// What a rank of a session records. Ranks agree on the lines; digests are the sums of their shares.
class SessionRecord {
 public:
  void add(const PassResult& result);
  void add(const StepResult& result);
  void add(const std::vector<SampledAnswer>& answers);
  void add_digest(Trainer& trainer) { digests_.push_back(trainer.digest_part()); }

  friend class SessionJob;

 private:
  std::vector<std::string> lines_;
  std::vector<Digest128> digests_;
};

/// A session of TinyJob's model: leaves of two rows, and up to five leaves a pass.
class SessionJob : public TinyJob {
 public:
  explicit SessionJob(DType precision = DType::kBF16, CpuIsa isa = best_cpu_isa());
  /// Gives the model an adapter over a base, which may be quantized.
  void add_adapter(std::optional<QuantFormat> quantization = {});

  using Script = std::function<void(Trainer&, SessionRecord&)>;
  /// Runs a script on every rank with a fresh trainer. Returns the record, which must be the same on all ranks.
  std::vector<std::string> run(int world_size, int num_threads, const Script& script);
};

}  // namespace zerofleet::test
