#include "launcher/command_line/options_scan.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include "base/closest_word.hpp"
#include "base/environment_variable.hpp"

namespace drun::launcher {
namespace {

using namespace std::string_view_literals;

// What people who come from other launchers type: mpirun, srun, deepspeed, accelerate.
constexpr auto kHabits = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"-n", "--nproc-per-node"},
    {"-np", "--nproc-per-node"},
    {"--np", "--nproc-per-node"},
    {"-ppn", "--nproc-per-node"},
    {"--ppn", "--nproc-per-node"},
    {"--ntasks-per-node", "--nproc-per-node"},
    {"--num-gpus", "--nproc-per-node"},
    {"--num-processes", "--nproc-per-node"},
    {"-N", "--nnodes"},
    {"--nodes", "--nnodes"},
    {"--num-nodes", "--nnodes"},
    {"--num-machines", "--nnodes"},
    {"--machine-rank", "--node-rank"},
    {"--main-process-ip", "--master-addr"},
    {"--main-process-port", "--master-port"},
    {"-H", "--rdzv-endpoint"},
    {"--host", "--rdzv-endpoint"},
    {"--hosts", "--rdzv-endpoint"},
    {"--hostfile", "--rdzv-endpoint"},
    {"-hostfile", "--rdzv-endpoint"},
    {"--machinefile", "--rdzv-endpoint"},
    {"--gpu-ids", "--gpus"},
    {"--bind-to", "--numa-binding"},
    {"--bind-cores-to-rank", "--numa-binding"},
    {"--tag-output", "--tee"},
    {"--output-filename", "--log-dir"},
    {"--enable-each-rank-log", "--log-dir"},
    {"-V", "--version"},
});

bool known(const Flag& flag, bool launch) {
  return flag.origin != Origin::Launch || launch;
}

// ". Did you mean --nnodes?" or nothing. `name` is without dashes in front.
std::string suggestion(std::string_view written, std::string_view name, bool launch) {
  std::string dashed(written);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  for (const auto& [habit, meant] : kHabits) {
    if (habit == dashed) return "; did you mean " + std::string(meant) + "?";
  }
  std::vector<std::string> names;
  for (const Flag& flag : all_flags())
    if (known(flag, launch) && flag.readiness == Readiness::Ready) names.emplace_back(flag.name);
  const std::string meant = closest_word(name, names);
  return meant.empty() ? "" : "; did you mean --" + meant + "?";
}

// The flags of one origin class whose name starts with `prefix`.
std::vector<const Flag*> starting_with(std::string_view prefix, bool own) {
  std::vector<const Flag*> result;
  for (const Flag& flag : all_flags()) {
    if (flag.name.starts_with(prefix) && (flag.origin == Origin::Drun) == own) {
      result.push_back(&flag);
    }
  }
  return result;
}

const Flag& resolve_long(std::string_view written, bool launch) {
  std::string name(written.substr(2));
  std::replace(name.begin(), name.end(), '_', '-');
  if (const Flag* exact = find_flag(name); exact != nullptr && known(*exact, launch)) return *exact;
  // torchrun's abbreviations mean what they mean there, whatever drun adds.
  for (const bool own : {false, true}) {
    auto candidates = starting_with(name, own);
    std::erase_if(candidates, [&](const Flag* flag) { return !known(*flag, launch); });
    if (candidates.size() == 1) return *candidates.front();
    if (candidates.size() > 1) {
      std::string names;
      for (const Flag* flag : candidates) {
        names += (names.empty() ? "--" : ", --") + std::string(flag->name);
      }
      throw UsageError("the flag " + quote(written) + " is ambiguous: " + names);
    }
  }
  throw UsageError("unknown flag " + quote(written) + suggestion(written, name, launch) +
                   " (drun --help lists them; the program's own flags go after the program)");
}

const Flag* find_letter(char letter) {
  for (const Flag& flag : all_flags()) {
    if (flag.letter == letter && letter != 0) return &flag;
  }
  return nullptr;
}

// argparse's rule: what starts with a dash is a flag, unless it is a negative number or has blanks.
bool looks_like_flag(std::string_view text) {
  if (text.size() < 2 || text.front() != '-') return false;
  const bool number = text.find_first_not_of("0123456789.", 1) == std::string_view::npos;
  return !number && text.find(' ') == std::string_view::npos;
}

// torchrun's variables of other names: `value` is what the setting becomes, nullptr its own value.
struct OlderVariable {
  std::string_view flag;
  const char* name;
  std::string_view only;  // of no effect unless it holds this; empty: whatever it holds
  const char* value;
};

