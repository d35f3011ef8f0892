#include "net/event_loop.h"

#include <algorithm>
#include <cstdio>

#include "base/assert.h"
#include "base/net_limits.h"
#include "net/loop_impl.h"

namespace sluice::net {

LoopMember::LoopMember(EventLoop::Impl& loop) : loop_(&loop), next_(loop.members) {
    if (next_ != nullptr) next_->previous_ = this;
    loop.members = this;
}

LoopMember::~LoopMember() { leave(); }

void LoopMember::leave() {
    if (loop_ == nullptr) return;
    if (next_ != nullptr) next_->previous_ = previous_;
    (previous_ != nullptr ? previous_->next_ : loop_->members) = next_;
    loop_ = nullptr;
}

EventLoop::Impl::Impl() : scratch(kScratchBytes), work(context.get_executor()) {}

void EventLoop::Impl::post(std::function<void()> task) {
    // Strictly: before `run` any thread may post, and the turn is none of its business.
    const bool own_turn = thread.load() == std::this_thread::get_id() && turn_takes_posts;
    {
        const std::lock_guard lock(mutex);
        posted.push_back(std::move(task));
        if (own_turn) {
            turn_has_posts = true;
            return;
        }
        if (std::exchange(wake_pending, true)) return;
    }
    asio::post(context, [this] {
        {
            const std::lock_guard lock(mutex);
            wake_pending = false;
        }
        const Turn turn(*this);
        turn_has_posts = true;
    });
}

void EventLoop::Impl::run_posted() noexcept {
    std::vector<std::function<void()>> batch;
    {
        const std::lock_guard lock(mutex);
        batch.swap(posted);
    }
    for (auto& task : batch) {
        if (stopped) return;
        guarded(task);
        task = nullptr;
    }
}

void EventLoop::Impl::stop() {
    stopped = true;
    context.stop();
}

bool EventLoop::Impl::in_loop_thread() const {
    const std::thread::id owner = thread;
    return owner == std::thread::id() || owner == std::this_thread::get_id();
}

void EventLoop::Impl::at_end_of_pass(std::shared_ptr<PassEnd> member) {
    pass_end.push_back(std::move(member));
    // Asio runs it behind everything that is ready now.
    if (pass_end.size() == 1) asio::post(context, [this] { finish_pass(); });
}

void EventLoop::Impl::finish_turn() noexcept {
    turn_takes_posts = false;
    if (std::exchange(turn_has_posts, false)) run_posted();
    // The first must not wait for too many others.
    if (pass_end.size() >= limits::kPassConnections) finish_pass();
}

void EventLoop::Impl::finish_pass() noexcept {
    const Turn turn(*this);
    std::vector<std::shared_ptr<PassEnd>> members;
    members.swap(pass_end);
    for (const auto& member : members) member->end_of_pass();
}

void EventLoop::Impl::shut_down() noexcept {
    while (members != nullptr) {
        LoopMember* member = members;
        member->leave();
        member->loop_ends();
    }
    signals.clear();
    pass_end.clear();
    std::vector<std::function<void()>> dropped;
    const std::lock_guard lock(mutex);
    wake_pending = true;  // Nobody will run what is posted from now on.
    dropped.swap(posted);
}

void EventLoop::Impl::report(const char* what) noexcept {
    std::fprintf(stderr, "sluice: a task of the event loop failed: %s\n", what);
}

struct Timer::State final : LoopMember {
    State(EventLoop::Impl& impl, std::function<void()> task)
        : LoopMember(impl), timer(std::in_place, impl.context), work(std::move(task)) {}

    void cancel() {
        work = nullptr;
        timer.reset();
    }

    void loop_ends() noexcept override { cancel(); }

    void fire() {
        if (!work || loop() == nullptr) return;
        EventLoop::Impl& impl = *loop();
        const Turn turn(impl);
        // Moved out first: the work may destroy the Timer that owns it.
        const auto task = std::exchange(work, nullptr);
        timer.reset();
        impl.guarded(task);
    }

    std::optional<SteadyTimer> timer;
    std::function<void()> work;
};

Timer::Timer(std::shared_ptr<State> state) : state_(std::move(state)) {}
Timer::Timer(Timer&&) noexcept = default;

Timer& Timer::operator=(Timer&& other) noexcept {
    if (this == &other) return *this;
    cancel();
    state_ = std::move(other.state_);
    return *this;
}

Timer::~Timer() { cancel(); }

void Timer::cancel() {
    if (const auto state = std::exchange(state_, nullptr)) state->cancel();
}

EventLoop::EventLoop() : impl_(std::make_shared<Impl>()) {}

EventLoop::~EventLoop() {
    SLUICE_ASSERT(in_loop_thread());
    impl_->stop();
    impl_->shut_down();
}

void EventLoop::run() {
    impl_->thread = std::this_thread::get_id();
    impl_->context.run();
    impl_->finish_pass();
    impl_->thread = std::thread::id();
}

void EventLoop::run_for(std::chrono::nanoseconds duration) {
    impl_->thread = std::this_thread::get_id();
    impl_->context.run_for(duration);
    impl_->finish_pass();
    impl_->thread = std::thread::id();
}

void EventLoop::stop() { impl_->stop(); }

void EventLoop::post(std::function<void()> work) { impl_->post(std::move(work)); }

Timer EventLoop::call_after(std::chrono::nanoseconds delay, std::function<void()> work) {
    SLUICE_ASSERT(in_loop_thread());
    auto state = std::make_shared<Timer::State>(*impl_, std::move(work));
    // A year stands for "never", and keeps the clock's arithmetic from overflowing.
    constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);
    state->timer->expires_after(std::min(delay, kLongest));
    state->timer->async_wait([weak = std::weak_ptr(state)](const SystemError& error) {
        if (error) return;
        if (const auto self = weak.lock()) self->fire();
    });
    return Timer(std::move(state));
}

namespace {

void wait_for_signal(EventLoop::Impl& impl, asio::signal_set& set,
                     const std::shared_ptr<std::function<void(int)>>& work) {
    set.async_wait([&impl, &set, work](const SystemError& error, int signal) {
        if (error) return;
        const Turn turn(impl);
        impl.guarded([&] { (*work)(signal); });
        wait_for_signal(impl, set, work);
    });
}

}  // namespace

void EventLoop::on_signal(std::initializer_list<int> signals, std::function<void(int)> work) {
    SLUICE_ASSERT(in_loop_thread());
    asio::signal_set& set = impl_->signals.emplace_back(impl_->context);
    for (const int signal : signals) set.add(signal);
    wait_for_signal(*impl_, set, std::make_shared<std::function<void(int)>>(std::move(work)));
}

bool EventLoop::in_loop_thread() const { return impl_->in_loop_thread(); }

}  // namespace sluice::net
