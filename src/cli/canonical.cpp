#include "cli/canonical.hpp"

#include "base/printable.hpp"
#include "cli/flag_names.hpp"
#include "cli/usage_error.hpp"

namespace drun::cli {
namespace {

bool has_dash(std::string_view text) {
  return text.size() > 1 && text.front() == '-';
}

// argparse's rule for the word behind a flag: with a dash it is another flag, unless it is a
// negative number or has blanks.
bool is_no_value(std::string_view text) {
  return has_dash(text) && text.find(' ') == std::string_view::npos &&
         text.find_first_not_of("0123456789.", 1) != std::string_view::npos;
}

class Rewriter {
 public:
  Rewriter(const Program& program, const std::vector<std::string>& arguments)
      : program_(program), at_(arguments.begin()), end_(arguments.end()) {}

  Canonical run() {
    while (at_ != end_) {
      const std::string& word = *at_++;
      if (word == "--") {
        result_.only_words.insert(result_.only_words.end(), at_, end_);
        break;
      }
      if (!is_flag(word)) {
        if (program_.runs_program) {
          result_.arguments.insert(result_.arguments.end(), at_ - 1, end_);
          break;
        }
        take_word(word);
      } else if (const Flag* flag = meant_by(word)) {
        result_.arguments.push_back("--" + std::string(flag->name));
        take(*flag, word, "");
      } else if (word[1] == '-') {
        take_long(word);
      } else {
        take_letters(word);
      }
    }
    return std::move(result_);
  }

 private:
  // Nobody calls a program -2; a word may well be a number.
  bool is_flag(const std::string& word) const {
    const bool number = has_dash(word) && word[1] >= '0' && word[1] <= '9';
    return has_dash(word) && (program_.runs_program || !number);
  }

  const Flag* meant_by(const std::string& word) const {
    for (const auto& [written, name] : program_.words)
      if (written == word) return program_.find(name);
    return nullptr;
  }

  // Only the first word can be a command. CLI11 sees no other: it would look for commands among
  // them, and takes "++" for the end of one.
  void take_word(const std::string& word) {
    const bool first = command_ == nullptr && result_.only_words.empty();
    if (first) command_ = program_.find_command(word);
    auto& words = first && command_ != nullptr ? result_.arguments : result_.only_words;
    words.push_back(word);
  }

  void take_long(const std::string& word) {
    const auto equals = word.find('=');
    const Flag& flag = flag_named(program_, command_, std::string_view(word).substr(0, equals));
    const std::string name = "--" + std::string(flag.name);
    result_.arguments.push_back(name);
    const std::string written = dashed(word.substr(0, equals));
    take(flag, program_.is_alias(written.substr(2)) ? written : name,
         equals == std::string::npos ? "" : std::string_view(word).substr(equals));
  }

  // -r3, -r 3, -r=3, -mv
  void take_letters(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const Flag& flag = flag_lettered(program_, command_, word[i], word);
      const std::string name{'-', word[i]};
      const std::string_view rest = std::string_view(word).substr(i + 1);
      result_.arguments.push_back(name);
      take(flag, name, flag.takes_value() || rest.starts_with('=') ? rest : "");
      if (flag.takes_value()) return;
    }
  }

  // `attached`: "=value", "value" behind a letter, or nothing.
  void take(const Flag& flag, const std::string& shown, std::string_view attached) {
    result_.used.push_back({&flag, shown});
    const std::string_view value = attached.substr(attached.starts_with('=') ? 1 : 0);
    if (!flag.takes_value()) {
      if (!attached.empty())
        throw UsageError(shown + " takes no value, and got " + in_quotes(value));
    } else if (!attached.empty()) {
      result_.arguments.emplace_back(value);
    } else {
      take_next(flag, shown);
    }
  }

  void take_next(const Flag& flag, const std::string& shown) {
    if (at_ == end_) throw UsageError(shown + " needs a value: " + std::string(flag.metavar));
    if (is_no_value(*at_)) {
      throw UsageError(shown + " needs a value (" + std::string(flag.metavar) + ") before " +
                       in_quotes(*at_) + "; a value that starts with a dash is written " + shown +
                       (shown.size() == 2 ? "" : "=") + *at_);
    }
    result_.arguments.push_back(*at_++);
  }

  const Program& program_;
  std::vector<std::string>::const_iterator at_;
  std::vector<std::string>::const_iterator end_;
  const Command* command_ = nullptr;
  Canonical result_;
};

}  // namespace

Canonical canonical(const Program& program, const std::vector<std::string>& arguments) {
  return Rewriter(program, arguments).run();
}

}  // namespace drun::cli
