#include "kernels/attention/paged_attention.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "test/error_code.h"
#include "test/kernels/every_path.h"
#include "test/shared_bytes.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr std::int64_t kNumPages = 40;

AttentionShape shape_of(std::int64_t length, double soft_cap = 0) { return {1, length, 6, 2, 20, 0, soft_cap}; }

struct Text {
  explicit Text(DType dtype, std::int64_t length, unsigned seed = 5)
      : random(seed), qkv(HostMatrix::random(dtype, length, shape_of(length).qkv_size(), random, 3)) {}
  std::mt19937 random;
  HostMatrix qkv;
};

/// Pages in an order of their own, with what an earlier text left in them.
struct Pages {
  Pages(const Context& ctx, DType dtype)
      : bytes(page_bytes(ctx, shape_of(1), dtype)),
        keys(kNumPages * bytes.keys),
        values(kNumPages * bytes.values),
        free(kNumPages) {
    std::iota(free.begin(), free.end(), 0);
    std::ranges::shuffle(free, random);
  }
  std::int32_t take() {
    const std::int32_t page = free.back();
    free.pop_back();
    return page;
  }

  std::mt19937 random{9};
  PageBytes bytes;
  SharedBytes keys, values;
  std::vector<std::int32_t> free;
};

/// The attention of several texts at once, whose tokens come in calls of `step` of each.
std::vector<HostMatrix> in_steps(const Context& ctx, std::span<const Text> texts, DType dtype, std::int64_t step,
                                 std::int64_t window, double soft_cap = 0) {
  Scratch scratch(ctx);
  Pages pages(ctx, dtype);
  std::vector<HostMatrix> outs;
  std::vector<std::vector<std::int32_t>> tables(texts.size());
  for (const Text& text : texts) outs.emplace_back(dtype, text.qkv.rows(), 120);
  for (std::int64_t first = 0;; first += step) {
    SharedValues<std::int32_t> positions, of_rows, all_pages;
    std::vector<std::pair<std::size_t, std::int64_t>> rows;  // text and row
    std::vector<std::int32_t> row_positions, table, page;
    for (std::size_t text = 0; text < texts.size(); ++text) {
      const std::int64_t end = std::min(texts[text].qkv.rows(), first + step);
      if (first >= end) continue;
      while (std::ssize(tables[text]) * kPageTokens < end) tables[text].push_back(pages.take());
      for (std::int64_t row = first; row < end; ++row) {
        rows.emplace_back(text, row);
        row_positions.push_back(static_cast<std::int32_t>(row));
        table.push_back(static_cast<std::int32_t>(page.size()));
      }
      page.insert(page.end(), tables[text].begin(), tables[text].end());
    }
    if (rows.empty()) break;
    const auto count = std::ssize(rows);
    HostMatrix qkv(dtype, count, shape_of(1).qkv_size()), out(dtype, count, 120);
    for (std::int64_t row = 0; row < count; ++row) {
      const auto [text, position] = rows[static_cast<std::size_t>(row)];
      for (std::int64_t i = 0; i < shape_of(1).qkv_size(); ++i)
        qkv.set(row, i, static_cast<float>(texts[text].qkv.at(position, i)));
    }
    const auto shared = [](const std::vector<std::int32_t>& numbers, SharedValues<std::int32_t>& room) {
      room = SharedValues<std::int32_t>(numbers.size());
      std::ranges::copy(numbers, room.begin());
      return Indices(room, room.data());
    };
    const PagedRows paged{shared(row_positions, positions), shared(table, of_rows), shared(page, all_pages)};
    paged_attention(ctx, scratch,
                    {shape_of(count, soft_cap), qkv.view(), pages.keys.data(), pages.values.data(), kNumPages, paged,
                     window, out.view()});
    synchronize(ctx);
    for (std::int64_t row = 0; row < count; ++row) {
      const auto [text, position] = rows[static_cast<std::size_t>(row)];
      for (std::int64_t i = 0; i < 120; ++i) outs[text].set(position, i, static_cast<float>(out.at(row, i)));
    }
  }
  return outs;
}

