#include "launcher/hosts/remote_command.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/exit_codes.hpp"
#include "base/printable.hpp"
#include "base/shell_quote.hpp"
#include "base/shell_words.hpp"
#include "base/split.hpp"
#include "base/trimmed.hpp"
#include "drun/version.hpp"
#include "launcher/hosts/edge_wire.hpp"

namespace drun::launcher::hosts {
namespace {

constexpr std::string_view kHostWord = "{host}";
constexpr int kSshFailed = 255;
constexpr std::size_t kLongestQuote = 200;

bool names_host(const std::string& word) {
  return word.find(kHostWord) != std::string::npos;
}

bool is_program(const std::string& word, std::string_view name) {
  return std::string_view(word).substr(word.rfind('/') + 1) == name;
}

std::string with_host(std::string word, const std::string& host) {
  for (auto at = word.find(kHostWord); at != std::string::npos;
       at = word.find(kHostWord, at + host.size()))
    word.replace(at, kHostWord.size(), host);
  return word;
}

// Files are whole when they get their names; hosts may share the folder, and copy at once.
std::string copying_script(const std::string& path, const SelfOffer& offer) {
  const std::string size = std::to_string(offer.size);
  const std::string failed = "exit " + std::to_string(kCopyFailed);
  const std::string flag(kRemoteEndFlag);
  return "w() { test \"$(\"$1\" --version 2>/dev/null)\" = \"drun " DRUN_VERSION_STRING
         "\" && exec \"$1\" " +
         flag + "; }; w " + path +
         "; w drun; d=\"${XDG_CACHE_HOME:-${HOME:?}/.cache}/drun\"; f=\"$d/" + offer.name +
         "\"; test -x \"$f\" && exec \"$f\" " + flag +
         "; u=$(umask); umask 077; mkdir -p \"$d\" || " + failed +
         "; t=$(mktemp \"$d/new.XXXXXXXX\") || " + failed +
         "; trap \"rm -f \\\"$t\\\"\" 0 1 2 15; printf \"\\000drun is not here 1\\000%s\\n\" "
         "\"$(uname -sm)\"; head -c " +
         size + " >\"$t\" && test $(wc -c <\"$t\") -eq " + size +
         " && chmod 700 \"$t\" && mv -f \"$t\" \"$f\" && trap - 0 && umask $u && exec \"$f\" " +
         flag + "; " + failed;
}

std::string script_for(const std::string& drun, const SelfOffer& offer) {
  const std::string flag(kRemoteEndFlag);
  const std::string path = shell_quoted(drun);
  if (!offer.name.empty()) return copying_script(path, offer);
  return "test -x " + path + " && exec " + path + " " + flag + "; exec drun " + flag;
}

// The lines that ssh says of itself come last; banners come before them.
std::string last_line(std::string_view text) {
  std::string_view last;
  while (!text.empty())
    if (const auto line = trimmed(take_until(text, '\n')); !line.empty()) last = line;
  std::string shown = printable(last.substr(0, kLongestQuote));
  return shown;
}

struct Symptom {
  std::string_view text;    // in what ssh says
  std::string_view reason;  // what it means
  std::string_view advice;  // what to do about it; "": nothing to add
};

// The first that is found counts.
constexpr auto kSymptoms = std::to_array<Symptom>({
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", "its host key has changed",
     "if that is right, ssh-keygen -R forgets the old one"},
    {"Host key verification failed", "its host key is not known",
     "log in once by hand, or add it to known_hosts with ssh-keyscan"},
    {"host key is known for", "its host key is not known",
     "log in once by hand, or add it to known_hosts with ssh-keyscan"},
    {"Could not resolve hostname", "its name cannot be resolved", "check the list of hosts"},
    {"Connection refused", "it refuses the connection", "is sshd running there, at this port?"},
    {"Connection timed out", "it cannot be reached", "it does not answer"},
    {"No route to host", "it cannot be reached", "there is no route to it"},
    {"Network is unreachable", "it cannot be reached", "its network is unreachable"},
    {"Permission denied", "ssh may not log in", "ssh must log in there without a password"},
    {"Too many authentication failures", "ssh may not log in",
     "ssh must log in there without a password"},
    {"Bad owner or permissions", "ssh refuses its own configuration", ""},
    {"Connection closed by", "its sshd closed the connection", "see its log, and MaxStartups"},
    {"Connection reset by", "its sshd closed the connection", "see its log, and MaxStartups"},
    {"kex_exchange_identification", "its sshd closed the connection",
     "see its log, and MaxStartups"},
});

std::string sentence(std::string_view reason, std::string_view advice, const std::string& said) {
  std::string text(reason);
  if (!advice.empty()) text += "; " + std::string(advice);
  if (!said.empty()) text += " (" + said + ")";
  return text;
}

std::string ended(const Attempt& attempt) {
  return as_name(attempt.launcher.words.front()) + " ended with exit code " +
         std::to_string(attempt.code);
}

}  // namespace

