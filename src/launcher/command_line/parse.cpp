#include "launcher/command_line/parse.hpp"

#include "launcher/command_line/options_build.hpp"
#include "launcher/command_line/options_completion.hpp"
#include "launcher/command_line/options_help.hpp"
#include "launcher/command_line/options_manual.hpp"
#include "launcher/command_line/options_values.hpp"

namespace drun::launcher {
namespace {

constexpr int kUsageError = 2;

Parsed print(std::string text) {
  return {std::nullopt, std::move(text), 0};
}

// One line, whatever the user wrote.
Parsed usage_error(std::string_view what) {
  std::string line = "drun: error: ";
  for (const char c : what.substr(0, 2000)) {
    const auto byte = static_cast<unsigned char>(c);
    line += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return {std::nullopt, line + "\n", kUsageError};
}

void refuse_unsupported(const Settings& settings) {
  for (const Flag& flag : all_flags()) {
    const Setting* setting = settings.find(flag.name);
    if (setting == nullptr || flag.readiness == Readiness::Ready) continue;
    throw UsageError(setting->shown + " is not supported by this version of drun");
  }
}

}  // namespace

Parsed parse_options(const std::vector<std::string>& arguments,
                     const std::vector<std::string>& environment,
                     const Surroundings& surroundings) {
  try {
    const bool launch = !arguments.empty() && is_launch(arguments.front());
    Scanned scanned =
        scan_arguments({arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end()}, launch);
    Settings& settings = scanned.settings;
    if (settings.on("help") || settings.on("help-all")) {
      return print(help_text(settings.on("help-all"), launch));
    }
    if (settings.on("version")) return print(version_text());
    if (settings.on("print-man")) return print(manual_page());
    if (const Setting* shell = settings.find("print-completion")) {
      (void)parse_choice(*shell, {"bash", "zsh", "fish"});
      return print(completion_script(shell->value));
    }
    add_variables(environment, settings);
    refuse_unsupported(settings);
    Options options = build_options({settings, scanned.program, environment, surroundings, launch});
    if (settings.on("explain")) return print(explain_text(settings, options));
    options.dry_run = settings.on("dry-run");
    return {std::move(options), "", 0};
  } catch (const UsageError& error) {
    return usage_error(error.what());
  }
}

Parsed parse_options(const std::vector<std::string>& arguments,
                     const std::vector<std::string>& environment) {
  return parse_options(arguments, environment, this_machine());
}

}  // namespace drun::launcher
