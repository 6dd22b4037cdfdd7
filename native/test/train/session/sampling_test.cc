// Answers from the parameters of a session: their log-probabilities are those of its passes.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "test/error_code.h"
#include "test/model/family_configs.h"
#include "test/train/session/session_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

std::vector<SequenceRequest> requests_of(std::int64_t vocab_size, std::size_t count = 5) {
  std::vector<SequenceRequest> requests(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto token = [&](std::size_t at) {
      return static_cast<std::int32_t>((7 * i + 3 * at + 1) % static_cast<std::size_t>(vocab_size));
    };
    for (std::size_t at = 0; at < 1 + 2 * i % 7; ++at) requests[i].prompt.push_back(token(at));
    requests[i].max_tokens = static_cast<std::int64_t>(10 - i % 3);
    requests[i].draw.seed = 5 + i;
    if (i == 1) requests[i].draw.temperature = 0;
    if (i == 2) requests[i].draw.top_k = 5;
    if (i == 3) requests[i].draw.top_p = 0.7;
  }
  return requests;
}

/// Rows of the answers; only their tokens are targets.
PassRows rows_of(const std::vector<SequenceRequest>& requests, const std::vector<SampledAnswer>& answers) {
  PassRows rows;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    std::vector<std::int32_t> all = requests[i].prompt;
    all.insert(all.end(), answers[i].tokens.begin(), answers[i].tokens.end());
    rows.lengths.push_back(static_cast<std::int32_t>(all.size() - 1));
    rows.tokens.insert(rows.tokens.end(), all.begin(), all.end() - 1);
    for (std::size_t at = 1; at < all.size(); ++at)
      rows.targets.push_back(at < requests[i].prompt.size() ? -100 : all[at]);
  }
  return rows;
}

/// Samples before and after a step, and compares with passes.
void check_log_probs(Trainer& trainer) {
  const std::int64_t vocab_size = trainer.config().model.vocab_size;
  const PassLoss loss{PassLossKind::kCrossEntropy};
  for (int step = 0; step < 2; ++step) {
    const auto requests = requests_of(vocab_size);
    const auto answers = trainer.sample(requests);
    const PassRows rows = rows_of(requests, answers);
    const PassResult pass = trainer.passes().forward_backward(loss, rows);
    std::vector<float> of_passes, of_answers;
    for (std::size_t at = 0; at < rows.targets.size(); ++at) {
      if (rows.targets[at] >= 0) of_passes.push_back(pass.log_probs[at]);
    }
    for (const SampledAnswer& answer : answers) {
      of_answers.insert(of_answers.end(), answer.log_probs.begin(), answer.log_probs.end());
    }
    CAPTURE(trainer.config().model.naming);
    CAPTURE(of_answers.size());
    CHECK(of_answers == of_passes);
    CHECK(trainer.optim_step(3e-2, kUpdate).finite);
  }
}

void without_dropout(ModelConfig& model) {
  model.embedding_dropout = model.attention_dropout = model.residual_dropout = 0;
}

}  // namespace

TEST_CASE("sampling: log-probabilities have the bits of the next pass, in every family, with and without adapters") {
  for (const auto& [name, model] : family_configs()) {
    for (const DType precision : {DType::kBF16, DType::kF32}) {
      CAPTURE(name + " " + name_of(precision));
      SessionJob job(precision);
      job.config.model = model;
      without_dropout(job.config.model);
      const auto check = [](Trainer& trainer, SessionRecord&) { check_log_probs(trainer); };
      job.run(1, 2, check);
      job.add_adapter(precision == DType::kBF16 ? QuantFormat::kNf4 : QuantFormat::kInt8);
      job.run(1, 2, check);
    }
  }
}

TEST_CASE("sampling: with magnitudes, saved modules and a base that is not quantized, too") {
  SessionJob job;
  job.add_adapter();
  job.config.model.adapter->type = AdapterType::kDora;
  job.config.model.adapter->modules_to_save = {"norm"};
  job.run(1, 2, [](Trainer& trainer, SessionRecord&) { check_log_probs(trainer); });
}

