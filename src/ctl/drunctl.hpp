// drunctl's parts: what was asked for, the answers as text or JSON, and the commands.
#pragma once

#include <signal.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/exit_codes.hpp"
#include "base/terminal_size.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/store/client.hpp"
#include "secure/certificate.hpp"
#include "secure/tls_context.hpp"

namespace drun::ctl {

// Exit codes for scripts, beside those of base/exit_codes.hpp.
inline constexpr int kOk = 0;
inline constexpr int kNo = 1;  // the key is missing, the condition does not hold
// Of status, beside kOk (a job runs, or has succeeded) and kNo (it has failed).
inline constexpr int kNotRunning = 3;  // nodes are waited for, or workers are being ended
inline constexpr int kGone = 4;        // there is no such job, or all of its agents have gone
inline constexpr int kNoReader = exit_code_of_signal(SIGPIPE);

// Nobody reads the output any more: no error to talk about.
class NoReader : public std::exception {};

struct CtlOptions {
  Endpoint endpoint{"localhost", 29400};
  bool endpoint_given = false;
  std::optional<std::chrono::milliseconds> timeout;  // nullopt: the command's own
  bool retry = false;
  bool json = false;
  bool raw = false;
  bool wait = false;                 // get
  bool exact = false;                // watch
  bool null_separated = false;       // keys
  bool ready = false;                // health
  bool live = false;                 // status: redrawn at every change
  bool all = false;                  // stacks: other threads and children too
  bool collapsed = false;            // stacks: for flame graphs
  bool quick = false;                // stacks: what /proc says, no process is stopped
  bool html = false;                 // timeline: a page, not a trace
  std::optional<std::size_t> count;  // watch
  std::string prefix;
  std::optional<std::string> file;
  std::optional<std::string> output;  // timeline; nullopt: standard output
  std::string heartbeat_file;         // of the worker that has started this; empty: none has
  std::string token_file;
  secure::CertificateFiles certificate;
  std::shared_ptr<const secure::TlsContext> tls;  // of the job's token; null: none was given
  std::string command;
  std::vector<std::string> environment;  // "NAME=value"
  std::vector<std::string> words;        // after the command
};

// Either run with these options, or print `text` (--help and the like) and leave.
struct ParsedCtl {
  std::optional<CtlOptions> options;
  std::string text;
};

// `arguments` without argv[0], `environment` as "NAME=value". Pure. Throws cli::UsageError.
[[nodiscard]] ParsedCtl parse(const std::vector<std::string>& arguments,
                              const std::vector<std::string>& environment);
// "add KEY [N]"; `command` is one that there is.
[[nodiscard]] std::string usage_of(std::string_view command);

// False: the command is about this host, files or a worker's own store alone.
[[nodiscard]] bool asks_a_store(const CtlOptions& options);

// Runs the command; the exit code. Throws cli::UsageError.
int run(const CtlOptions& options);

// ---- errors: one line on standard error, and the exit code ----

// Without a connection: whatever the cause, the store cannot be reached.
int unreachable(const Error& error);
// Of a store that was reached.
int failed(const Error& error);

// ---- output: to standard output, in one piece each, flushed. Throws NoReader ----

void print(std::string_view bytes);
[[nodiscard]] bool on_terminal();

// The lines at the beginning that such a screen has room for, above one that says how many more
// there are. So it can be drawn again in place.
[[nodiscard]] std::string fitted(std::string_view lines, const TerminalSize& screen);

// {"key": ..., "value": ...}; text that is not UTF-8 as "key_base64", "value_base64".
using Fields = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] std::string json_object(
    const Fields& text_fields,
    const std::vector<std::pair<std::string, std::int64_t>>& numbers = {});
// A list of strings; one that is not UTF-8 is {"base64": ...}.
[[nodiscard]] std::string json_list(const std::vector<std::string>& items);
// What a store holds, as it is; on a terminal, where it might act, as escaped() has it, in lines.
[[nodiscard]] std::string shown(std::string_view bytes);

}  // namespace drun::ctl
