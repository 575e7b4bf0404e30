#include <algorithm>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/closest_word.hpp"
#include "base/standard_streams.hpp"
#include "cli/arguments.hpp"
#include "cli/command_line.hpp"

namespace drun::store {
namespace {

// Not "-", which names standard input, and no number.
bool looks_like_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9');
}

// The option of the app or of the command that was chosen which was perhaps meant; or nothing.
std::string closest_option(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  std::vector<const CLI::App*> apps{&app};
  for (const CLI::App* command : app.get_subcommands())
    apps.push_back(command);
  for (const CLI::App* one : apps)
    for (const CLI::Option* option : one->get_options())
      names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  const std::string written = word.substr(0, word.find('='));
  const std::size_t dashes = std::min(written.find_first_not_of('-'), written.size());
  const std::string meant = closest_word(written.substr(dashes), names);
  return meant.empty() ? "" : "--" + meant;
}

// CLI11's sentence, as these programs say it.
std::string in_our_words(const CLI::ParseError& error) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    std::string name = text.substr(0, text.find_first_of(": "));
    if (!name.starts_with('-')) name.insert(0, "--");
    const bool override = text.find("flag override") != text.npos;
    return name + (override ? " takes no value" : " needs a value");
  }
  return text.substr(0, text.find('\n')) + "; see --help";
}

}  // namespace

void prepare(CLI::App& app) {
  app.set_help_flag();
  app.option_defaults()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->disable_flag_override();
  app.require_subcommand(0, 1);  // a second command's name is a word
  app.allow_extras();
  app.fallthrough();
}

std::optional<std::vector<std::string>> parse_command_line(CLI::App& app, int argc, char** argv) {
  bool help = false;
  bool version = false;
  bool manual = false;
  std::string shell;
  app.add_flag("-h,--help", help, "this text")->group("General");
  app.add_flag("--version", version, "the version")->group("General");
  app.add_flag("--print-man", manual, "the manual page, for man -l -")->group("General");
  app.add_option("--print-completion", shell, "completions for bash, zsh or fish")
      ->type_name("SHELL")
      ->group("General");

  // What follows "--" is not CLI11's: it would take some of it for options all the same.
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> only_words;
  if (dashes != arguments.end()) only_words.assign(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    throw UsageError(in_our_words(error));
  }

  std::string answer;
  if (help) {
    answer = help_text(app);
  } else if (version) {
    answer = app.get_name() + " " DRUN_VERSION "\n";
  } else if (manual) {
    answer = manual_page(app);
  } else if (!shell.empty()) {
    answer = completion(app, shell);
  }
  if (!answer.empty()) {
    if (const Status written = write_standard_output(answer); !written)
      throw std::system_error(written.error().code(), "write standard output");
    return std::nullopt;
  }

  std::vector<std::string> words = app.remaining(true);
  for (const std::string& word : words) {
    if (looks_like_option(word)) {
      const std::string meant = closest_option(app, word);
      throw UsageError("unknown option '" + word + "'" +
                       (meant.empty() ? "" : "; did you mean " + meant + "?") + "; see --help");
    }
  }
  words.insert(words.end(), only_words.begin(), only_words.end());
  return words;
}

}  // namespace drun::store
