#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/error.h"
#include "test/train/tiny_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// Evaluations before the first step and after each of two, as every rank got them.
std::vector<std::vector<EvalResult>> evaluations(TinyJob& job, int world_size, int num_threads) {
  std::vector<std::vector<EvalResult>> of_ranks;
  std::mutex mutex;
  job.on_ranks(world_size, num_threads, [&](Trainer& trainer) {
    trainer.initialize();
    std::vector<EvalResult> results = {trainer.evaluate(0)};
    for (int step = 0; step < 2; ++step) {
      trainer.step(0);
      results.push_back(trainer.evaluate(0));
    }
    const std::lock_guard lock(mutex);
    of_ranks.push_back(results);
  });
  return of_ranks;
}

}  // namespace

TEST_CASE("evaluation gives the same bits on every rank of 1 to 7, with 1 or 2 threads, and learns with the training") {
  for (const DType precision : {DType::kBF16, DType::kF32}) {
    TinyJob job(precision);
    const auto expected = evaluations(job, 1, 1).front();
    REQUIRE(expected.size() == 3);
    CHECK(expected[0].num_sequences == 9);  // an uneven number: the last of five leaves is half empty
    CHECK(expected[0].num_targets == 9 * 17);
    CHECK(std::abs(expected[0].loss - std::log(101.0)) < 0.3);  // fresh weights guess
    CHECK(expected[2].loss != expected[0].loss);
    for (const int world_size : {2, 3, 7}) {
      for (const auto& results : evaluations(job, world_size, world_size == 3 ? 2 : 1)) {
        CAPTURE(world_size);
        for (std::size_t i = 0; i < expected.size(); ++i) CHECK(results[i].loss == expected[i].loss);
      }
    }
  }
}

TEST_CASE("evaluation changes nothing of the training") {
  TinyJob job(DType::kBF16);
  const std::string plain = job.digests_of_run(2, 1, 3).back();
  Digest128 digest{};
  std::mutex mutex;
  job.on_ranks(2, 1, [&](Trainer& trainer) {
    trainer.initialize();
    for (int step = 0; step < 3; ++step) {
      trainer.evaluate(0);
      trainer.step(0);
    }
    const std::lock_guard lock(mutex);
    digest += trainer.digest_part();
  });
  CHECK(digest.to_hex() == plain);
}

TEST_CASE("each evaluation file has the loss that it has alone, on 1 to 3 ranks and in any order") {
  TinyJob job(DType::kBF16);
  const std::vector<std::vector<std::string>> files = {job.config.evaluation_files.front(),
                                                       {job.config.training_files.front().path}};
  const auto results_of = [&](const std::vector<std::vector<std::string>>& evaluated, int world_size,
                              const std::vector<std::size_t>& order) {
    job.config.evaluation_files = evaluated;
    std::vector<EvalResult> results(evaluated.size());
    job.on_ranks(world_size, 1, [&](Trainer& trainer) {
      trainer.initialize();
      trainer.step(0);
      for (const std::size_t file : order) {
        const EvalResult result = trainer.evaluate(file);
        if (trainer.config().rank == 0) results[file] = result;
      }
    });
    return results;
  };
  const EvalResult first = results_of({files[0]}, 1, {0})[0], second = results_of({files[1]}, 1, {0})[0];
  CHECK(first.num_sequences == 9);
  CHECK(second.num_sequences == 23);
  CHECK(first.loss != second.loss);
  for (const int world_size : {1, 2, 3}) {
    for (const auto& order : {std::vector<std::size_t>{0, 1}, std::vector<std::size_t>{1, 0}}) {
      CAPTURE(world_size);
      const auto both = results_of(files, world_size, order);
      CHECK(both[0].loss == first.loss);
      CHECK(both[1].loss == second.loss);
    }
  }
}

TEST_CASE("the files of an evaluation are evaluated as one") {
  TinyJob job(DType::kF32);
  const std::string one = job.config.evaluation_files.front().front(), other = job.config.training_files.front().path;
  const auto result_of = [&](const std::vector<std::string>& files, int world_size) {
    job.config.evaluation_files = {files};
    EvalResult result;
    job.on_ranks(world_size, 1, [&](Trainer& trainer) {
      trainer.initialize();
      const EvalResult of_rank = trainer.evaluate(0);
      if (trainer.config().rank == 0) result = of_rank;
    });
    return result;
  };
  const EvalResult first = result_of({one}, 1), second = result_of({other}, 1), both = result_of({one, other}, 1);
  CHECK(both.num_sequences == first.num_sequences + second.num_sequences);
  CHECK(both.num_targets == first.num_targets + second.num_targets);
  const double sum =
      first.loss * static_cast<double>(first.num_targets) + second.loss * static_cast<double>(second.num_targets);
  CHECK(both.loss == doctest::Approx(sum / static_cast<double>(both.num_targets)).epsilon(1e-6));
  CHECK(result_of({one, other}, 3).loss == both.loss);
}

