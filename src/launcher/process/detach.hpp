// How a helper process that was forked from the agent cuts itself loose from what it inherited.
#pragma once

#include <initializer_list>
#include <string>

namespace drun::process {

// In the child, once: a session of its own without a terminal, every signal blocked and every
// disposition at its default (so that nothing but SIGKILL ends or stops it, and what it starts has
// clean ones), /dev/null as standard streams, no other descriptor open but `keep`. `name` is what
// ps shows.
void detach(std::initializer_list<int> keep, const char* name);
// In a child of such a process: all of it that is not inherited.
void set_apart(std::initializer_list<int> keep, const char* name);

// Should this process be stopped when its parent ends, or the one that adopts it then, the
// kernel wakes it. The end of the thread that forked it does so, too, which harms nobody. Not for
// the children of this process.
void be_woken_by_parents_end();

// Replaces the command line that ps shows, cut to the length of the original one. Children of this
// process, which are at the same place, look for it no more.
void set_command_line(const std::string& title);

// Makes this process the parent of every orphan among its descendants. False, and nothing is done,
// if it has children already: it could not tell their orphans from the job's.
[[nodiscard]] bool adopt_orphans();

}  // namespace drun::process