HostMatrix at_once(const Context& ctx, const Text& text, DType dtype, std::int64_t window, double soft_cap = 0) {
  Scratch scratch(ctx);
  const std::int64_t length = text.qkv.rows();
  HostMatrix qkv = text.qkv, out(dtype, length, 120);
  SharedValues<float> lse(static_cast<std::size_t>(length * 6));
  AttentionForward args{shape_of(length, soft_cap), qkv.view(), out.view(), lse};
  args.options.window = window;
  attention(ctx, scratch, args);
  synchronize(ctx);
  return out;
}

}  // namespace

TEST_CASE("paged attention on a CPU has the bits of attention, whatever stands beside a text and however it is cut") {
  on_every_path([](const Context& ctx, DType dtype) {
    const Text texts[] = {Text(dtype, 300, 1), Text(dtype, 41, 2), Text(dtype, 64, 3)};
    for (const std::int64_t window : {0, 9, 290}) {
      CAPTURE(window);
      const double cap = window == 9 ? 1.5 : 0;
      for (const std::int64_t step : {1, 33, 300}) {
        CAPTURE(step);
        const std::vector<HostMatrix> found = in_steps(ctx, texts, dtype, step, window, cap);
        for (std::size_t text = 0; text < 3; ++text)
          CHECK(found[text] == at_once(ctx, texts[text], dtype, window, cap));
      }
    }
    Machine three(ctx.cpu_isa, 3);
    CHECK(in_steps(three.ctx, texts, dtype, 33, 0) == in_steps(ctx, texts, dtype, 33, 0));
  });
}

DEVICE_TEST_CASE("paged attention is attention, with and without a window") {
  on_every_device([](const Context& ctx, DType dtype) {
    if (dtype != DType::kF32) return;
    const Text texts[] = {Text(dtype, 75, 1), Text(dtype, 33, 2)};
    for (const std::int64_t window : {0, 1, 9, 200}) {
      CAPTURE(window);
      const double cap = window == 9 ? 1.5 : 0;
      const std::vector<HostMatrix> found = in_steps(ctx, texts, dtype, 25, window, cap);
      for (std::size_t text = 0; text < 2; ++text) {
        CHECK(relative_error(found[text], table_of(at_once(ctx, texts[text], dtype, window, cap))) < 1e-6);
      }
    }
  });
}

DEVICE_TEST_CASE("paged attention gives the same bits for any number of tokens at once and beside any other text") {
  on_every_device([](const Context& ctx, DType dtype) {
    const Text texts[] = {Text(dtype, 75, 1), Text(dtype, 40, 2)};
    const std::vector<HostMatrix> expected = in_steps(ctx, texts, dtype, 25, 30);
    CHECK(in_steps(ctx, std::span(texts).first(1), dtype, 75, 30).front() == expected.front());
    CHECK(in_steps(ctx, std::span(texts).last(1), dtype, 7, 30).front() == expected.back());
  });
}

TEST_CASE("paged attention refuses what does not fit") {
  Machine machine(best_cpu_isa(), 1);
  Scratch scratch(machine.ctx);
  Pages pages(machine.ctx, DType::kF32);
  HostMatrix qkv(DType::kF32, 2, shape_of(2).qkv_size()), out(DType::kF32, 2, 120);
  const std::vector<std::int32_t> positions{31, 32}, tables{0, 0}, two{3, 1}, outside{3, kNumPages};
  const auto code_with = [&](const auto& change) {
    PagedAttention args{
        shape_of(2), qkv.view(), pages.keys.data(), pages.values.data(), kNumPages, {positions, tables, two},
        0,           out.view()};
    change(args);
    return code_of([&] { paged_attention(machine.ctx, scratch, args); });
  };
  CHECK(code_with([&](PagedAttention& args) { args.rows.pages = Indices(two).first(1); }) == "invalid_argument");
  CHECK(code_with([&](PagedAttention& args) { args.rows.pages = outside; }) == "invalid_argument");
  CHECK(code_with([&](PagedAttention& args) { args.rows.positions = Indices(positions).first(1); }) ==
        "invalid_argument");
  CHECK(code_with([](PagedAttention& args) { args.window = -1; }) == "invalid_argument");
  CHECK(code_with([](PagedAttention& args) { args.shape.batch = 2; }) == "invalid_argument");
  CHECK(code_with([](PagedAttention& args) { args.shape.num_kv_heads = 4; }) == "invalid_argument");
  CHECK(code_with([](PagedAttention& args) { args.out.cols = 60; }) == "invalid_argument");
  CHECK(code_with([](PagedAttention& args) { args.keys = nullptr; }) == "invalid_argument");
}
