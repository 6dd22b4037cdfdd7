#include "core/system/shared_library.h"

#include <cstdlib>

#include "core/error.h"

namespace zerofleet {
namespace {

/// The last message of dlopen.
std::string dl_message() {
  const char* message = ::dlerror();
  return message == nullptr ? "unknown" : message;
}

}  // namespace

SharedLibrary::SharedLibrary(const About& about, std::span<const std::string> file_names) : about_(about) {
  for (const std::string& file_name : file_names) {
    handle_ = ::dlopen(file_name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle_ != nullptr) {
      file_name_ = file_name;
      return;
    }
    failures_ += (failures_.empty() ? "" : "; ") + file_name + " (" + dl_message() + ")";
  }
}

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

void SharedLibrary::require_open() const {
  require(is_open(), about_.error_code,
          std::string(about_.name) + " cannot be opened; tried " + failures_ + ". " + about_.how_to_get_it);
}

void SharedLibrary::refuse_without(const char* function) const {
  throw Error(about_.error_code, file_name_ + " has no " + function + ": " + about_.needed + " is needed");
}

std::vector<std::string> library_files(const char* variable, std::vector<std::string> usual) {
  const char* wanted = std::getenv(variable);
  if (wanted != nullptr && *wanted != '\0') return {wanted};
  return usual;
}

}  // namespace zerofleet
