#include "routing/demand.h"

#include <algorithm>

namespace sluice::routing {

void Tried::add(WorkerIndex worker) {
    if (!has(worker)) workers.push_back(worker);
}

bool Tried::has(WorkerIndex worker) const {
    return std::ranges::find(workers, worker) != workers.end();
}

}  // namespace sluice::routing
