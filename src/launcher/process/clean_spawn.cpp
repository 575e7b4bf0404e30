#include "launcher/process/clean_spawn.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "base/argv.hpp"

namespace drun::process {
namespace {

class SpawnSettings {
 public:
  explicit SpawnSettings(const CleanSpawn& how) {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    set_stream(STDIN_FILENO, how.input, O_RDONLY);
    set_stream(STDOUT_FILENO, how.output, O_WRONLY);
    set_stream(STDERR_FILENO, how.error, O_WRONLY);
    if (how.only_streams) ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    sigset_t set;
    ::sigemptyset(&set);
    ::posix_spawnattr_setsigmask(&attributes, &set);
    ::sigfillset(&set);
    ::posix_spawnattr_setsigdefault(&attributes, &set);
    int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (how.own_group) flags |= POSIX_SPAWN_SETPGROUP;  // number 0: the child's own
    ::posix_spawnattr_setflags(&attributes, static_cast<short>(flags));
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};

 private:
  void set_stream(int stream, int from, int null_mode) {
    if (from >= 0)
      ::posix_spawn_file_actions_adddup2(&actions, from, stream);
    else
      ::posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", null_mode, 0);
  }
};

}  // namespace

Result<pid_t> spawn_clean(const CleanSpawn& how, const std::string& what) {
  const SpawnSettings settings(how);
  const std::vector<char*> words = argv_of(how.arguments);
  pid_t child = 0;
  const int failure =
      ::posix_spawnp(&child, how.file.c_str(), &settings.actions, &settings.attributes,
                     words.data(), how.environment != nullptr ? how.environment : ::environ);
  if (failure != 0) return Error::from_errno(failure, what);
  return child;
}

}  // namespace drun::process