TEST_CASE("sampling: answers are equal on 1, 2, 3 and 7 ranks and every path, and change nothing") {
  for (const CpuIsa isa : available_isas()) {
    CAPTURE(name_of(isa));
    SessionJob job(DType::kBF16, isa);
    job.add_adapter(QuantFormat::kNf4);
    const PassLoss loss{PassLossKind::kCrossEntropy};
    const auto train = [&](Trainer& trainer, SessionRecord& record, const std::function<void()>& between) {
      for (std::uint64_t step = 0; step < 2; ++step) {
        record.add(trainer.passes().forward_backward(loss, random_rows(step, 3, loss)));
        between();
        record.add(trainer.optim_step(1e-2, kUpdate));
        record.add_digest(trainer);
      }
    };
    const auto sampled = [&](Trainer& trainer, SessionRecord& record) {
      train(trainer, record, [&] {
        record.add(trainer.sample(requests_of(101)));
        record.add(trainer.sample({}));
      });
    };
    const auto expected = job.run(1, 1, sampled);
    for (const int world_size : {2, 3, 7}) CHECK(job.run(world_size, 2, sampled) == expected);
    const auto ignored = [&](Trainer& trainer, SessionRecord& record) {
      train(trainer, record, [&] { trainer.sample(requests_of(101)); });
    };
    const auto plain = [&](Trainer& trainer, SessionRecord& record) { train(trainer, record, [] {}); };
    CHECK(job.run(2, 1, ignored) == job.run(2, 1, plain));
  }
}

TEST_CASE("sampling: more answers than run at once have the bits of single ones") {
  SessionJob job;
  job.run(1, 2, [](Trainer& trainer, SessionRecord&) {
    std::vector<SequenceRequest> many(70, requests_of(101, 1).front());
    for (std::size_t i = 0; i < many.size(); ++i) many[i].draw.seed = i;
    const auto answers = trainer.sample(many);
    for (const std::size_t number : {0, 33, 69}) {
      const auto alone = trainer.sample(std::span(many).subspan(number, 1));
      CHECK(alone.front().tokens == answers[number].tokens);
      CHECK(alone.front().log_probs == answers[number].log_probs);
    }
    CHECK(answers[0].tokens != answers[1].tokens);
  });
}

TEST_CASE("sampling: answers end with a stop token, at max_tokens, or where the model's positions end") {
  SessionJob job;
  job.run(2, 1, [](Trainer& trainer, SessionRecord&) {
    auto requests = requests_of(101, 2);
    requests[0].max_tokens = 1000;
    const auto plain = trainer.sample(requests);
    CHECK(requests[0].prompt.size() + plain[0].tokens.size() == 64);
    CHECK(plain[0].finish == Finish::kLength);
    CHECK(plain[1].tokens.size() == 9);
    requests[0].end_tokens = {plain[0].tokens[4]};
    const auto ended = trainer.sample(requests);
    const auto first = std::ranges::find(plain[0].tokens, plain[0].tokens[4]) - plain[0].tokens.begin();
    CHECK(std::ssize(ended[0].tokens) == first + 1);
    CHECK(ended[0].tokens.back() == plain[0].tokens[4]);
    CHECK(ended[0].finish == Finish::kEndToken);
    CHECK(ended[1].tokens == plain[1].tokens);
  });
}

TEST_CASE("sampling: requests that cannot be are refused on every rank") {
  SessionJob job;
  job.run(3, 1, [](Trainer& trainer, SessionRecord&) {
    const auto code_with = [&](const std::function<void(SequenceRequest&)>& change) {
      auto requests = requests_of(101, 4);
      change(requests[2]);
      return code_of([&] { trainer.sample(requests); });
    };
    CHECK(code_with([](SequenceRequest& r) { r.prompt.clear(); }) == "invalid_argument");
    CHECK(code_with([](SequenceRequest& r) { r.max_tokens = 0; }) == "invalid_argument");
    CHECK(code_with([](SequenceRequest& r) { r.draw.top_p = 0; }) == "invalid_argument");
    CHECK(code_with([](SequenceRequest& r) { r.prompt[0] = 101; }) == "token_out_of_vocab");
    CHECK(code_with([](SequenceRequest& r) { r.prompt.assign(64, 1); }) == "prompt_too_long");
    CHECK(code_with([](SequenceRequest&) {}) == "none");
  });
}
