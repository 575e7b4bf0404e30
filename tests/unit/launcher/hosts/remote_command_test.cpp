// The command that reaches a host, and what its failure means.
#include "launcher/hosts/remote_command.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher::hosts {
namespace {

using testing::ElementsAre;

TEST(RemoteCommandTest, OfSshIsOneWordForTheShellThere) {
  const Launcher launcher = *parse_launcher("  /usr/bin/ssh -p 2222 ");
  EXPECT_THAT(remote_command(launcher, "me@node1", "/opt/a b/drun"),
              ElementsAre("/usr/bin/ssh", "-p", "2222", "-T", "-x", "-oBatchMode=yes",
                          "-oConnectTimeout=10", "-oServerAliveInterval=15",
                          "-oServerAliveCountMax=3", "me@node1",
                          "exec sh -c 'test -x '\\''/opt/a b/drun'\\'' && exec '\\''/opt/a "
                          "b/drun'\\'' --started-by-drun; exec drun --started-by-drun'"));
  EXPECT_EQ(remote_command(*parse_launcher("rsh"), "n", "/drun").size(), 3U);
  EXPECT_EQ(remote_command(*parse_launcher("ssh -p 1 {host}"), "n", "/drun").back(),
            remote_command(*parse_launcher("ssh -p 1"), "n", "/drun").back());
}

TEST(RemoteCommandTest, OfAnotherCommandIsWords) {
  EXPECT_THAT(
      remote_command(*parse_launcher("kubectl exec -i pod/{host} -c {host} --"), "train-0",
                     "/drun"),
      ElementsAre("kubectl", "exec", "-i", "pod/train-0", "-c", "train-0", "--", "sh", "-c",
                  "test -x /drun && exec /drun --started-by-drun; exec drun --started-by-drun"));
  EXPECT_THAT(parse_launcher("ssh -o 'ProxyCommand x y'")->words,
              ElementsAre("ssh", "-o", "ProxyCommand x y"));
  for (const char* none : {"", "  ", "''", "ssh 'x"})
    EXPECT_FALSE(parse_launcher(none)) << none;
}

TEST(RemoteCommandTest, OfSrunIsAStepOfOneTask) {
  EXPECT_THAT(
      remote_command(*parse_launcher("/usr/bin/srun --mpi=none"), "n1", "/drun"),
      ElementsAre("/usr/bin/srun", "--mpi=none", "--nodelist=n1", "--nodes=1", "--ntasks=1",
                  "--overlap", "--mem=0", "--cpu-bind=none", "--distribution=block", "--export=ALL",
                  "--unbuffered", "--quiet", "sh", "-c",
                  "test -x /drun && exec /drun --started-by-drun; exec drun --started-by-drun"));
  EXPECT_THAT(remote_command(*parse_launcher("srun -w {host}"), "n1", "/drun"),
              ElementsAre("srun", "-w", "n1", "sh", "-c", testing::_));
}

TEST(RemoteCommandTest, TellsWhyAHostIsNotReached) {
  const struct {
    const char* launcher;
    int code;
    const char* said;
    const char* why;
  } cases[] = {
      {"ssh", 255, "ssh: connect to host n port 22: Connection refused\r\n",
       "it refuses the connection; is sshd running there, at this port? (ssh: connect to host n "
       "port 22: Connection refused)"},
      {"ssh", 255, "ssh: connect to host n port 22: Connection timed out\n",
       "it cannot be reached; it does not answer (ssh: connect to host n port 22: Connection timed "
       "out)"},
      {"ssh", 255, "ssh: Could not resolve hostname n: Name or service not known\n",
       "its name cannot be resolved; check the list of hosts (ssh: Could not resolve hostname n: "
       "Name or service not known)"},
      {"ssh", 255, "No ED25519 host key is known for n\nHost key verification failed.\n",
       "its host key is not known; log in once by hand, or add it to known_hosts with ssh-keyscan "
       "(Host key verification failed.)"},
      {"ssh", 255,
       "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n",
       "its host key has changed; if that is right, ssh-keygen -R forgets the old one (Host key "
       "verification failed.)"},
      {"ssh", 255, "A banner\n\nme@n: Permission denied (publickey).\n",
       "ssh may not log in; ssh must log in there without a password (me@n: Permission denied "
       "(publickey).)"},
      {"ssh", 255, "something \x1b[31m new", "ssh failed (something \\x1b[31m new)"},
      {"ssh", 255, "", "ssh failed"},
      {"ssh", 127, "sh: 1: exec: drun: not found\n",
       "there is no drun; install it there as /opt/drun, or in the PATH of a login, or let "
       "--copy-self copy it (sh: 1: exec: "
       "drun: not found)"},
      {"ssh", 2, "drun: error: unknown flag '--started-by-drun'\n",
       "the drun there is another version; install the same everywhere (drun: error: unknown flag "
       "'--started-by-drun')"},
      {"docker exec {host}", 126, "exec: \"sh -c exec drun --started-by-drun\": no such file\n",
       "there is no drun; install it there as /opt/drun, or in the PATH of a login, or let "
       "--copy-self copy it (exec: \"sh -c exec drun --started-by-drun\": no such file)"},
      {"my-wrapper", 1, "my-wrapper: cannot run drun --started-by-drun: no such pod\n",
       "my-wrapper ended with exit code 1 before drun answered (my-wrapper: cannot run drun "
       "--started-by-drun: no such pod)"},
      {"kubectl exec {host} --", 1, "Error from server (NotFound): pods \"n\" not found\n",
       "kubectl ended with exit code 1 before drun answered (Error from server (NotFound): pods "
       "\"n\" not found)"},
      {"kubectl exec {host} --", 255, "Connection refused",
       "kubectl ended with exit code 255 before drun answered (Connection refused)"},
  };
  for (const auto& [words, code, said, why] : cases) {
    const Launcher launcher = *parse_launcher(words);
    EXPECT_EQ(why_not_reached({launcher, "n", "/opt/drun", code, said}), why);
  }
  const Launcher ssh = *parse_launcher("ssh");
  EXPECT_EQ(why_not_reached(
                {ssh, "n", "/opt/drun", 1, "\n", false, "Hi!\nThis account is \x1b closed.\n"}),
            "ssh ended with exit code 1 before drun answered (This account is \\x1b closed.)");
  EXPECT_EQ(
      why_not_reached({ssh, "n", "/opt/drun", 137, "", false, "", "what answers there is no drun"}),
      "what answers there is no drun");
  EXPECT_EQ(why_not_reached({ssh, "n", "/opt/drun", 73, "head: No space left on device\n", true}),
            "drun could not be copied there (head: No space left on device)");
  EXPECT_EQ(why_not_reached({ssh, "n", "/opt/drun", 126, "sh: 1: exec: Permission denied\n", true}),
            "the copy of drun does not run there; is its cache on a file system that runs no "
            "programs, or its system older? (sh: 1: exec: Permission denied)");
  EXPECT_EQ(
      why_lost({ssh, "n", "/opt/drun", 137, "", false, "", "nothing was heard of it for 30 s"}),
      "lost: nothing was heard of it for 30 s");
  EXPECT_EQ(why_lost({ssh, "n", "/opt/drun", 255, "Connection reset by peer\n"}),
            "lost: ssh ended with exit code 255 (Connection reset by peer)");
}

}  // namespace
}  // namespace drun::launcher::hosts
