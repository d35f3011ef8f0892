#include "app/run_interrupt.h"

#include <atomic>
#include <csignal>

namespace sluice::app {
namespace {

std::atomic<bool> requested_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may not lock");

constexpr int kSignals[] = {SIGINT, SIGTERM};

void on_signal(int) { requested_flag.store(true); }

}  // namespace

Interrupt::Interrupt() {
    requested_flag.store(false);
    struct sigaction action{};
    action.sa_handler = on_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND);  // And no SA_RESTART: reads must return.
    for (const int number : kSignals) ::sigaction(number, &action, nullptr);
}

Interrupt::~Interrupt() {
    for (const int number : kSignals) std::signal(number, SIG_DFL);
}

bool Interrupt::requested() { return requested_flag.load(); }

}  // namespace sluice::app
