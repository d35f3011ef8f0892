#pragma once

// Writes changed lives beside their segments (kv/ssd_lives.h), and keeps those that could not be written.
//
// Blocking; the thread that writes.

#include "kv/ssd_directory.h"
#include "kv/ssd_state.h"

namespace sluice::kv {

class SsdLifeKeeper {
public:
    SsdLifeKeeper(SsdState& state, const SsdDirectory& directory, const SsdFaults& faults)
        : state_(state), directory_(directory), faults_(faults) {}

    /// What is erased stays erased if the process ends now.
    [[nodiscard]] Result<void> flush();
    /// The same for the machine.
    [[nodiscard]] Result<void> sync();

private:
    void put_back(const SsdIndex::DirtyLives& lives);

    SsdState& state_;
    const SsdDirectory& directory_;
    const SsdFaults& faults_;
};

}  // namespace sluice::kv
