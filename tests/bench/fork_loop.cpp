// The least that starting programs costs, as a plain C program does it: fork, exec, wait.
//
//   fork_loop COUNT PROGRAM
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  for (int left = atoi(argv[1]); left > 0; --left) {
    const pid_t pid = fork();
    if (pid == 0) {
      execve(argv[2], argv + 2, environ);
      _exit(127);
    }
    if (pid < 0) return 1;
  }
  while (wait(nullptr) > 0) {
  }
  return 0;
}
