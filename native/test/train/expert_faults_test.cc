// Training with experts spread over ranks: what the others report when one rank fails.
#include <doctest/doctest.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "test/error_code.h"
#include "test/train/expert_job.h"

using namespace zerofleet;
using namespace zerofleet::test;
using namespace std::chrono_literals;

namespace {

/// Lets its rank fail in the all_to_all number `at`.
class FailingComm final : public Communicator {
 public:
  FailingComm(std::unique_ptr<Communicator> inner, int at, std::function<void()> fail)
      : inner_(std::move(inner)), left_(at), fail_(std::move(fail)) {}
  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }
  void all_to_all(std::span<const std::byte> send, std::span<const Message> sends, std::span<std::byte> recv,
                  std::span<const Message> recvs) override {
    if (left_-- == 0) fail_();
    inner_->all_to_all(send, sends, recv, recvs);
  }
  void all_gathers(std::span<const Gather> gathers) override { inner_->all_gathers(gathers); }
  void barrier() override { inner_->barrier(); }
  void abort() override { inner_->abort(); }

 private:
  std::unique_ptr<Communicator> inner_;
  int left_;
  std::function<void()> fail_;
};

std::string code_of_rank(const std::exception_ptr& failure) {
  return failure ? code_of([&] { std::rethrow_exception(failure); }) : "none";
}

/// Codes of 4 ranks of which rank 1 does `fail` in its exchange number `at`.
std::vector<std::string> codes_with_failure(int at, std::chrono::milliseconds timeout,
                                            const std::function<void()>& fail) {
  ExpertJob job(DType::kBF16);
  job.timeout = timeout;
  job.around_all_experts = [&](int rank, std::unique_ptr<Communicator> inner) -> std::unique_ptr<Communicator> {
    if (rank != 1) return inner;
    return std::make_unique<FailingComm>(std::move(inner), at, fail);
  };
  std::vector<std::string> codes;
  for (const auto& failure : job.failures_on_ranks(4, 1, [](Trainer& trainer) {
         trainer.initialize();
         for (int step = 0; step < 2; ++step) trainer.step(0);
       })) {
    codes.push_back(code_of_rank(failure));
  }
  return codes;
}

}  // namespace

TEST_CASE("experts spread over ranks: a rank that dies in an exchange of rows is a typed error on all others") {
  for (const int at : {0, 4, 9, 31}) {  // counts, rows there and back, forward and backward, of two steps
    CAPTURE(at);
    const auto codes = codes_with_failure(at, 60s, [] { throw Error("test", "the rank dies"); });
    CHECK(codes == std::vector<std::string>{"comm_failed", "test", "comm_failed", "comm_failed"});
  }
}

TEST_CASE("experts spread over ranks: a rank that is silent in an exchange of rows is a time-out, not a hang") {
  const auto codes = codes_with_failure(5, 1s, [] { std::this_thread::sleep_for(2500ms); });
  CHECK(codes[0] == "comm_timeout");
  for (const std::size_t rank : {1U, 2U, 3U}) CHECK((codes[rank] == "comm_failed" || codes[rank] == "comm_timeout"));
}
