#pragma once

#include <string>
#include <vector>

namespace sluice::discovery {

struct EtcdOptions {
    /// "http://127.0.0.1:2379"; each is asked where the one before does not answer.
    std::vector<std::string> endpoints;
    std::string prefix = "/sluice/workers/";
};

}  // namespace sluice::discovery
