#pragma once

#include <dlfcn.h>

#include <string>

namespace zerofleet::test {

/// The cuDNN of tests (fake_cudnn.cc): reads its counters and sets its features.
class FakeCudnn {
 public:
  explicit FakeCudnn(const std::string& file_name) : library_(::dlopen(file_name.c_str(), RTLD_NOW)) {}
  ~FakeCudnn() {
    offer(Offer::kAll);
    have_fault(Fault::kNone);
    set_version(kVersion);
    set_cuda_version(13000);
  }
  FakeCudnn(const FakeCudnn&) = delete;
  FakeCudnn& operator=(const FakeCudnn&) = delete;

  static constexpr int kVersion = 92400;

  /// Queries of the heuristic so far.
  int num_heuristics() const { return entry<int()>("zf_cudnn_num_heuristics")(); }
  /// Forwards and backwards so far, trials included.
  int num_forwards() const { return entry<int()>("zf_cudnn_num_runs")() - num_backwards(); }
  int num_backwards() const { return entry<int()>("zf_cudnn_num_backwards")(); }
  /// That of CUDA for which the library was built.
  void set_cuda_version(int version) const { entry<void(int)>("zf_cudnn_set_cuda_version")(version); }
  void set_version(int version) const { entry<void(int)>("zf_cudnn_set_version")(version); }

  /// Engines that the heuristic offers:
  /// - kAll: all engines, of which the first is not deterministic and the next wants too much memory;
  /// - kNone: none;
  /// - kNondeterministic: those that are not deterministic;
  /// - kWithoutCompiler: none, because the machine lacks a compiler.
  enum class Offer : int { kAll, kNone, kNondeterministic, kWithoutCompiler };
  void offer(Offer which) const { entry<void(int)>("zf_cudnn_offer")(static_cast<int>(which)); }

  enum class Fault : int { kNone, kHidesLastKey, kLeavesLastRow };
  /// Sets what an engine does wrong that the library prefers to a right one, or has alone.
  void have_fault(Fault fault, bool alone = false) const {
    entry<void(int, bool)>("zf_cudnn_have_fault")(static_cast<int>(fault), alone);
  }

 private:
  template <class Function>
  Function* entry(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(library_, name));
  }

  void* library_;
};

}  // namespace zerofleet::test
