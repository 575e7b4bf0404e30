#include "launcher/hosts/handed_environment.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

#include "base/environment_variable.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/trimmed.hpp"

namespace drun::launcher::hosts {
namespace {

constexpr auto kStay = std::to_array<std::string_view>(
    {"_",      "HOME",     "USER",          "LOGNAME",         "SHELL",        "PWD",
     "OLDPWD", "SHLVL",    "HOST",          "HOSTNAME",        "MAIL",         "TTY",
     "TERM",   "DISPLAY",  "XAUTHORITY",    "WAYLAND_DISPLAY", "TMUX",         "TMUX_PANE",
     "STY",    "WINDOWID", "INVOCATION_ID", "JOURNAL_STREAM",  "NOTIFY_SOCKET"});
constexpr auto kStayFamilies = std::to_array<std::string_view>(
    {"SSH_", "XDG_", "DBUS_", "SUDO_", "SYSTEMD_", "SLURM_", "SLURMD_", "PMI_", "PMIX_", "OMPI_",
     "PRTE_", "HYDRA_", "HYDI_", "MPI_LOCAL", "PBS_", "LSB_", "FLUX_"});

bool is_variable(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) return false;
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

class Collection {
 public:
  explicit Collection(const std::vector<std::string>& environment) : here_(environment) {
    for (const std::string& entry : environment) {
      const std::string name = entry.substr(0, entry.find('='));
      if (!stays_here(name) && name.size() < entry.size())
        values_.emplace(name, entry.substr(name.size() + 1));
    }
  }

  // "NAME=value" or "NAME". False: that is none.
  bool take(std::string_view word) {
    const auto equals = word.find('=');
    const std::string name(word.substr(0, equals));
    if (!is_variable(name)) return false;
    if (equals != std::string_view::npos) {
      values_[name] = word.substr(equals + 1);
    } else if (auto value = environment_variable(here_, name)) {
      values_[name] = std::move(*value);
    } else {
      missing_.push_back(name);
    }
    return true;
  }

  Handed result() && {
    Handed handed;
    for (const auto& [name, value] : values_)
      handed.environment.push_back(name + "=" + value);
    handed.missing = std::move(missing_);
    return handed;
  }

 private:
  const std::vector<std::string>& here_;
  std::map<std::string, std::string> values_;
  std::vector<std::string> missing_;
};

// What stands before the equals sign, to be shown: the rest may be a secret. So may a whole line be
// that is the rest of a value.
Error no_variable(const std::string& where, std::string_view word) {
  if (!where.empty() && word.find('=') == std::string_view::npos)
    return Error(std::make_error_code(std::errc::invalid_argument),
                 where + "expected NAME=VALUE, on one line");
  return Error(std::make_error_code(std::errc::invalid_argument),
               where + in_quotes(word.substr(0, word.find('='))) + " is no name of a variable");
}

}  // namespace

bool stays_here(std::string_view name) {
  return !is_variable(name) || std::find(kStay.begin(), kStay.end(), name) != kStay.end() ||
         std::any_of(kStayFamilies.begin(), kStayFamilies.end(),
                     [name](std::string_view family) { return name.starts_with(family); });
}

Result<Handed> handed_environment(const std::vector<std::string>& environment,
                                  std::string_view file, const std::vector<std::string>& asked) {
  Collection collection(environment);
  for (int number = 1; !file.empty(); ++number) {
    std::string_view line = take_until(file, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty() || line.front() == '#') continue;
    if (line.starts_with("export ")) line.remove_prefix(std::string_view("export ").size());
    if (!collection.take(line)) return no_variable("line " + std::to_string(number) + ": ", line);
  }
  for (const std::string& word : asked)
    if (!collection.take(word)) return no_variable("", word);
  return std::move(collection).result();
}

}  // namespace drun::launcher::hosts
