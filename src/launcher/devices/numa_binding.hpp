// What --numa-binding asks for: which CPUs a worker is bound to.
#pragma once

namespace drun::launcher {

enum class NumaBinding { None, Node, Socket, Exclusive, CoreComplex };

}  // namespace drun::launcher
