#include "model/transformer/target_rows.h"

#include <doctest/doctest.h>

#include <random>
#include <span>
#include <vector>

#include "model/transformer/loss_head.h"
#include "test/kernels/every_path.h"
#include "test/kernels/host_matrix.h"
#include "test/kernels/test_machine.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

using Numbers = std::vector<std::int32_t>;

Numbers list_of(std::span<const std::int32_t> values) { return {values.begin(), values.end()}; }

constexpr std::int64_t kHeadHidden = 20, kHeadVocab = 70, kLeafRows = 200;

struct HeadGradients {
  double loss_sum;
  HostMatrix dnormed, dweight;
};

HeadGradients head_gradients(const Context& ctx, HostMatrix& normed, HostMatrix& weight, const Numbers& targets,
                             const LogitRows& at_once) {
  Scratch scratch(ctx);
  ModelConfig config;
  config.hidden_size = kHeadHidden;
  config.vocab_size = kHeadVocab;
  const DType dtype = normed.view().dtype;
  const ModelContext model{ctx, config, dtype, &scratch, nullptr};
  HeadGradients results{0, HostMatrix(dtype, std::ssize(targets), kHeadHidden),
                        HostMatrix(DType::kF32, kHeadVocab, kHeadHidden)};
  LossHead head(model, std::ssize(targets), at_once);
  head.pack(model, weight.view().data);
  const LossHead::Gradients to{results.dnormed.view(), results.dweight.view(), 0.125F};
  head.run(model, normed.view(), targets, &to);
  results.loss_sum = head.result(targets).loss_sum;
  return results;
}

}  // namespace

TEST_CASE("rows with targets are taken in pairs, with at least one row without a target") {
  const TargetRows rows(Numbers{-100, -100, 5, -100, -100, -100, 6, 7, -100, -100}, {2, 5}, 2);
  CHECK(!rows.are_all());
  CHECK(list_of(rows.rows()) == Numbers{2, 3, 6, 7});
  CHECK(rows.targets() == Numbers{5, -100, 6, 7});
  CHECK(list_of(rows.sequences()) == Numbers{0, 0, 1, 1});
  CHECK(list_of(rows.indices()) == Numbers{1, 1, 0, 1, 1, 1, 2, 3, 1, 1});

  const TargetRows whole_pairs(Numbers{1, 2, -100, -100, 3, 4, -100, -100}, {2, 4}, 2);
  CHECK(list_of(whole_pairs.rows()) == Numbers{0, 1, 4, 5, 0, 0});
  CHECK(whole_pairs.targets() == Numbers{1, 2, 3, 4, -100, -100});
  CHECK(list_of(whole_pairs.indices()) == Numbers{0, 1, 4, 4, 2, 3, 4, 4});
}

TEST_CASE("the number of rows is a multiple of the unit, or all rows are taken") {
  Numbers targets(100, -100);
  targets[40] = 3;
  const TargetRows few(targets, {2, 50}, 64);
  CHECK(few.rows().size() == 64);
  CHECK(few.targets()[0] == 3);
  CHECK(few.targets()[63] == -100);
  const TargetRows none(Numbers(100, -100), {2, 50}, 2);
  CHECK(none.targets() == Numbers(2, -100));
  CHECK(list_of(none.indices()) == Numbers(100, 0));
  for (const std::int64_t unit : {2, 64}) {
    const TargetRows all(Numbers(64, 1), {2, 32}, unit);
    CHECK(all.are_all());
    CHECK(all.rows().size() == 64);
    CHECK(all.rows()[63] == 63);
    CHECK(all.sequences()[32] == 1);
  }
  CHECK(TargetRows(Numbers{-100, 4, 5}, {1, 3}, 2).are_all());
}

TEST_CASE("the sequence of a row follows from where sequences end") {
  const std::vector<std::int64_t> ends{3, 3, 8};
  const TargetRows rows(Numbers{-100, -100, 5, 6, -100, -100, 7, 8}, {3, 5, ends}, 2);
  CHECK(list_of(rows.rows()) == Numbers{2, 3, 6, 7, 0, 0});
  CHECK(list_of(rows.sequences()) == Numbers{0, 2, 2, 2, 0, 0});
}

TEST_CASE("the loss head has the same bits with the rows that have targets alone") {
  for (const CpuIsa isa : available_isas()) {
    for (const DType dtype : kAllDTypes) {
      CAPTURE(name_of(isa));
      const Machine machine(isa, 2);
      std::mt19937 random(71);
      HostMatrix normed = HostMatrix::random(dtype, kLeafRows, kHeadHidden, random),
                 weight = HostMatrix::random(dtype, kHeadVocab, kHeadHidden, random);
      Numbers targets;
      for (std::int64_t row = 0; row < kLeafRows; ++row)
        targets.push_back(random() % 3 == 0 ? static_cast<std::int32_t>(random() % kHeadVocab) : -100);
      const HeadGradients all = head_gradients(machine.ctx, normed, weight, targets, {64, 128});
      const TargetRows rows(targets, {4, kLeafRows / 4}, 2);
      REQUIRE(rows.rows().size() < 150);
      const auto count = std::ssize(rows.rows());
      HostMatrix picked(dtype, count, kHeadHidden);
      for (std::int64_t row = 0; row < count; ++row) {
        for (std::int64_t k = 0; k < kHeadHidden; ++k)
          picked.set(row, k, normed.at(rows.rows()[static_cast<std::size_t>(row)], k));
      }
      const HeadGradients few = head_gradients(machine.ctx, picked, weight, rows.targets(), {64, 64});
      CHECK(few.loss_sum == all.loss_sum);
      CHECK(few.dweight == all.dweight);
      for (std::int64_t row = 0; row < kLeafRows; ++row) {
        for (std::int64_t k = 0; k < kHeadHidden; ++k)
          REQUIRE(few.dnormed.at(rows.indices()[static_cast<std::size_t>(row)], k) == all.dnormed.at(row, k));
      }
    }
  }
}
