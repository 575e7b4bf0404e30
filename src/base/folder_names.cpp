#include "base/folder_names.hpp"

#include <dirent.h>

#include <memory>

namespace drun {

bool for_each_name(const std::string& folder, const std::function<void(std::string_view)>& visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  if (!open) return false;
  while (const dirent* entry = ::readdir(open.get()))
    visit(entry->d_name);
  return true;
}

}  // namespace drun
