// Documents as kept values instead of JSON, for runs by the million.
#pragma once

namespace drun::simulation {

// Between two runs of `simulate_fast`: what their stores held is needed no more.
void forget_documents();

}  // namespace drun::simulation