TEST_CASE("the loss is the mean over the targets that count, however they are spread over sequences") {
  TinyJob job(DType::kF32);
  // Three sequences; in the second one target alone counts.
  TokenTables tables = cut_into_sequences(std::vector<std::uint32_t>(17 * 3 + 1, 5), 17);
  tables.counts.assign(17 * 3 + 1, true);
  for (std::size_t position = 19; position <= 34; ++position) tables.counts[position] = false;
  const TemporaryFile all(bytes_of(tables));
  job.config.evaluation_files = {{all.path()}};
  std::map<std::string, EvalResult> results;
  const auto evaluate_on = [&](const std::string& path) {
    job.config.evaluation_files = {{path}};
    job.on_ranks(1, 1, [&](Trainer& trainer) {
      trainer.initialize();
      results[path] = trainer.evaluate(0);
    });
    return results[path];
  };
  const EvalResult whole = evaluate_on(all.path());
  CHECK(whole.num_targets == 17 + 1 + 17);
  double sum = 0;
  for (const std::uint64_t sequence : {0, 17, 34}) {
    tables.sequences = {sequence};
    const TemporaryFile part(bytes_of(tables));
    const EvalResult result = evaluate_on(part.path());
    sum += result.loss * static_cast<double>(result.num_targets);
  }
  CHECK(whole.loss == doctest::Approx(sum / 35).epsilon(1e-6));
}

TEST_CASE("documents in one sequence do not see each other, and packing does not change the loss") {
  TinyJob job(DType::kF32);
  const auto loss_of = [&](const TokenTables& tables) {
    const TemporaryFile file(bytes_of(tables));
    job.config.evaluation_files = {{file.path()}};
    EvalResult result;
    job.on_ranks(1, 1, [&](Trainer& trainer) {
      trainer.initialize();
      result = trainer.evaluate(0);
    });
    return result;
  };
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < 17; ++i) tokens.push_back((i * 29 + 7) % 101);
  TokenTables packed;
  packed.tokens = tokens;
  packed.sequence_length = 17;
  packed.sequences = {0};
  packed.documents = {0, 6, 11};
  TokenTables apart = packed;
  apart.sequences = packed.documents;
  TokenTables one = packed;
  one.documents = {0};
  CHECK(loss_of(packed).num_targets == 14);
  CHECK(loss_of(apart).num_targets == 14);
  CHECK(loss_of(packed).loss == doctest::Approx(loss_of(apart).loss).epsilon(1e-6));
  CHECK(loss_of(one).num_targets == 16);
}

TEST_CASE("training on packed documents with a loss mask gives the same bits on 1, 2 and 5 ranks") {
  TinyJob job(DType::kBF16);
  TokenTables tables;
  tables.sequence_length = 17;
  tables.documents.clear();
  for (std::uint32_t i = 0; i < 17 * 30; ++i) {
    if (i % 7 == 0) tables.documents.push_back(i);
    if (i % 14 == 0) tables.sequences.push_back(i);  // two documents and padding in each
    tables.tokens.push_back((i * i + 3) % 101);
    tables.counts.push_back(i % 7 > 2);
  }
  const TemporaryFile file(bytes_of(tables));
  const auto plain = job.digests_of_run(1, 1, 4);
  job.config.training_files = {{file.path()}};
  const auto expected = job.digests_of_run(1, 1, 4);
  CHECK(expected != plain);
  for (const int world_size : {2, 5}) CHECK(job.digests_of_run(world_size, 2, 4) == expected);
}

TEST_CASE("evaluation without data, or where nothing counts, is a typed error") {
  TinyJob job(DType::kF32);
  const auto code_of = [&] {
    std::string code = "none";
    job.on_ranks(1, 1, [&](Trainer& trainer) {
      trainer.initialize();
      try {
        trainer.evaluate(0);
      } catch (const Error& error) {
        code = error.code();
      }
    });
    return code;
  };
  CHECK(code_of() == "none");
  TokenTables tables = cut_into_sequences(std::vector<std::uint32_t>(18, 5), 17);
  tables.counts.assign(18, false);
  const TemporaryFile file(bytes_of(tables));
  job.config.evaluation_files = {{file.path()}};
  CHECK(code_of() == "no_targets");
  job.config.evaluation_files.clear();
  CHECK(code_of() == "no_evaluation_data");
}
