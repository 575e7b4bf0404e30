#include "launcher/output/output_terminal.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace drun::launcher {
namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Terminal open_terminal(int like, std::size_t taken) {
  Terminal terminal;
  terminal.master.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (!terminal.master) fail("open a pseudo-terminal");
  std::array<char, 64> name{};
  if (::grantpt(terminal.master.get()) != 0 || ::unlockpt(terminal.master.get()) != 0 ||
      ::ptsname_r(terminal.master.get(), name.data(), name.size()) != 0)
    fail("open a pseudo-terminal");
  terminal.slave.reset(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.slave) fail(name.data());
  termios mode{};
  if (::tcgetattr(terminal.slave.get(), &mode) == 0) {
    mode.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    mode.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL);
    ::tcsetattr(terminal.slave.get(), TCSANOW, &mode);
  }
  copy_window_size(like, terminal.master.get(), taken);
  return terminal;
}

void copy_window_size(int like, int master, std::size_t taken) {
  winsize size{};
  if (::ioctl(like, TIOCGWINSZ, &size) != 0) return;
  if (size.ws_col >= 2 * taken) size.ws_col = static_cast<unsigned short>(size.ws_col - taken);
  ::ioctl(master, TIOCSWINSZ, &size);
}

}  // namespace drun::launcher
