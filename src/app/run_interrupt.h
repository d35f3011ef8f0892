#pragma once

// Ctrl-C and SIGTERM as a question one asks between two steps. The second one ends the process the
// hard way, for a person whose patience is at its end.

namespace sluice::app {

/// Hears the two signals for as long as it lives; blocking calls then return with EINTR.
class Interrupt {
public:
    Interrupt();
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    [[nodiscard]] static bool requested();
};

}  // namespace sluice::app