constexpr std::array<OlderVariable, 3> kOlderVariables{{
    {"shutdown-timeout", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "", nullptr},
    {"log-line-prefix-template", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "", nullptr},
    {"worker-store", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1", "rank0"},
}};

void add_older_variables(const std::vector<std::string>& environment, Settings& settings) {
  for (const auto& [flag, name, only, value] : kOlderVariables) {
    const char* given = variable(environment, name);
    if (given == nullptr || settings.find(flag) != nullptr) continue;
    if (!only.empty() && only != given) continue;
    settings.set({find_flag(flag), Source::Variable, name, value != nullptr ? value : given});
  }
}

class Scanner {
 public:
  Scanner(const std::vector<std::string>& arguments, bool launch)
      : arguments_(arguments), launch_(launch) {}

  Scanned run() {
    while (at_ < arguments_.size()) {
      const std::string& argument = arguments_[at_];
      if (argument == "--") {
        ++at_;
        break;
      }
      if (argument.size() < 2 || argument.front() != '-') break;
      ++at_;
      if (argument[1] == '-') {
        take_long(argument);
      } else {
        take_letters(argument);
      }
    }
    result_.program.assign(arguments_.begin() + static_cast<std::ptrdiff_t>(at_), arguments_.end());
    return std::move(result_);
  }

 private:
  void take_long(const std::string& argument) {
    const auto equals = argument.find('=');
    const std::string written = argument.substr(0, equals);
    const Flag& flag = resolve_long(written, launch_);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = argument.substr(equals + 1);
    take(flag, "--" + std::string(flag.name), std::move(value));
  }

  // -r3, -r 3, -r=3, -mv
  void take_letters(const std::string& argument) {
    for (std::size_t i = 1; i < argument.size(); ++i) {
      const std::string shown{'-', argument[i]};
      const Flag* flag = find_letter(argument[i]);
      if (flag == nullptr) {
        throw UsageError("unknown flag " + quote(argument) +
                         suggestion(argument, std::string_view(argument).substr(1), launch_) +
                         " (drun --help lists them; the program's own flags go after the program)");
      }
      std::string rest = argument.substr(i + 1);
      if (flag->arity == Arity::Switch) {
        if (rest.starts_with('=')) take(*flag, shown, rest.substr(1));
        take(*flag, shown, std::nullopt);
        continue;
      }
      if (rest.starts_with('=')) rest.erase(0, 1);
      const bool attached = i + 1 < argument.size();
      take(*flag, shown, attached ? std::optional<std::string>(rest) : std::nullopt);
      return;
    }
  }

  void take(const Flag& flag, std::string shown, std::optional<std::string> value) {
    if (flag.arity == Arity::Switch) {
      if (value) throw UsageError(shown + " takes no value, and got " + quote(*value));
      value = "1";
    } else if (!value) {
      if (at_ == arguments_.size()) {
        throw UsageError(shown + " needs a value: " + std::string(flag.metavar));
      }
      const std::string& next = arguments_[at_];
      if (looks_like_flag(next)) {
        throw UsageError(shown + " needs a value (" + std::string(flag.metavar) + ") before " +
                         quote(next) + "; a value that starts with a dash is written " + shown +
                         (shown.size() == 2 ? "" : "=") + next);
      }
      value = next;
      ++at_;
    }
    result_.settings.set({&flag, Source::Flag, std::move(shown), std::move(*value)});
  }

  const std::vector<std::string>& arguments_;
  bool launch_;
  std::size_t at_ = 0;
  Scanned result_;
};

}  // namespace

void Settings::set(Setting setting) {
  const std::string_view name = setting.flag->name;
  settings_.insert_or_assign(name, std::move(setting));
}

const Setting* Settings::find(std::string_view name) const {
  const auto found = settings_.find(name);
  return found == settings_.end() ? nullptr : &found->second;
}

bool Settings::on(std::string_view name) const {
  const Setting* setting = find(name);
  return setting != nullptr && setting->value != "0";
}

Scanned scan_arguments(const std::vector<std::string>& arguments, bool launch) {
  return Scanner(arguments, launch).run();
}

void add_variables(const std::vector<std::string>& environment, Settings& settings) {
  std::map<std::string, const Flag*> flags;
  for (const std::string& entry : environment) {
    if (!entry.starts_with("PET_")) continue;
    if (flags.empty()) {
      for (const Flag& flag : all_flags()) {
        if (has_variable(flag)) flags.emplace(variable_of(flag), &flag);
      }
    }
    const auto equals = entry.find('=');
    if (equals == std::string::npos) continue;
    const auto found = flags.find(entry.substr(0, equals));
    if (found == flags.end()) continue;
    const Flag& flag = *found->second;
    if (settings.find(flag.name) != nullptr) continue;  // a flag, or the first of two variables
    std::string value = entry.substr(equals + 1);
    if (flag.arity == Arity::Switch) {
      long long number = 0;
      const auto [end, ec] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (ec != std::errc() || end != value.data() + value.size()) {
        throw UsageError(found->first + "=" + quote(value) + ": expected 1 (on) or 0 (off)");
      }
      value = number != 0 ? "1" : "0";
    }
    settings.set({&flag, Source::Variable, found->first, std::move(value)});
  }
  add_older_variables(environment, settings);
}

std::string quote(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string result = "'";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      result += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 15U]};
    } else {
      result += c;
    }
  }
  return result + (text.size() > kLongest ? "...'" : "'");
}

}  // namespace drun::launcher
