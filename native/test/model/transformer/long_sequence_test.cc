// Sequences of 16,384 tokens, against transformers in float64.
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/attention/paged_attention.h"
#include "model/transformer/decoder.h"
#include "test/golden/golden_file.h"
#include "test/kernels/test_machine.h"
#include "test/model/golden_model.h"
#include "test/sanitized.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// Logits after some tokens of a text, which the decoder takes in pieces.
class LongText {
 public:
  LongText(const GoldenFile& golden, const GoldenModel& model, const Context& ctx)
      : tokens_(golden.integers("tokens")),
        length_(golden.integer("length")),
        pages_(static_cast<std::size_t>(length_ / kPageTokens)),
        decoder_(model.decoder(ctx, {kPiece, 1, length_, std::ssize(pages_)})) {
    std::iota(pages_.begin(), pages_.end(), 0);
  }

  std::vector<float> logits_after(std::int64_t row) {
    std::vector<float> logits;
    while (next_ <= row) {
      const std::int64_t count = std::min(kPiece, row + 1 - next_);
      const auto piece = std::span(tokens_).subspan(static_cast<std::size_t>(next_), static_cast<std::size_t>(count));
      const SequenceRows rows[] = {{piece, next_, pages_, next_ + count == row + 1, nullptr, length_}};
      const auto found = decoder_.append(rows);
      next_ += count;
      if (!found.empty()) logits.assign(found.front().logits.begin(), found.front().logits.end());
    }
    return logits;
  }

 private:
  static constexpr std::int64_t kPiece = 500;
  std::vector<std::int32_t> tokens_;
  std::int64_t length_, next_ = 0;
  std::vector<std::int32_t> pages_;
  Decoder decoder_;
};

}  // namespace

TEST_CASE("long sequences: loss, gradients and logits beyond 8,192 positions are those of transformers in float64") {
  const std::vector<std::string> names = golden_files_with({"long_loss_sum"});
  REQUIRE(names.size() == 4);
  for (const std::string& name : names) {
    if (kSanitized && name != "long_window") continue;  // the accesses of the others
    CAPTURE(name);
    const GoldenFile golden(name);
    Machine machine(best_cpu_isa(), 2);
    GoldenModel model(golden, machine.ctx, DType::kF32, {.checkpoint_activations = true});
    const std::vector<std::int32_t> tokens = golden.integers("tokens");
    const auto length = static_cast<std::size_t>(golden.integer("length"));
    std::vector<std::vector<float>> gradients(model.specs().size());
    const LeafResult result = model.model().forward_backward(
        {std::span(tokens).first(length), std::span(tokens).last(length)},
        static_cast<float>(golden.number("grad_scale")),
        [&](std::size_t param, std::span<const float> grad) { gradients[param].assign(grad.begin(), grad.end()); });
    CHECK(result.loss_sum == doctest::Approx(golden.number("long_loss_sum")).epsilon(1e-7));
    for (std::size_t param = 0; param < gradients.size(); ++param) {
      CAPTURE(model.specs()[param].name);
      CHECK(relative_error(gradients[param], golden.floats("grad." + model.specs()[param].name)) < 2e-5);
    }
    LongText text(golden, model, machine.ctx);
    const std::vector<float> expected = golden.floats("logits");
    const std::vector<std::int32_t> rows = golden.integers("rows");
    const auto vocab = static_cast<std::ptrdiff_t>(expected.size() / rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CAPTURE(rows[i]);
      const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(i) * vocab;
      CHECK(relative_error(text.logits_after(rows[i]), {begin, begin + vocab}) < 1e-5);
    }
  }
}
