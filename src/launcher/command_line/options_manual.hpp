// What --print-man prints: drun(1), from the table of flags. Pure.
#pragma once

#include <string>

namespace drun::launcher {

[[nodiscard]] std::string manual_page();

}  // namespace drun::launcher
