// The page of a job: page.html, with what the agent that sends it can do.
#pragma once

#include <string>

namespace drun::launcher {

// `takes_stacks`: it offers a button for it.
[[nodiscard]] std::string page_text(bool takes_stacks);

}  // namespace drun::launcher
