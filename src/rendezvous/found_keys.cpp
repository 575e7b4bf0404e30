#include "rendezvous/found_keys.hpp"

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/whole_number.hpp"

namespace drun::rendezvous {

FoundKeys find_keys(const Keys& keys, const std::vector<Change>& entries,
                    std::vector<std::string>& problems) {
  FoundKeys found;
  const auto starts = [](std::string_view key, const std::string& prefix) {
    return key.substr(0, prefix.size()) == prefix;
  };
  const auto take = [&](auto result, auto& out) {
    if (result) {
      out = std::move(*result);
    } else {
      problems.push_back(result.error().what());
    }
  };
  for (const auto& [key, value] : entries) {
    if (!value) continue;
    if (starts(key, keys.members)) {
      auto& member = found.members.emplace_back();
      member.ticket = key.substr(keys.members.size());
      if (auto document = decode_member(*value)) {
        member.document = std::move(*document);
      } else {
        member.problem = document.error().what();
      }
    } else if (starts(key, keys.assignments)) {
      auto ticket = key.substr(keys.assignments.size());
      if (auto document = decode_assignment(*value)) {
        found.assignments.emplace(std::move(ticket), std::move(*document));
      } else {
        problems.push_back(document.error().what());
        found.unreadable_assignments.push_back(std::move(ticket));
      }
    } else if (const auto place = keys.place_of_gone(key)) {
      found.gone.push_back(*place);
    } else if (key == keys.silence) {
      if (const auto ms = whole_number<std::uint32_t>(*value)) found.silence = Milliseconds(*ms);
    } else if (key == keys.job) {
      take(decode_job(*value), found.job);
    } else if (key == keys.round) {
      take(decode_round(*value), found.round);
    } else if (key == keys.outcome) {
      found.outcome = true;
    } else if (key == keys.history) {
      take(decode_history(*value), found.history);
    }
  }
  return found;
}

}  // namespace drun::rendezvous
