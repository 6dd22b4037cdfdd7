#include "core/system/shared_library.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "test/error_code.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr SharedLibrary::About kMaths{"The maths library", "libm 2", "device_unavailable", "Install libc"};

template <class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() + ": " + error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("the first library that is there is opened, and its functions are found by name") {
  const std::vector<std::string> names{"libzf-is-not-there.so", "libm.so.6", "libc.so.6"};
  const SharedLibrary library(kMaths, names);
  REQUIRE(library.is_open());
  CHECK(library.file_name() == "libm.so.6");
  library.require_open();
  double (*cosine)(double) = nullptr;
  library.find("cos", cosine);
  CHECK(cosine(0) == 1);
  library.find_if_there("zf_no_such_function", cosine);
  CHECK(!cosine);
  CHECK(message_of([&] { library.find("zf_no_such_function", cosine); }) ==
        "device_unavailable: libm.so.6 has no zf_no_such_function: libm 2 is needed");
}

TEST_CASE("if no library can be opened the error lists the files tried, the reasons, and the remedy") {
  const std::vector<std::string> names{"libzf-is-not-there.so", "libzf-nor-is-this.so"};
  const SharedLibrary library(kMaths, names);
  CHECK(!library.is_open());
  CHECK(library.file_name().empty());
  const std::string message = message_of([&] { library.require_open(); });
  CHECK(message.starts_with(
      "device_unavailable: The maths library cannot be opened; tried libzf-is-not-there.so (libzf"));
  CHECK(message.find("; libzf-nor-is-this.so (libzf-nor-is-this.so: ") != std::string::npos);
  CHECK(message.ends_with("). Install libc"));
}

TEST_CASE("a variable of the environment names the only file to open; an empty one names none") {
  const std::vector<std::string> usual{"libm.so.6", "libm.so"};
  constexpr const char* kVariable = "ZF_TEST_LIBRARY_FILE";
  CHECK(library_files(kVariable, usual) == usual);
  ::setenv(kVariable, "/opt/libm.so", 1);
  CHECK(library_files(kVariable, usual) == std::vector<std::string>{"/opt/libm.so"});
  ::setenv(kVariable, "", 1);
  CHECK(library_files(kVariable, usual) == usual);
  ::unsetenv(kVariable);
}
