#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace zerofleet::test {

/// The cuBLASLt of tests (fake_cublaslt.cc): reads its counters and sets its features.
class FakeCublaslt {
 public:
  explicit FakeCublaslt(const std::string& file_name) : library_(::dlopen(file_name.c_str(), RTLD_NOW)) {}
  ~FakeCublaslt() {
    have_gelu(true);
    have_fault(Fault::kNone);
    have_choice(false);
  }
  FakeCublaslt(const FakeCublaslt&) = delete;
  FakeCublaslt& operator=(const FakeCublaslt&) = delete;

  /// Choices of algorithms so far.
  int num_heuristics() const { return entry<int()>("zf_num_heuristics")(); }
  /// Products so far, trials of algorithms included.
  int num_products() const { return entry<int()>("zf_num_products")(); }
  /// The number of these with GELU or its gradient in their epilogue.
  int num_gelus() const { return entry<int()>("zf_num_gelus")(); }
  /// The number of these by the slow algorithm of a choice.
  int num_slow() const { return entry<int()>("zf_num_slow")(); }
  /// Sets whether the library offers a slow algorithm and one with other bits before the usual one.
  void have_choice(bool have) const { entry<void(bool)>("zf_have_choice")(have); }
  /// Sets whether the library has algorithms for GELU epilogues.
  void have_gelu(bool have) const { entry<void(bool)>("zf_have_gelu")(have); }

  enum class Fault : int { kNone, kDropsEndOfK, kLeavesLastElement };
  /// Sets what an algorithm does wrong that the library prefers to a right one, or has alone.
  void have_fault(Fault fault, bool alone = false) const {
    entry<void(int, bool)>("zf_have_fault")(static_cast<int>(fault), alone);
  }

 private:
  template <class Function>
  Function* entry(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(library_, name));
  }

  void* library_;
};

/// A variable of the environment, for as long as this is.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~EnvironmentVariable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace zerofleet::test
