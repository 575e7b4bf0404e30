// A pipe that is there from the start.
#pragma once

#include "base/pipe.hpp"

namespace drun::test {

struct Pipe : drun::Pipe {
  Pipe() : drun::Pipe(make_pipe("make a pipe for a test")) {}
};

}  // namespace drun::test
