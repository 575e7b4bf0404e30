// --events and --on-event: what is told of the job, and to whom.
#include <fcntl.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/closest_word.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/template_text.hpp"
#include "base/whole_number.hpp"
#include "cli/usage_error.hpp"
#include "drun/events/event.hpp"
#include "launcher/command_line/build.hpp"
#include "launcher/command_line/values.hpp"

namespace drun::launcher {
namespace {

using events::Kind;

constexpr std::string_view kDescriptor = "fd:";
constexpr std::string_view kCommand = "exec:";

EventTarget parse_target(const cli::Setting& setting) {
  const std::string_view value = setting.value;
  EventTarget target;
  if (value.starts_with(kDescriptor)) {
    const auto number = whole_number<int>(value.substr(kDescriptor.size()));
    if (!number || *number < 0) refuse(setting, "expected fd:N, the number of a descriptor");
    if (::fcntl(*number, F_GETFD) < 0) refuse(setting, "no such descriptor is open");
    target.kind = EventTarget::Kind::Descriptor;
    target.descriptor = *number;
  } else if (value.starts_with(kCommand)) {
    target.kind = EventTarget::Kind::Command;
    target.text = value.substr(kCommand.size());
    if (target.text.empty()) refuse(setting, "expected a command behind exec:");
  } else {
    target.text = value;
    if (target.text.empty()) refuse(setting, "expected FILE, fd:N or exec:COMMAND");
    for (const std::string& name : names_in_braces(target.text))
      if (name != "hostname" && name != "run_id")
        refuse(setting, "nothing is called ${" + name + "}; there are ${hostname} and ${run_id}");
  }
  return target;
}

void take_name(const cli::Setting& setting, std::string_view name, EventHook& hook) {
  if (name == "end") {
    hook.at_end = true;
  } else if (name == "lost") {
    hook.kinds.set(static_cast<std::size_t>(Kind::NodeGone));
  } else if (name == "all") {
    for (const auto& info : events::every_kind())
      hook.kinds.set(static_cast<std::size_t>(info.kind));
  } else if (const auto kind = events::kind_of(name)) {
    hook.kinds.set(static_cast<std::size_t>(*kind));
  } else {
    std::vector<std::string> names{"end", "lost", "all"};
    for (const auto& info : events::every_kind())
      names.emplace_back(info.name);
    const std::string meant = closest_word(std::string(name), names);
    refuse(setting, "there is no event " + in_quotes(std::string(name)) +
                        (meant.empty() ? "" : "; did you mean " + meant + "?"));
  }
}

// "restart,failure:mail -s 'a restart' me"
EventHook parse_hook(const cli::Setting& setting) {
  const std::string_view value = setting.value;
  EventHook hook;
  const auto colon = value.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == value.size())
    refuse(setting, "expected NAMES:COMMAND, as in restart,failure:./tell");
  hook.command = value.substr(colon + 1);
  std::string_view names = value.substr(0, colon);
  while (!names.empty())
    take_name(setting, take_until(names, ','), hook);
  return hook;
}

}  // namespace

void build_events(const cli::GivenFlags& flags, Options& options) {
  if (const cli::Setting* setting = flags.find("events"))
    options.events.target = parse_target(*setting);
  if (const cli::Setting* setting = flags.find("on-event")) {
    std::string_view values = setting->value;
    do {
      cli::Setting one = *setting;
      one.value = take_until(values, cli::kBetweenValues);
      options.events.hooks.push_back(parse_hook(one));
    } while (!values.empty());
  }
}

}  // namespace drun::launcher
