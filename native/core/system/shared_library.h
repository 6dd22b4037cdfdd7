#pragma once

#include <dlfcn.h>

#include <span>
#include <string>
#include <vector>

namespace zerofleet {

/// A library that is opened at run time, so that neither building nor loading needs it.
class SharedLibrary {
 public:
  /// Description of the library for the error message when it is missing.
  struct About {
    const char* name;           // as its makers call it
    const char* needed;         // the versions that have every function that is looked up
    const char* error_code;     // of an Error that is about it
    const char* how_to_get_it;  // a sentence of advice, without its full stop
  };

  /// Opens the first of the named files that is there.
  SharedLibrary(const About& about, std::span<const std::string> file_names);
  /// Its code stays in the process: threads that it started may outlive all that is known of it here.
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  bool is_open() const { return handle_ != nullptr; }
  /// The file that was opened; empty where none could be.
  const std::string& file_name() const { return file_name_; }
  /// Throws an Error with the files that were tried, why each failed, and what to do, unless it is open.
  void require_open() const;

  /// Null where the library, as older ones do, lacks the function.
  template <class Function>
  void find_if_there(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

  /// Throws an Error with the function's name where the library lacks it.
  template <class Function>
  void find(const char* name, Function*& function) const {
    find_if_there(name, function);
    if (function == nullptr) refuse_without(name);
  }

 private:
  [[noreturn]] void refuse_without(const char* function) const;

  About about_;
  void* handle_ = nullptr;
  std::string file_name_;
  std::string failures_;
};

/// The file that an environment variable names alone, or else the usual ones on the library path of the process.
std::vector<std::string> library_files(const char* variable, std::vector<std::string> usual);

}  // namespace zerofleet