bool Launcher::is_like_ssh() const {
  return std::none_of(words.begin(), words.end(), names_host) && !is_srun();
}

bool Launcher::is_ssh() const {
  return is_program(words.front(), "ssh");
}

bool Launcher::is_srun() const {
  return is_program(words.front(), "srun") && std::none_of(words.begin(), words.end(), names_host);
}

Result<Launcher> parse_launcher(std::string_view text) {
  auto words = shell_words(text);
  if (!words) return words.error();
  if (words->empty() || words->front().empty())
    return Error(std::make_error_code(std::errc::invalid_argument), "expected a command");
  return Launcher{std::move(*words)};
}

std::vector<std::string> remote_command(const Launcher& launcher, const std::string& host,
                                        const std::string& drun, const SelfOffer& offer) {
  std::vector<std::string> command;
  for (const std::string& word : launcher.words)
    command.push_back(with_host(word, host));
  if (launcher.is_ssh()) {
    // Of two -o ssh takes the first: what the user says stands before.
    for (const char* option : {"-T", "-x", "-oBatchMode=yes", "-oConnectTimeout=10",
                               "-oServerAliveInterval=15", "-oServerAliveCountMax=3"})
      command.emplace_back(option);
  }
  if (launcher.is_srun()) {
    // Of what an allocation has there the step may use all, beside other steps. Whatever srun finds
    // in the environment, it is one task, whose bytes are passed on as they come.
    command.push_back("--nodelist=" + host);
    for (const char* option : {"--nodes=1", "--ntasks=1", "--overlap", "--mem=0", "--cpu-bind=none",
                               "--distribution=block", "--export=ALL", "--unbuffered", "--quiet"})
      command.emplace_back(option);
  }
  if (launcher.is_like_ssh()) command.push_back(host);
  // ssh joins its words by blanks, wherever the host stands: a shell there reads one.
  if (launcher.is_like_ssh() || launcher.is_ssh()) {
    command.push_back("exec sh -c " + single_quoted(script_for(drun, offer)));
  } else {
    command.insert(command.end(), {"sh", "-c", script_for(drun, offer)});
  }
  return command;
}

namespace {

// A drun that does not know the flag; what stands between may quote the whole command, too.
bool is_refused_by_drun(const Attempt& attempt) {
  constexpr std::string_view kSays = "drun: error: unknown flag '";
  const auto begin = attempt.stderr_end.rfind(kSays);
  return begin != std::string::npos && std::string_view(attempt.stderr_end)
                                           .substr(begin + kSays.size())
                                           .starts_with(kRemoteEndFlag);
}

}  // namespace

std::string why_not_reached(const Attempt& attempt) {
  // A login that is closed may say so on stdout.
  std::string said = last_line(attempt.stderr_end);
  if (said.empty()) said = last_line(attempt.noise);
  if (!attempt.given_up.empty()) return sentence(attempt.given_up, "", said);
  if (attempt.launcher.is_ssh() && attempt.code == kSshFailed) {
    for (const Symptom& symptom : kSymptoms)
      if (attempt.stderr_end.find(symptom.text) != std::string::npos)
        return sentence(symptom.reason, symptom.advice, said);
    return sentence("ssh failed", "", said);
  }
  if (attempt.copied && attempt.code == kCopyFailed)
    return sentence("drun could not be copied there", "", said);
  if (attempt.copied)
    return sentence("the copy of drun does not run there",
                    "is its cache on a file system that runs no programs, or its system older?",
                    said);
  if (attempt.code == kNotFound || attempt.code == kCannotRun)
    return sentence("there is no drun",
                    "install it there as " + printable(attempt.drun) +
                        ", or in the PATH of a login, or let --copy-self copy it",
                    said);
  if (is_refused_by_drun(attempt))
    return sentence("the drun there is another version", "install the same everywhere", said);
  return sentence(ended(attempt) + " before drun answered", "", said);
}

std::string why_lost(const Attempt& attempt) {
  // The exit code of what drun kills is news to nobody.
  const std::string& why = attempt.given_up;
  return sentence("lost: " + (why.empty() ? ended(attempt) : why), "",
                  last_line(attempt.stderr_end));
}

}  // namespace drun::launcher::hosts
