#include "bench/gpu/options.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "bench/kernel_bench.h"
#include "core/error.h"

namespace zerofleet::bench {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> pieces;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(',', begin);
    pieces.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return pieces;
}

int positive(const std::string& name, const std::string& text) {
  int value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(status == std::errc() && end == text.data() + text.size() && value > 0, "invalid_argument",
          name + " must be a positive whole number, not '" + text + "'");
  return value;
}

Device device_named(const std::string& name) {
  if (name == "cpu") return {};
  const std::string_view kind = "cuda:";
  require(name.starts_with(kind), "invalid_argument", "--device must be cpu or cuda:N, not '" + name + "'");
  const std::string index = name.substr(kind.size());
  return {DeviceKind::kCuda, index == "0" ? 0 : positive("--device", index)};
}

struct Wishes {
  std::vector<std::string> configs;
  int steps = 0;
};

void read_option(const std::string& name, const std::string& value, GpuBenchOptions& options, Wishes& wishes) {
  if (name == "--device") {
    options.device = device_named(value);
  } else if (name == "--size") {
    require(value == "full" || value == "tiny", "invalid_argument", "--size must be full or tiny");
    options.tiny = value == "tiny";
  } else if (name == "--config") {
    wishes.configs = split(value);
  } else if (name == "--op") {
    options.ops = split(value);
    for (const std::string& op : options.ops) kernel_named(op);
  } else if (name == "--rounds") {
    options.patience.rounds = positive(name, value);
  } else if (name == "--steps") {
    wishes.steps = positive(name, value);
  } else {
    throw Error("invalid_argument", "unknown option " + name);
  }
}

}  // namespace

const char* const kUsage =
    "usage: zerofleet_gpu_bench PART[,PART...] [options]     (JSON lines on standard output)\n"
    "  parts: floors, kernels, train, exact, or all; cases: the list of kernels and trainings, none of which is run\n"
    "  --device cuda:0 | cpu      --size full | tiny      --config NAME[,NAME...]\n"
    "  --op NAME[,NAME...]        --rounds 7              --steps N (of the trainings)\n"
    "configurations: gpt2, gpt2-xl, llama-1b, llama-1b-4096; tiny ones: gpt2-tiny, llama-tiny\n";

CommandLine read_command_line(std::span<const char* const> args) {
  const std::vector<std::string> all{"floors", "kernels", "train", "exact"};
  require(!args.empty(), "invalid_argument", "which part?");
  CommandLine line;
  line.parts = std::string_view(args[0]) == "all" ? all : split(args[0]);
  for (const std::string& part : line.parts) {
    require(part == "cases" || std::ranges::find(all, part) != all.end(), "invalid_argument",
            "unknown part '" + part + "'");
  }
  Wishes wishes;
  for (std::size_t i = 1; i < args.size(); i += 2) {
    require(i + 1 < args.size(), "invalid_argument", std::string(args[i]) + " needs a value");
    read_option(args[i], args[i + 1], line.options, wishes);
  }
  GpuBenchOptions& options = line.options;
  if (options.tiny) options.patience = {std::min(options.patience.rounds, 2), 0};
  for (const std::string& name : wishes.configs) options.trainings.push_back(training_named(name));
  if (wishes.configs.empty()) options.trainings = options.tiny ? tiny_trainings() : full_trainings();
  if (wishes.steps > 0) {
    for (TrainingShape& training : options.trainings) training.steps = wishes.steps;
  }
  return line;
}

}  // namespace zerofleet::bench
