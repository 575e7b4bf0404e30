#include "launcher/process/last_will.hpp"

#include <algorithm>

#include "base/file_worker.hpp"

namespace drun::process {

void LastWill::take(wire::Type type, std::string_view payload) {
  if (type == wire::Type::Farewell) farewell_ = wire::decode_farewell(payload);
  if (type == wire::Type::LeaveFolders) folders_.clear();
  if (type == wire::Type::RemoveFolder &&
      std::find(folders_.begin(), folders_.end(), payload) == folders_.end())
    folders_.emplace_back(payload);
}

void LastWill::remove_folders() const {
  for (const auto& folder : folders_)
    remove_folder(folder);
}

}  // namespace drun::process
