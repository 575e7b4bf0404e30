#include "launcher/command_line/parse.hpp"

#include <utility>

#include "base/exit_codes.hpp"
#include "cli/answer.hpp"
#include "cli/usage_error.hpp"
#include "launcher/command_line/build.hpp"
#include "launcher/command_line/explain.hpp"
#include "launcher/command_line/flags.hpp"

namespace drun::launcher {
namespace {

Parsed print(std::string text) {
  return {std::nullopt, std::move(text), 0};
}

// One line, whatever the user wrote.
Parsed usage_error(std::string_view what, const cli::GivenFlags& known) {
  std::string line;
  for (const char c : what.substr(0, 2000)) {
    const auto byte = static_cast<unsigned char>(c);
    line += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  const cli::Setting* report = known.find("report");
  return {std::nullopt,
          "drun: error: " + line + "\n",
          kUsageError,
          line,
          report == nullptr || known.on("dry-run") ? "" : report->value,
          known.on("timestamps")};
}

}  // namespace

Parsed parse_options(const std::vector<std::string>& arguments,
                     const std::vector<std::string>& environment, const Host& host) {
  cli::CommandLine given;
  try {
    const bool launch = !arguments.empty() && is_launch(arguments.front());
    const cli::Program program = drun_program(launch);
    given = cli::parse_command_line(
        program, {arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end()});
    if (auto text = cli::answer(program, given.flags)) return print(std::move(*text));
    const auto unknown = cli::add_variables(program, environment, given.flags);
    Inferred place;
    auto start = plan_start(given, launch, environment, host, place.notes);
    if (!start) place = infer_place(given.flags, launch, environment, host);
    const BuildInput input{given.flags, given.words, environment, host, launch};
    Options options = start                    ? build_start(input, std::move(*start))
                      : !place.instead.empty() ? build_instead(input, place, arguments)
                                               : build_options(input);
    // Of two on one host the second would be node 1, and the one on the next host nobody's.
    if (place.one_rank_a_host) options.node_rank_is_wish = false;
    options.inferred = place.line;
    options.notes.insert(options.notes.begin(), place.notes.begin(), place.notes.end());
    options.notes.insert(options.notes.begin(), unknown.begin(), unknown.end());
    if (given.flags.on("explain")) return print(explain_text(given.flags, options));
    options.dry_run = given.flags.on("dry-run");
    return {std::move(options), "", 0};
  } catch (const cli::UsageError& error) {
    return usage_error(error.what(), given.flags);
  }
}

Parsed parse_options(const std::vector<std::string>& arguments,
                     const std::vector<std::string>& environment) {
  return parse_options(arguments, environment, this_host());
}

}  // namespace drun::launcher
