#include "base/given_file.hpp"

#include "base/small_file.hpp"

namespace drun {

Result<std::string> read_given_file(const std::string& path, std::chrono::milliseconds limit) {
  // One step: a writer may give a byte now and then for ever.
  const auto answer = ask_files<Result<std::string>>(limit, [path] {
    about_to("read it to its end");
    return read_small_file(path, kMostOfGivenFile);
  });
  return answer ? *answer : answer.error();
}

}  // namespace drun
