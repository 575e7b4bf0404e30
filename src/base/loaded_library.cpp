#include "base/loaded_library.hpp"

#include <string>

namespace drun {

LoadedLibrary::LoadedLibrary(const LibraryName& name)
    : name_(name), handle_(::dlopen(name.file, RTLD_NOW | RTLD_LOCAL)) {}

Status LoadedLibrary::status() const {
  if (handle_ == nullptr)
    return Error(std::make_error_code(std::errc::no_such_file_or_directory),
                 std::string(name_.purpose) + " needs the library " + name_.file +
                     ", which is not there: install the Debian package " + name_.package);
  if (!complete_) return too_old();
  return Done{};
}

Error LoadedLibrary::too_old() const {
  return Error(std::make_error_code(std::errc::not_supported),
               std::string(name_.purpose) + " needs the library " + name_.file + " in version " +
                   name_.version + " or later: install the Debian package " + name_.package);
}

}  // namespace drun
