#include "launcher/starter/remote_end.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>

#include "base/addresses.hpp"
#include "base/argv.hpp"
#include "base/bound_port.hpp"
#include "base/environment_variable.hpp"
#include "base/file_descriptor.hpp"
#include "base/pidfd.hpp"
#include "base/pipe.hpp"
#include "base/random_bytes.hpp"
#include "base/whole_number.hpp"
#include "drun/version.hpp"
#include "launcher/hosts/edge_wire.hpp"
#include "launcher/hosts/own_words.hpp"
#include "launcher/process/exit_status.hpp"
#include "launcher/signals/agent_signals.hpp"
#include "launcher/starter/frame_link.hpp"
#include "launcher/starter/limbs.hpp"
#include "launcher/starter/login_environment.hpp"
#include "launcher/starter/remote_end_fsm.hpp"
#include "secure/tls_context.hpp"

namespace drun::launcher {
namespace {

using hosts::Frame;
using hosts::FrameType;
using std::chrono::milliseconds;

constexpr milliseconds kLastOutput{1'000};  // of an agent that has ended
constexpr std::size_t kSecret = 20;         // letters and digits

constexpr std::array kEndsOfSession{SIGTERM, SIGINT, SIGHUP, SIGQUIT};

bool ends_session(int signal) {
  return std::find(kEndsOfSession.begin(), kEndsOfSession.end(), signal) != kEndsOfSession.end();
}

// Those, and what an agent would get in its place and this would die of: Slurm sends SIGUSR1 before
// the end of a job to the step's task, which is this process.
std::vector<int> caught_signals() {
  std::vector<int> signals(kEndsOfSession.begin(), kEndsOfSession.end());
  for (const int signal : signals_of_agent({})) {
    const SignalMeaning meaning = meaning_of(signal, {});
    if (!ends_session(signal) && meaning == SignalMeaning::Stop) signals.push_back(signal);
  }
  return signals;
}

class RemoteEnd {
 public:
  RemoteEnd()
      : environment_(own_environment()),
        port_(bind_everywhere(0)),
        caught_(caught_signals()),
        signals_(io_),
        process_(io_),
        limit_(io_),
        streams_{AgentStream(io_, FrameType::Output), AgentStream(io_, FrameType::ErrorOutput)},
        link_(io_, duplicate(STDIN_FILENO, "read orders"), duplicate(STDOUT_FILENO, "answer"),
              false,
              {[this](const Frame& frame) { on_frame(frame); },
               {},
               [this](const std::string&) { on_starter_gone(); }}),
        limbs_(io_,
               {[this](const Frame& frame) { link_.send(frame); }, [this] { end_if_alone(); }}) {
    for (const int signal : caught_)
      signals_.add(signal);
  }

  int run() {
    ignore_write_signals();
    await_signal();
    link_.start();
    const Status possible = secure::can_speak_tls();
    link_.send_bytes(std::string(hosts::kEdgeMark));
    link_.send({FrameType::Hello, 0,
                pack(hosts::Hello{DRUN_VERSION_STRING, address_reached_by(environment_),
                                  port_ ? std::to_string(bound_port(port_.get())) : "",
                                  own_host_name(), possible ? "" : possible.error().what()})});
    io_.run();
    return 0;
  }

 private:
  struct AgentStream {
    AgentStream(asio::io_context& io, FrameType of) : source(io), type(of) {}
    asio::posix::stream_descriptor source;
    FrameType type;
    std::array<char, 64 * 1024> buffer{};
    std::size_t on_its_way = 0;  // what the starter has not taken
    bool waits = false;          // until it has
    bool over = true;
  };

  void await_signal() {
    signals_.async_wait([this](asio::error_code error, int signal) {
      if (error) return;
      await_signal();  // first: what follows may end all waiting
      if (fsm_.running()) {
        tell_agent(signal);
      } else if (ends_session(signal)) {
        on_starter_gone();  // whoever sends this ends the session
      }
    });
  }

  void on_frame(const Frame& frame) {
    if (frame.type == FrameType::Branch) return on_branch(frame);
    if (frame.host != own_) return limbs_.send(frame);
    if (frame.type == FrameType::Order && fsm_.takes_order()) return on_order(frame.payload);
    if (frame.type == FrameType::Taken) return on_taken(streams_[0], frame.payload);
    if (frame.type == FrameType::ErrorTaken) return on_taken(streams_[1], frame.payload);
    const auto signal = whole_number<int>(frame.payload);
    if (frame.type == FrameType::Signal && signal && *signal > 0 && *signal <= process::kLastSignal)
      tell_agent(*signal);
  }

  void on_branch(const Frame& frame) {
    own_ = frame.host;
    const auto branch = hosts::unpack_branch(frame.payload);
    if (!branch) return fail(branch.error().what());
    limbs_.start(*branch, own_host_name());
  }

  void on_order(const std::string& payload) {
    const auto order = hosts::unpack_order(payload);
    if (!order) return fail(order.error().what());
    grace_ = milliseconds(whole_number<std::int64_t>(order->grace).value_or(30'000));
    if (::chdir(order->directory.c_str()) != 0)
      return fail("its folder cannot be entered there: " + order->directory + ": " +
                  std::generic_category().message(errno));
    start_agent(*order);
  }

  void fail(const std::string& why) { link_.send({FrameType::Failed, own_, why}); }

  void start_agent(const hosts::Order& order) {
    port_.reset();
    const std::string secret = random_name(kSecret);
    words_ = hosts::WordsReader(hosts::word_marks(secret));
    std::vector<std::string> set = order.environment;
    set.insert(set.begin(), std::string(hosts::kWordsVariable) + "=" + secret);
    const std::vector<std::string> environment = merged_environment(environment_, set);
    const std::vector<char*> variables = argv_of(environment);
    const std::vector<char*> arguments = argv_of(order.arguments);
    std::array<FileDescriptor, 2> ends;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      auto pipe = try_pipe();
      if (!pipe) return fail(pipe.error().what());
      streams_[i].source.assign(pipe->read.release());
      ends[i] = std::move(pipe->write);
    }
    const FileDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const pid_t parent = ::getpid();
    agent_ = ::fork();
    if (agent_ < 0) return fail("fork: " + std::generic_category().message(errno));
    if (agent_ == 0) {
      // Whatever ends this process ends the agent, which then ends its workers.
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() != parent) std::_Exit(exit_code_of_signal(SIGTERM));
      ::setpgid(0, 0);
      sigset_t none;
      ::sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      for (const int signal : {SIGPIPE, SIGXFSZ})
        std::signal(signal, SIG_DFL);
      for (const int signal : caught_)
        std::signal(signal, SIG_DFL);
      ::dup2(nothing.get(), STDIN_FILENO);
      ::dup2(ends[0].get(), STDOUT_FILENO);
      ::dup2(ends[1].get(), STDERR_FILENO);
      ::execve("/proc/self/exe", arguments.data(), variables.data());
      std::_Exit(kCannotRun);
    }
    fsm_.on_agent_started();
    watch_agent();
  }

  void watch_agent() {
    FileDescriptor pidfd = open_pidfd(agent_);
    if (!pidfd) throw std::system_error(errno, std::generic_category(), "watch the agent");
    process_.assign(pidfd.release());
    await_agent();
    for (AgentStream& stream : streams_) {
      stream.over = false;
      read(stream);
    }
  }

  void await_agent() {
    process_.async_wait(asio::posix::stream_descriptor::wait_read, [this](asio::error_code error) {
      if (error) return;
      int status = 0;
      if (::waitpid(agent_, &status, WNOHANG) == 0) return await_agent();
      on_agent_ended(process::from_wait_status(status));
    });
  }

  void read(AgentStream& stream) {
    stream.waits = stream.on_its_way >= hosts::kOutputWindow && fsm_.holds_output_back();
    if (stream.waits) return;
    stream.source.async_read_some(asio::buffer(stream.buffer),
                                  [this, &stream](asio::error_code error, std::size_t size) {
                                    if (error) {
                                      stream.over = true;
                                      return tell_end();
                                    }
                                    const std::string_view bytes(stream.buffer.data(), size);
                                    if (stream.type == FrameType::ErrorOutput) {
                                      pass_on(stream, words_.take(bytes));
                                    } else {
                                      pass_on(stream, {{false, std::string(bytes)}});
                                    }
                                    read(stream);
                                  });
  }

  void pass_on(AgentStream& stream, std::vector<hosts::WordsReader::Piece> pieces) {
    for (hosts::WordsReader::Piece& piece : pieces) {
      stream.on_its_way += piece.bytes.size();
      link_.send({piece.own ? FrameType::Words : stream.type, own_, std::move(piece.bytes)});
    }
  }

  void read_on(AgentStream& stream) {
    if (stream.waits) read(stream);
  }

  void on_taken(AgentStream& stream, const std::string& payload) {
    stream.on_its_way -=
        std::min(stream.on_its_way, whole_number<std::size_t>(payload).value_or(0));
    read_on(stream);
  }

  void on_agent_ended(const process::ExitStatus& status) {
    status_ = status;
    fsm_.on_agent_ended();
    for (AgentStream& stream : streams_)
      read_on(stream);
    limit_.expires_after(kLastOutput);  // of what the agent left behind nobody waits for the end
    limit_.async_wait([this](asio::error_code cancelled) {
      if (cancelled) return;
      for (AgentStream& stream : streams_)
        stream.over = true;
      tell_end();
    });
    tell_end();
  }

  void tell_end() {
    if (!streams_[0].over || !streams_[1].over || !fsm_.on_output_read()) return;
    limit_.cancel();
    pass_on(streams_[1], words_.rest());
    if (status_.signal != 0) {  // which tells nothing of the job
      fail("its agent was " + process::describe(status_));
    } else {
      link_.send(
          {FrameType::Ended, own_, std::to_string(status_.code)});  // the starter closes then
    }
    end_if_alone();
  }

  void on_starter_gone() {
    if (!fsm_.on_starter_gone()) return;
    link_.end();
    limbs_.close();
    end_if_alone();
    if (!fsm_.running()) return;
    for (AgentStream& stream : streams_)
      read_on(stream);
    tell_agent(SIGTERM);
    limit_.expires_after(grace_);
    limit_.async_wait([this](asio::error_code cancelled) {
      if (!cancelled) tell_agent(SIGKILL);
    });
  }

  void tell_agent(int signal) const {
    if (!fsm_.running()) return;
    ::kill(agent_, signal);
    ::kill(agent_, SIGCONT);  // one that was stopped could not act on it
  }

  void end_if_alone() {
    if (!fsm_.over() || !limbs_.idle()) return;
    limit_.cancel();
    link_.end();
    asio::error_code ignored;
    signals_.cancel(ignored);
    process_.close(ignored);
    for (AgentStream& stream : streams_)
      stream.source.close(ignored);
  }

  const std::vector<std::string> environment_;
  // Of the agent, which may bind it only when this has let go of it; empty: there is none.
  FileDescriptor port_;
  asio::io_context io_{1};
  const std::vector<int> caught_;
  asio::signal_set signals_;
  asio::posix::stream_descriptor process_;  // the agent's pidfd
  asio::steady_timer limit_;
  std::array<AgentStream, 2> streams_;
  hosts::WordsReader words_{{}};
  FrameLink link_;
  Limbs limbs_;
  std::uint32_t own_ = 0;  // this host's number
  RemoteEndFsm fsm_;
  pid_t agent_ = 0;  // once it was started
  milliseconds grace_{30'000};
  process::ExitStatus status_;
};

}  // namespace

int run_remote_end() {
  return RemoteEnd().run();
}

}  // namespace drun::launcher
